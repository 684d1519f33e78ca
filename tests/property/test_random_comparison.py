"""Gang-aware preempt and reclaim against all that could be done, on random small clusters with everything that decides.

None is missed, none is unlawful, and the price is the least. The test takes a sample; more seeds by

    python -m tests.property.test_random_comparison preempt 0 4000
"""

import sys

import pytest

from pipeline.decision.plan import Plan
from pipeline.policy import Purpose
from pipeline.propose import propose
from tests.support.brute_force import attempt_of, crowded, least_of, minima

SEEDS = range(60)


def defect_of(seed: int, purpose: Purpose) -> str | None:
    """What is wrong with the plan for one cluster; None if it is the cheapest that there is."""
    attempt = attempt_of(crowded(seed, purpose), purpose)
    if not minima(attempt):
        return None
    least, found = least_of(attempt), propose(attempt)
    if not isinstance(found, Plan):
        return None if least is None else f"missed: {found.explanation.reason}, {least}"
    if least is None:
        return f"unlawful: {found.statement.evictions}"
    if found.price != least.price:
        return f"costs {found.price} for {found.statement.evictions}, least {least}"
    return None


@pytest.mark.parametrize("purpose", [Purpose.PREEMPT, Purpose.RECLAIM], ids=["preempt", "reclaim"])
def test_no_plan_is_missed_none_is_unlawful_and_none_costs_more_than_the_least(purpose: Purpose) -> None:
    wrong = {seed: found for seed in SEEDS if (found := defect_of(seed, purpose))}
    assert not wrong


def main(purpose: Purpose, first: int, stop: int) -> int:
    """Compare a range of seeds, and print what is wrong."""
    wrong = 0
    for seed in range(first, stop):
        found = defect_of(seed, purpose)
        if found:
            wrong += 1
            sys.stdout.write(f"{seed} {found}\n")
    sys.stdout.write(f"{wrong} of {stop - first}\n")
    return wrong


if __name__ == "__main__":
    sys.exit(main(Purpose(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])) > 0)
