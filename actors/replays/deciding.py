"""Timed decisions of a replay, and the fleet's answer to them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from actors.fleets.prompt import started
from pipeline.actions.progress import Progress, StateSoFar
from pipeline.actions.redeem import redeem
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import BOUND
from pipeline.decision.attempt import Attempt
from pipeline.decision.plan import NoPlan, Plan
from pipeline.policy import Policy, Purpose
from pipeline.propose import propose


@dataclass(frozen=True)
class Timed:
    """An outcome, the milliseconds of each run, and whether all runs came to the same victims and places."""

    outcome: Plan | NoPlan
    spent_ms: tuple[float, ...]
    steady: bool


def decide(snapshot: Snapshot, policy: Policy, podgroup: int, now: float, *, runs: int = 1) -> Timed:
    """Propose to preempt for one podgroup, ``runs`` times, each time on a new copy of the snapshot.

    The search is that of the policy's action that preempts, by the solver that the policy names for it.
    """
    spent, first, steady = [], None, True
    action = next((name for name in policy.actions if name.endswith(Purpose.PREEMPT.value)), "")
    for _ in range(max(runs, 1)):
        attempt = Attempt(replace(snapshot), policy, Purpose.PREEMPT, (podgroup,), None, now, action)
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
    """Median and 99th percentile of times in milliseconds, and their number."""
    if not spent_ms:
        return {"runs": 0}
    p50, p99 = np.percentile(spent_ms, (50, 99))
    return {"p50_ms": round(float(p50), 2), "p99_ms": round(float(p99), 2), "runs": len(spent_ms)}


def promises_kept(snapshot: Snapshot, policy: Policy, now: float) -> Snapshot:
    """The state after nominated tasks have started wherever their room is free."""
    after = redeem(Progress(StateSoFar(snapshot), policy, now)).snapshot
    return started(after, np.flatnonzero(after.tasks.status == BOUND), now)
