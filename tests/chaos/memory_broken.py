"""Parts that are broken on purpose: whoever cannot tell them from good ones tests nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from actors.broker.bus import DECISIONS, EVENTS, DeadLetter
from actors.broker.ledger import Lease, Record, RecordOutcome
from actors.broker.memory_ledger import MemoryLedger
from actors.contracts import Began, CommitResult, Offer
from actors.search.dispatcher import Dispatcher
from pipeline.cluster.arrays import Rows
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import PENDING, RUNNING
from pipeline.decision.attempt import Attempt
from pipeline.decision.plan import Plan
from pipeline.decision.statement import Statement
from pipeline.decision.verdict import Accepted, Verdict
from pipeline.judge import judge
from pipeline.policy import Policy, Purpose
from tests.chaos.memory_ports import KeptBus
from tests.support.deciding import shortchanged


class UnfencedLedger(MemoryLedger):
    """Lets everybody write, whoever holds the lease."""

    def _holds(self, lease: Lease) -> bool:
        del lease
        return True


class ForgetfulLedger(MemoryLedger):
    """Does not know a plan again, so that a retry is a second decision."""

    def commit(self, lease: Lease, records: Sequence[Record]) -> list[RecordOutcome]:
        self._recorded.clear()
        return super().commit(lease, records)


class HastyLedger(MemoryLedger):
    """Answers that a decision is recorded, and loses every third."""

    def _commit(self, lease: Lease, record: Record) -> RecordOutcome:
        if record.decision and self._revision % 3 == 2:
            return super()._commit(lease, replace(record, decision={}))
        return super()._commit(lease, record)


class LeakyBus(KeptBus):
    """Loses some events without a trace: they were published, and nobody can read them."""

    def publish(self, stream: str, fields: Mapping[str, bytes], *, cap: int | None = None, insist: bool = False) -> str:
        entry = super().publish(stream, fields, cap=cap, insist=insist)
        log = self._log(stream)
        if stream == EVENTS and log.added % 7 == 5:
            del log.ids[-1], log.entries[-1]
        return entry


class SilentBus(KeptBus):
    """Buries nothing."""

    def bury(self, letters: Sequence[DeadLetter]) -> int:
        return len(letters)


class EchoingBus(KeptBus):
    """Now and then a decision stands in the stream twice."""

    def publish(self, stream: str, fields: Mapping[str, bytes], *, cap: int | None = None, insist: bool = False) -> str:
        if stream == DECISIONS and len(self.history.get(DECISIONS, ())) % 4 == 2:
            super().publish(stream, fields, cap=cap, insist=insist)
        return super().publish(stream, fields, cap=cap, insist=insist)


class OneAtATime(Dispatcher):
    """Offers the first plan of a cycle only, which the core's own cycle does not."""

    def __init__(self, *parts: Any, **more: Any) -> None:
        super().__init__(*parts, **more)
        commit = self._commit

        def first(offers: Sequence[Offer]) -> list[CommitResult]:
            return [*commit(offers[:1]), *(CommitResult(offer.plan_id, "unready") for offer in offers[1:])]

        self._commit = first


class Unsteady(Dispatcher):
    """Places the tasks of a gang in the opposite order, every other second."""

    def _offer(self, plan: Plan, began: Began) -> Offer:
        if int(self._now_s()) % 2:
            plan = replace(plan, statement=_mirrored(plan.statement))
        return super()._offer(plan, began)


def _mirrored(made: Statement) -> Statement:
    return replace(made, nominated_node=made.nominated_node[::-1], bound_node=made.bound_node[::-1])


Substitute = Callable[[Attempt, Rows, Rows, Rows], Plan | None]


def substituted_otherwise(substitute: Substitute) -> Substitute:
    """A substitution that puts the first task somewhere else."""

    def substituted(made: Attempt, promised: Rows, overdue: Rows, avoided: Rows) -> Plan | None:
        found = substitute(made, promised, overdue, avoided)
        if found is None:
            return None
        nodes = found.statement.nominated_node.copy()
        nodes[0] = nodes[-1] if nodes[0] != nodes[-1] else nodes[0] - 1
        return replace(found, statement=replace(found.statement, nominated_node=nodes))

    return substituted


Judge = Callable[[Plan, Snapshot, Policy, float], Verdict]


def greedy(takes: Callable[[Statement, Snapshot, int], bool]) -> Judge:
    """A judge that accepts one running task more as a victim, if there is one that ``takes`` names."""

    def judged(plan: Plan, snapshot: Snapshot, policy: Policy, now: float) -> Verdict:
        verdict = judge(plan, snapshot, policy, now)
        if not isinstance(verdict, Accepted) or not len(verdict.statement.evictions):
            return verdict
        made = verdict.statement
        running = np.setdiff1d(np.flatnonzero(snapshot.tasks.status == RUNNING), made.evictions)
        more = [row for row in running.tolist() if takes(made, snapshot, row)][:1]
        return Accepted(replace(made, evictions=np.union1d(made.evictions, np.array(more, np.int64))))

    return judged


def needless(made: Statement, snapshot: Snapshot, row: int) -> bool:
    """A task that may go, and need not."""
    return made.purpose is Purpose.PREEMPT and _may_go(made, snapshot, row)


def too_important(made: Statement, snapshot: Snapshot, row: int) -> bool:
    """A task of the same queue whose priority is not lower."""
    return made.purpose is Purpose.PREEMPT and _of_queue(made, snapshot, row) and not _may_go(made, snapshot, row)


def protected(_: Statement, snapshot: Snapshot, row: int) -> bool:
    """A task that no decision may evict."""
    return not snapshot.podgroups.preemptible[snapshot.tasks.podgroup[row]]


def deserved(made: Statement, snapshot: Snapshot, row: int) -> bool:
    """A task of a queue that holds no more than it deserves once the others have gone."""
    if made.purpose is not Purpose.RECLAIM or _of_queue(made, snapshot, row):
        return False
    victims = np.union1d(made.evictions, np.array([row]))
    return bool(shortchanged(snapshot, replace(made, evictions=victims)))


def _of_queue(made: Statement, snapshot: Snapshot, row: int) -> bool:
    groups = snapshot.podgroups
    return bool(groups.queue[snapshot.tasks.podgroup[row]] == groups.queue[made.preemptor])


def _may_go(made: Statement, snapshot: Snapshot, row: int) -> bool:
    groups, owner = snapshot.podgroups, snapshot.tasks.podgroup[row]
    lower = groups.priority[owner] < groups.priority[made.preemptor]
    return bool(_of_queue(made, snapshot, row) and lower and groups.preemptible[owner])


def without_moves(place: Callable[[Any, int, int, int], dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """An export that tells no promise of a task that has not ended."""

    def forgetful(self: Any, row: int, status: int, shape: int) -> dict[str, Any]:
        told = place(self, row, status, shape)
        return told if status == PENDING else {key: one for key, one in told.items() if key != "nominated_node"}

    return forgetful
