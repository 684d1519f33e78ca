"""One price for all solvers: what the bundle search counts in its kernels is what ``price_of`` says of the victims."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from pipeline.cluster.arrays import NONE, Rows
from pipeline.cluster.rules.minima_met import breaks_without, minima_met
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import RUNNING
from pipeline.decision.attempt import Attempt
from pipeline.decision.plan import Plan
from pipeline.decision.price import NO_PRIORITY, in_units, lost_work, needed_by, price_of, prices_of
from pipeline.policy import Purpose
from pipeline.propose import host_of
from tests.support.brute_force import attempt_of, crowded
from tests.support.deciding import plans
from tests.support.depth import sampled
from tests.support.strategies import documents


def plain_price(attempt: Attempt, plan: Plan) -> Any:
    snapshot, made, rank = attempt.snapshot, plan.statement, None
    if attempt.purpose is Purpose.RECLAIM:
        queue = snapshot.podgroups.queue
        rank = host_of(attempt).victim_queue_rank(int(queue[attempt.podgroups[0]]))[queue]
    assert (made.nominated_node[np.isin(made.nominated, made.placed)] != NONE).all()
    requested = snapshot.shapes.request[snapshot.tasks.shape[made.placed]].sum(axis=0)
    return price_of(snapshot, made.evictions, requested, lost_work(snapshot, attempt.now), rank, plan.domain)


@settings(max_examples=sampled(60))
@given(documents())
def test_a_plan_of_bundles_costs_what_its_victims_cost_whichever_solver_took_them(document: dict[str, Any]) -> None:
    _, found = plans(document)
    for attempt, plan in found:
        plain = plain_price(attempt, plan)
        assert abs(plain.lost_work - plan.price.lost_work) < 2e-6  # sums in another order
        assert (*_exact(plain),) == (*_exact(plan.price),)


def _exact(price: Any) -> tuple[int, ...]:
    return (
        price.budgets_violated, price.queue_rank, price.gangs_broken, price.highest_priority,
        price.victims, price.tier, price.domain, *(level for level, _ in price.broken + price.surplus),
    )  # fmt: skip


def counted_one_by_one(snapshot: Snapshot, some: Rows, every: Rows, needed: Rows, rank: Rows | None) -> tuple[Any, ...]:
    """What a set loses, podgroup by podgroup: (rank, broken, surplus, highest priority, victims, gangs broken)."""
    groups, weight = snapshot.podgroups, lost_work(snapshot, 1e4)
    unit = in_units(snapshot.shapes.request, needed)[snapshot.tasks.shape]
    owner, broken, surplus = snapshot.tasks.podgroup[some], dict[int, float](), dict[int, float]()
    losing = np.unique(owner).tolist()
    falls = {one: bool(breaks_without(snapshot, np.array([one]), every)[0]) for one in losing}
    for one in losing:
        held = unit[some[owner == one]].sum() if minima_met(snapshot).pipelined[one] else 0.0
        held = in_units(snapshot.podgroup_held[[one]], needed)[0] if falls[one] else held
        level = int(groups.priority[one]) if rank is None else 0
        work = broken if falls[one] else surplus
        work[level] = work.get(level, 0.0) + held * weight[one]
    told = (tuple((level, round(work[level], 6)) for level in sorted(work, reverse=True)) for work in (broken, surplus))
    highest = max(groups.priority[losing].tolist(), default=NO_PRIORITY)
    least_fair = 0 if rank is None else max(rank[losing].tolist(), default=0)
    return (least_fair, *told, highest, len(some), sum(falls.values()))


@pytest.mark.parametrize("seed", range(sampled(40)))
def test_several_sets_cost_what_their_podgroups_lose(seed: int) -> None:
    rng, purpose = np.random.default_rng(seed), (Purpose.PREEMPT, Purpose.RECLAIM)[seed % 2]
    snapshot = attempt_of(crowded(seed, purpose), purpose).snapshot
    running = np.flatnonzero(snapshot.tasks.status == RUNNING)
    sets = [np.sort(rng.choice(running, rng.integers(0, len(running) + 1), replace=False)) for _ in range(3)]
    requested = snapshot.shapes.request.max(axis=0)
    rank = rng.integers(0, 4, len(snapshot.podgroups)) if purpose is Purpose.RECLAIM else None
    found = prices_of(snapshot, sets, requested, lost_work(snapshot, 1e4), rank, 0)
    every, needed = np.concatenate(sets), needed_by(requested)
    for one, some in zip(found, sets, strict=True):
        told = one.queue_rank, one.broken, one.surplus, one.highest_priority, one.victims, one.gangs_broken
        assert told == counted_one_by_one(snapshot, some, every, needed, rank)
