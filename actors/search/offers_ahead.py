"""Plans on their way to the committer while the next are searched for: one call at a time.

What is offered while a call is on its way goes together with the next one, so plans that are found quickly share a sync
of the broker's disk, and none waits for a plan that takes long.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Protocol

from actors.contracts import CommitResult, Offer

_GIVEN_UP = "the service ends, and the committer has not answered"

#: Offers that the committer was given and has not answered yet.
Call = Hashable


class CommitterCalls(Protocol):
    """The committer, as calls that begin now and end at some time."""

    def begin(self, offers: Sequence[Offer]) -> Call:
        """Give the committer some offers."""
        ...

    def ended(self, call: Call) -> bool:
        """Whether the call has ended, well or not."""
        ...

    def answers(self, call: Call) -> list[CommitResult] | None:
        """The answers to a call, for which it waits; None if they are lost: the offers may be repeated."""
        ...


class OffersAhead:
    """Implements `contracts.CommitOffers`, and takes offers of a cycle before the others are known.

    Parameters
    ----------
    gives_up
        Whether lost answers are not asked for again.
    """

    def __init__(self, committer: CommitterCalls, gives_up: Callable[[], bool] = lambda: False) -> None:
        self._committer, self._gives_up = committer, gives_up
        self._waiting: list[Offer] = []
        self._asked: tuple[Call, list[Offer]] | None = None
        self._answers: dict[str, CommitResult] = {}

    def ahead(self, offer: Offer) -> None:
        """Take an offer that the next call of this object will repeat; it does not wait for an answer."""
        self._waiting.append(offer)
        if self._asked is not None and self._committer.ended(self._asked[0]):
            self._take()
        self._ask()

    def __call__(self, offers: Sequence[Offer]) -> list[CommitResult]:
        """The answers to all offers of a cycle, in order. Where it gave up, an offer counts as not judged."""
        known = {*self._answers, *(one.plan_id for one in self._waiting)}
        known |= {one.plan_id for one in self._asked[1]} if self._asked is not None else set()
        self._waiting += [one for one in offers if one.plan_id not in known]
        while (self._asked is not None or self._waiting) and not self._gives_up():
            self._ask()
            self._take()
        answers, self._answers, self._waiting, self._asked = self._answers, {}, [], None
        return [answers.get(one.plan_id) or CommitResult(one.plan_id, "unready", _GIVEN_UP) for one in offers]

    def _ask(self) -> None:
        """Begin a call with what waits, unless one is on its way."""
        if self._asked is None and self._waiting:
            self._asked, self._waiting = (self._committer.begin(self._waiting), self._waiting), []

    def _take(self) -> None:
        """Wait for the call on its way; what got no answer waits again, before all others."""
        assert self._asked is not None
        (call, offers), self._asked = self._asked, None
        answers = self._committer.answers(call)
        if answers is None:
            self._waiting = [*offers, *self._waiting]
        else:
            self._answers.update((one.plan_id, one) for one in answers)
