"""The state of a service, by what its roles report: whether it leads, stands by or waits, and what is in its way.

The log, the health port and the stream ``services`` all report these facts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from actors.contracts import Intake, Leadership
from actors.protocol.presence import Presence, RolePlace, State, StreamLag

_SEARCHER = "searcher"


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known at one moment.

    Attributes
    ----------
    started, stopping
        Whether all roles were there once; whether they are being ended.
    leadership, intake
        What committer and ingestor say; None: they do not answer.
    roles
        Where each role runs.
    others
        The other services of the fleet, by owner.
    cycling_s
        For how long the cycle that runs now has run, in seconds; 0 if none runs.
    """

    started: bool = False
    stopping: bool = False
    leadership: Leadership | None = None
    intake: Intake | None = None
    roles: Mapping[str, RolePlace] = field(default_factory=dict)
    others: Mapping[str, Presence] = field(default_factory=dict)
    cycling_s: float = 0.0

    @property
    def state(self) -> State:
        """All of it in one word, see `State`."""
        if self.stopping or not self.started:
            return "stops" if self.stopping else "starts"
        if self.leadership is None or not self.leadership.epoch or self.intake is None or not self.intake.listed:
            return "waits"
        return "leads" if self.leadership.leads else "stands by"

    @property
    def silent(self) -> tuple[str, ...]:
        """Roles that do not answer."""
        return tuple(name for name, place in sorted(self.roles.items()) if not place.answers)

    @property
    def hindrance(self) -> str:
        """What keeps it from its work; empty if nothing does."""
        if self.stopping or not self.started:
            return "it is told to stop" if self.stopping else "its roles are starting"
        lost = [name for name in self.silent if not name.startswith(_SEARCHER)]
        searchers = [name for name in self.roles if name.startswith(_SEARCHER)]
        if self.leadership is None or lost:
            return f"{', '.join(lost) or 'the committer'} does not answer"
        if searchers and set(searchers) <= set(self.silent):
            return "no searcher answers"
        if self.intake is None:
            return "the ingestor has not answered yet"
        if not self.intake.listed:
            return (
                f"no fleet is listed for {self.intake.unlisted_s:.0f} s: nothing is decided before it says what it has"
            )
        return "" if self.leadership.epoch else "no service holds the lease"

    @property
    def lag(self) -> dict[str, StreamLag]:
        """How far the streams' readers are behind, by ``stream/group``."""
        behind = self.intake.behind if self.intake is not None else {}
        return {where: StreamLag(entries=left, seconds=age) for where, (left, age) in behind.items()}

    @property
    def ready(self) -> bool:
        """Whether it leads, or could at once."""
        return not self.hindrance

    def said(self) -> dict[str, Any]:
        """All of it as plain data."""
        leadership, intake = self.leadership or Leadership(), self.intake or Intake()
        return {
            "ready": self.ready, "state": self.state, "why": self.hindrance, "leader": leadership.leader,
            "epoch": leadership.epoch, "listed": intake.listed, "unlisted_s": round(intake.unlisted_s, 3),
            "lag": {where: left.model_dump() for where, left in self.lag.items()},
            "silent": list(self.silent), "cycling_s": round(self.cycling_s, 3),
            "others": {owner: one.state for owner, one in self.others.items()},
        }  # fmt: skip
