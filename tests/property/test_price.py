"""One price for all solvers: what the bundle search counts in its kernels is what ``price_of`` says of the victims."""

from typing import Any

import numpy as np
from hypothesis import given, settings

from pipeline.cluster.arrays import NONE
from pipeline.decision.attempt import Attempt
from pipeline.decision.plan import Plan
from pipeline.decision.price import lost_work, price_of
from pipeline.policy import Purpose
from pipeline.propose import host_of
from tests.property.test_invariants import plans
from tests.support.strategies import documents


def plain_price(attempt: Attempt, plan: Plan) -> Any:
    snapshot, made, rank = attempt.snapshot, plan.statement, None
    if attempt.purpose is Purpose.RECLAIM:
        queue = snapshot.podgroups.queue
        rank = host_of(attempt).victim_queue_rank(int(queue[attempt.podgroups[0]]))[queue]
    assert (made.nominated_node[np.isin(made.nominated, made.placed)] != NONE).all()
    requested = snapshot.shapes.request[snapshot.tasks.shape[made.placed]].sum(axis=0)
    return price_of(snapshot, made.evictions, requested, lost_work(snapshot, attempt.now), rank, plan.domain)


@settings(max_examples=60)
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
