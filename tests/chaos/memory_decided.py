"""Decisions as they came about in memory: the state that each was judged on, and the cycles that offered them.

A history does not say what a committer had heard, so it is noted here while it happens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from actors.broker.ledger import Lease, Recorded, RecordOutcome
from actors.commit.committer import Committer
from actors.commit.judged import Judged, Recordable
from actors.contracts import CommitResult, Offer, SnapshotUpdate
from pipeline.actions.backoff import Backoff
from pipeline.actions.setup import Setup
from pipeline.cluster.checkpoint import decode
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.verdict import Accepted
from pipeline.policy import Policy
from tests.chaos.decision_checks import Decided
from tests.chaos.decisions_again import offered
from tests.support.encoded import encoded

#: Of cycles that offered something, and of those that offered nothing, one in so many is run again.
_OFFERING_EVERY, _IDLE_EVERY = 6, 40


class NotingCommitter(Committer):
    """Notes each plan that it recorded as accepted, with the state on which it was judged."""

    noted: list[Decided] | None = None

    _on: tuple[tuple[Judged, Snapshot], ...] = ()

    def commit(self, offers: Sequence[Offer]) -> list[CommitResult]:
        self._on = ()
        return super().commit(offers)

    def _judged(self, offer: Offer, number: int, newest: Snapshot, lease: Lease) -> Judged:
        on = self._state.over(newest)
        judged = super()._judged(offer, number, newest, lease)
        self._on = (*self._on, (judged, on))  # a plan may be offered twice at once
        return judged

    def _answer(self, packed: Recordable, outcome: RecordOutcome, lease: Lease) -> CommitResult:
        judged = packed.judged
        if self.noted is not None and isinstance(outcome, Recorded) and isinstance(judged.verdict, Accepted):
            (on,) = (state for one, state in self._on if one is judged)
            self.noted.append(Decided(judged.offer.plan_id, judged.verdict.statement, on, self._now_s()))
        return super()._answer(packed, outcome, lease)


@dataclass(frozen=True, slots=True)
class CycleRun:
    """What a cycle of the dispatcher began with, and the ids of the plans that it offered."""

    news: SnapshotUpdate
    now: float
    backoff: Backoff
    offered: tuple[str, ...]

    def objection(self, policy: Policy) -> str | None:
        """What differs where the core's own cycle runs on the same state, as ``simulate`` runs it; None: nothing."""
        setup = Setup(self.news.turn.closed, self.backoff)
        found = offered(decode(encoded(self.news.snapshot)), policy, self.now, setup)
        if found == self.offered:
            return None
        return f"on revision {self.news.snapshot.revision} {self.offered} were offered; run again it is {found}"


class CycleRuns:
    """The cycles of a dispatcher that are run again: those that offered something, and some of the others."""

    def __init__(self) -> None:
        self._kept: list[CycleRun] = []
        self._seen = Counter[bool]()

    def note(self, news: SnapshotUpdate, now: float, backoff: Backoff, offers: Sequence[Offer]) -> None:
        """Note a cycle in which no search was lost."""
        self._seen[bool(offers)] += 1
        if self._seen[bool(offers)] % (_OFFERING_EVERY if offers else _IDLE_EVERY) == 1:
            self._kept.append(CycleRun(news, now, backoff, tuple(offer.plan_id for offer in offers)))

    def objections(self, policy: Policy) -> Iterator[str]:
        """One sentence for each cycle that the core decides in another way when it is run again."""
        said = (one.objection(policy) for one in self._kept)
        yield from (one for one in said if one is not None)
