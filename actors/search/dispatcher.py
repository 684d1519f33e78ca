"""The dispatcher: a cycle of `pipeline.cycle` over the newest snapshot, with the searching spread over others.

It provides what the core does not have: other searchers, the clock, spans, and a committer. It decides nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from actors.contracts import (
    Began,
    CommitOffers,
    CommitResult,
    Offer,
    PendingReport,
    Searchers,
    SnapshotUpdate,
    Tell,
    plan_id,
)
from actors.observability.telemetry import Telemetry
from actors.observability.traces import SPAN_CYCLE, SPAN_INGEST, Work
from actors.search.batched_search import BatchedSearch, Spread
from actors.search.held_back import HeldBack, held_back_of
from actors.search.searcher import Searcher
from pipeline.actions.backoff import Backoff
from pipeline.actions.registry import actions_of
from pipeline.actions.setup import Noted, Setup
from pipeline.cluster.snapshot import Snapshot
from pipeline.cycle import Cycle, cycle, next_due
from pipeline.decision.plan import Plan
from pipeline.decision.verdict import Accepted, Conflict, Stale, Verdict
from pipeline.policy import Policy


@dataclass(frozen=True, slots=True)
class Cycled:
    """The outcome of a cycle.

    Attributes
    ----------
    starving
        How many gang groups were searched for or paused.
    unplaced
        How many gang groups have no plan.
    again
        Whether there is more to do even without news.
    sequence
        The last decision recorded; the next cycle needs a snapshot that contains it.
    """

    answers: tuple[CommitResult, ...] = ()
    starving: int = 0
    unplaced: int = 0
    again: bool = False
    sequence: int = 0


def _not_ahead(offer: Offer) -> None:
    """For a committer that is asked at the end of the cycle."""


class Dispatcher:
    """Runs cycles. Not for several threads at once.

    Parameters
    ----------
    here, elsewhere
        Searchers: one in this process, and others.
    commit
        Has plans judged and recorded.
    ahead
        Hears of offers that the next call of ``commit`` will repeat, as soon as they are certain.
    tell
        Called with the podgroups that starve or are not scheduled, and why, whenever that changes.
    now_s
        The clock.
    backoff
        The pauses to begin with.
    """

    def __init__(
        self,
        policy: Policy,
        here: Searcher,
        elsewhere: Searchers,
        commit: CommitOffers,
        telemetry: Telemetry,
        *,
        now_s: Callable[[], float],
        backoff: Backoff | None = None,
        spread: Spread | None = None,
        tell: Tell | None = None,
        ahead: Callable[[Offer], object] = _not_ahead,
    ) -> None:
        actions_of(policy.actions)
        self._policy, self._commit, self._ahead = policy, commit, ahead
        self._spread = spread if spread is not None else Spread()
        self._search = BatchedSearch(here, elsewhere, self._spread, telemetry)
        self._telemetry, self._now_s = telemetry, now_s
        self._backoff = backoff if backoff is not None else Backoff()
        self._tell, self._cycled_at = tell, 0.0
        self._held = HeldBack(-1, {})
        self._told: tuple[int, tuple[int, ...], bytes] = (-1, (), b"")

    def next_at(self, snapshot: Snapshot) -> float | None:
        """When to run a cycle even if nothing new is heard, in seconds."""
        times = self._backoff.next_at(snapshot), next_due(snapshot, self._policy, self._cycled_at)
        return min((at for at in times if at is not None), default=None)

    def step(self, name: str, **attributes: Noted) -> AbstractContextManager[Work]:
        """Implements `pipeline.actions.setup.Observer`: a step is a span."""
        return self._telemetry.span(name, None, (), **attributes)

    def cycle(self, news: SnapshotUpdate) -> Cycled:
        """Run a cycle on the newest snapshot, and have its plans committed."""
        now, figures = self._now_s(), self._telemetry.figures
        figures.cycle_began.set(now)
        try:
            return self._cycle(news, now)
        finally:
            figures.cycle_began.drop()

    def _cycle(self, news: SnapshotUpdate, now: float) -> Cycled:
        started_s = time.perf_counter()
        if now < self._cycled_at:  # the clock was put back: pauses would last for as much longer
            self._backoff = self._backoff.kept(())
        self._cycled_at = now
        snapshot, turn, offers, answers = news.snapshot, news.turn, list[Offer](), list[CommitResult]()
        backoff = Setup(turn.closed, self._backoff).active_at(now).backoff
        began = Began(now, tuple(sorted(gang_group[0] for gang_group in backoff.held(snapshot, now))))

        def certain(plan: Plan) -> None:
            offers.append(self._offer(plan, began))
            self._ahead(offers[-1])

        def commit(plans: Sequence[Plan]) -> list[Verdict | None]:
            offers.extend(self._offer(plan, began) for plan in plans[len(offers) :])
            answers.extend(self._commit(offers))
            return [_verdict(plan, answer) for plan, answer in zip(plans, answers, strict=True)]

        with self._telemetry.span(SPAN_CYCLE, revision=snapshot.revision, policy=self._policy.digest) as work:
            with self._telemetry.span(SPAN_INGEST, links=turn.links) as ingest:
                ingest.set(
                    revision=snapshot.revision, decided=snapshot.decided, tasks=len(snapshot.tasks),
                    nodes=len(snapshot.nodes), fold_ms=turn.fold_ms, publish_ms=turn.publish_ms,
                )  # fmt: skip
            setup = Setup(turn.closed, self._backoff, self._spread.preemptors, self._search, self, certain)
            done = cycle(snapshot, self._policy, now, setup, commit)
            self._backoff = done.backoff
            self._report(done, snapshot)
            took_s = time.perf_counter() - started_s
            accepted = sum(answer.accepted for answer in answers)
            work.set(starving=len(done.starving), plans=len(done.plans), accepted=accepted)
        self._figures(done, accepted, took_s)
        sequence = max((answer.sequence for answer in answers if answer.accepted), default=0)
        unplaced = len({one.gang_group for one in done.unplaced})
        return Cycled(tuple(answers), len(done.starving), unplaced, done.more, sequence)

    def stand_by(self) -> None:
        """Report no more how many wait, since another service decides now."""
        figures = self._telemetry.figures
        for gauge in (figures.starving, figures.unschedulable, figures.unschedulable_tasks):
            gauge.drop()

    def _offer(self, plan: Plan, began: Began) -> Offer:
        return Offer(plan_id(str(plan.statement.preemptor), plan), plan, began, self._telemetry.carrier())

    def _report(self, done: Cycle, snapshot: Snapshot) -> None:
        if self._tell is None:
            return
        starving = tuple(dict.fromkeys(row for gang_group in done.starving for row in gang_group))
        unscheduled = done.unscheduled
        known = snapshot.epoch, starving, unscheduled.table[:, :2].tobytes()  # podgroups and reasons
        if done.unplaced or known != self._told:
            self._told = known
            self._held = held_back_of(done, self._policy, self._cycled_at, self._held, snapshot.epoch)
            said = {row: told for row, (_, told) in self._held.by_row.items()}
            self._tell(PendingReport(snapshot.epoch, starving, done.unplaced, unscheduled, said))

    def _figures(self, done: Cycle, accepted: int, took_s: float) -> None:
        figures = self._telemetry.figures
        figures.cycle_s.record(took_s)
        figures.starving.set(len(done.starving))
        figures.unschedulable.set(len(done.unscheduled))
        figures.unschedulable_tasks.set(int(done.unscheduled.unready.sum()))
        figures.retries.add(int(done.unscheduled.retried.sum()))
        for _ in range(accepted):
            figures.decision_s.record(took_s)


def _verdict(plan: Plan, answer: CommitResult) -> Verdict | None:
    """The committer's result as a verdict; None if it did not judge."""
    if answer.accepted:
        return Accepted(answer.statement if answer.statement is not None else plan.statement)
    if answer.verdict == "stale":
        return Stale(answer.reason)
    return Conflict(answer.reason) if answer.verdict == "conflict" else None
