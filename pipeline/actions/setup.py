"""What a cycle is given beside the snapshot, the policy and the clock; what observes it answers nothing."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Protocol

from pipeline.actions.backoff import Backoff
from pipeline.actions.claims import Closed
from pipeline.actions.searching import InPlace, Search
from pipeline.decision.plan import Plan
from pipeline.records import replace

Noted = str | bool | int | float | None


class Notes(Protocol):
    """Takes attributes of a step while the step lasts."""

    def set(self, **attributes: Noted) -> None:
        """Note some attributes."""
        ...


class Observer(Protocol):
    """Observes the steps of a cycle."""

    def step(self, name: str, **attributes: Noted) -> AbstractContextManager[Notes]:
        """A step, for as long as the context lasts."""
        ...


class _Forgotten:
    def set(self, **attributes: Noted) -> None:
        """Do nothing."""


class Unobserved:
    """Implements `Observer` where nothing is observed."""

    def step(self, name: str, **attributes: Noted) -> AbstractContextManager[Notes]:
        """Nothing is kept."""
        del name, attributes
        return nullcontext(_Forgotten())


def unreported(plan: Plan) -> None:
    """For a caller that commits at the end of the cycle."""


@dataclass(frozen=True)
class Setup:
    """What a cycle is given beside the snapshot, the policy and the clock.

    Attributes
    ----------
    closed
        What some podgroups may not use now.
    backoff
        Gang groups that pause.
    gang_groups
        At most how many are searched for, 0 for all. The limit only delays: the cycle decides what it would if the
        other gang groups had begun to starve later.
    search, observer
        Where plans are searched for, and what observes the steps.
    when_certain
        Hears of each plan, in order, as soon as it is certain to be among the plans of the cycle, so that it can be
        judged while the next is searched for. Plans that are certain only by the end of the cycle are not reported.
    """

    closed: Closed = field(default_factory=Closed)
    backoff: Backoff = field(default_factory=Backoff)
    gang_groups: int = 0
    search: Search = field(default_factory=InPlace)
    observer: Observer = field(default_factory=Unobserved)
    when_certain: Callable[[Plan], object] = unreported

    def active_at(self, now: float) -> "Setup":
        """The setup as it counts at a time (seconds)."""
        closed = self.closed.active_at(now)
        backoff = self.backoff.with_closed(closed.overdue)
        same = closed is self.closed and backoff is self.backoff
        return self if same else replace(self, closed=closed, backoff=backoff)
