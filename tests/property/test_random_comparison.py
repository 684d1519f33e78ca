"""Gang-aware preempt and reclaim against all that could be done, on random small clusters with everything that decides.

None is missed, none is unlawful, and the price is the least. In reclaim a step of efficiency does not override
priority: less important work may go instead of up to a step less of it. The test takes a sample; more seeds by

    python -m tests.property.test_random_comparison preempt 0 4000
"""

import random
import sys
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from pipeline.decision.attempt import Attempt
from pipeline.decision.explanation import LowerBound
from pipeline.decision.plan import NoPlan, Plan
from pipeline.decision.price import Price
from pipeline.placement.need import Need
from pipeline.plugins.host import Host
from pipeline.policy import Purpose
from pipeline.propose import propose
from pipeline.solvers.bundles import solver
from pipeline.solvers.bundles.over_compositions import over_compositions
from tests.support.brute_force import GPU, attempt_of, crowded, least_of, minima, priced
from tests.support.depth import sampled
from tests.support.seeds import compare

SEEDS = range(sampled(60))
STEP = 0.05


def choosing(seed: int, purpose: Purpose) -> dict[str, Any]:
    """A cluster in which two or three of four tasks of two sizes make up the minimum of the gang that waits."""
    document, rng = crowded(seed, purpose), random.Random(seed)
    waits = next(one for one in document["podgroups"] if one["name"] == "waits")
    small, wide = sorted(rng.sample((1, 2, 3, 4), 2))
    wides = rng.randint(1, 3)
    sizes = rng.sample([wide] * wides + [small] * (4 - wides), 4)
    tasks = [{"name": f"w{n}", "request": {GPU: size, "cpu": 1}} for n, size in enumerate(sizes)]
    waits.update(tasks=tasks, min_available=rng.randint(1, 3))
    for name in ("subgroups", "min_subgroups", "roles"):
        waits.pop(name, None)
    return document


def defect_of(seed: int, purpose: Purpose, make: Callable[[int, Purpose], dict[str, Any]] = crowded) -> str | None:
    """What is wrong with the plan for one cluster; None if it is the cheapest that there is."""
    attempt = attempt_of(make(seed, purpose), purpose)
    if not minima(attempt):
        return None
    least, found = least_of(attempt), propose(attempt)
    if not isinstance(found, Plan):
        return None if least is None else f"missed: {found.explanation.reason}, {least}"
    if least is None:
        return f"unlawful: {found.statement.evictions}"
    bound = found.explanation.lower_bound
    if bound is not None and not holds(bound, priced(attempt, least.victims, 0, found.statement.placed)):
        return f"is proved by {bound}, but {least} is lawful"
    price = priced(attempt, found.statement.evictions, found.price.domain)
    if price != least.price and not (purpose is Purpose.RECLAIM and within_a_step(price, least.price)):
        return f"costs {price} for {found.statement.evictions}, least {least}"
    return None


def holds(bound: LowerBound, price: Price) -> bool:
    """Whether a bound is no more than a price."""
    if bound.queue_rank != price.queue_rank:
        return bound.queue_rank < price.queue_rank
    return not bound.broken or bound.broken <= price.broken


def within_a_step(price: Price, least: Price) -> bool:
    """Whether a price is above the least by no more than an efficiency step of work, for a lower priority."""
    works = [(sum(dict(one.broken).values()), sum(dict(one.surplus).values())) for one in (price, least)]
    more, less = next(((more, less) for more, less in zip(*works, strict=True) if more != less), (0.0, 0.0))
    same = price.queue_rank == least.queue_rank and price.highest_priority < least.highest_priority
    return same and less >= more * (1 - STEP) - 1e-6


@pytest.mark.parametrize("purpose", [Purpose.PREEMPT, Purpose.RECLAIM], ids=["preempt", "reclaim"])
def test_no_plan_is_missed_none_is_unlawful_and_none_costs_more_than_the_least(purpose: Purpose) -> None:
    wrong = {seed: found for seed in SEEDS if (found := defect_of(seed, purpose))}
    assert not wrong


@pytest.mark.parametrize("purpose", [Purpose.PREEMPT, Purpose.RECLAIM], ids=["preempt", "reclaim"])
def test_ways_to_make_up_the_minimum_that_are_not_searched_for_are_not_the_cheapest(
    purpose: Purpose, monkeypatch: pytest.MonkeyPatch
) -> None:
    ways, searched = list[Need](), list[Need]()

    def told(attempt: Attempt, host: Host, needs: list[Need], search: Callable[..., Plan | NoPlan]) -> Any:
        def one(attempt: Attempt, host: Host, need: Need, known: Sequence[Plan]) -> Plan | NoPlan:
            searched.append(need)
            return search(attempt, host, need, known)

        ways.extend(needs)
        return over_compositions(attempt, host, needs, one)

    monkeypatch.setattr(solver, "over_compositions", told)
    wrong = {seed: found for seed in SEEDS if (found := defect_of(seed, purpose, choosing))}
    assert not wrong
    assert len(searched) < len(ways)


if __name__ == "__main__":
    asked = Purpose(sys.argv[1])
    sys.exit(compare(lambda seed: defect_of(seed, asked), int(sys.argv[2]), int(sys.argv[3])))
