"""Decisions of a replay, timed: propose, judge, carry out, and the fleet's answer."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pipeline.actions.allocate import redeem
from pipeline.actions.progress import Progress
from pipeline.cluster.arrays import NONE, Rows, frozen
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import BOUND, RUNNING, TERMINATING
from pipeline.cluster.updates.events import CURRENT, EVICTED, Changes, TaskNews
from pipeline.cluster.updates.fold import fold
from pipeline.decision.attempt import Attempt
from pipeline.decision.plan import NoPlan, Plan
from pipeline.policy import Policy, Purpose
from pipeline.propose import propose


@dataclass(frozen=True)
class Timed:
    """An outcome and how long each of its runs took, in milliseconds."""

    outcome: Plan | NoPlan
    spent_ms: tuple[float, ...]
    steady: bool


def decide(
    snapshot: Snapshot, policy: Policy, podgroup: int, now: float, *, purpose: Purpose = Purpose.PREEMPT, runs: int = 1
) -> Timed:
    """Propose for one podgroup, ``runs`` times, each on a snapshot of which nothing was derived yet.

    ``steady`` says whether all runs came to the same victims and places.
    """
    spent, first, steady = [], None, True
    for _ in range(max(runs, 1)):
        attempt = Attempt(replace(snapshot), policy, purpose, (podgroup,), None, now)
        begin = time.perf_counter()
        outcome = propose(attempt)
        spent.append((time.perf_counter() - begin) * 1e3)
        if first is None:
            first = outcome
        steady &= _same(first, outcome)
    assert first is not None
    return Timed(first, tuple(spent), steady)


def _same(one: Plan | NoPlan, other: Plan | NoPlan) -> bool:
    if isinstance(one, NoPlan) or isinstance(other, NoPlan):
        return type(one) is type(other)
    columns = ("evictions", "nominated", "nominated_node")
    return all(np.array_equal(getattr(one.statement, name), getattr(other.statement, name)) for name in columns)


def percentiles(spent_ms: Sequence[float]) -> dict[str, float]:
    """Median and 99th percentile of times in milliseconds, and of how many."""
    if not spent_ms:
        return {"runs": 0}
    p50, p99 = np.percentile(spent_ms, (50, 99))
    return {"p50_ms": round(float(p50), 2), "p99_ms": round(float(p99), 2), "runs": len(spent_ms)}


def victims_gone(snapshot: Snapshot, now: float) -> Snapshot:
    """The fleet's answer to evictions: whoever was told to end has ended, and waits again unless it is gone then."""
    return _told(snapshot, np.flatnonzero(snapshot.tasks.status == TERMINATING), EVICTED, now)


def promises_kept(snapshot: Snapshot, policy: Policy, now: float) -> Snapshot:
    """Promised tasks start where the room is there by now, and run."""
    after = redeem(Progress(snapshot, policy, now)).snapshot
    return _told(after, np.flatnonzero(after.tasks.status == BOUND), RUNNING, now)


def _told(snapshot: Snapshot, rows: Rows, status: int, now: float) -> Snapshot:
    if len(rows) == 0:
        return snapshot
    node = snapshot.tasks.node[rows] if status == RUNNING else np.full(len(rows), NONE)
    news = TaskNews(
        row=frozen(rows, np.int64),
        status=frozen(np.full(len(rows), status), np.uint8),
        node=frozen(node, np.int32),
        card=frozen(snapshot.tasks.card[rows] if status == RUNNING else np.full(len(rows), NONE), np.int32),
        incarnation=frozen(np.full(len(rows), CURRENT), np.int64),
        revision=frozen(snapshot.tasks.revision[rows] + 1, np.int64),
        at=frozen(np.full(len(rows), now), np.float64),
    )
    return fold(snapshot, Changes(tasks=news))
