"""Podgroups alike whose queue is full, while nodes have room: served at once, they are served as one after the other.

More seeds by

    python -m tests.property.test_dealing_below_limits 0 2000
"""

import sys

import numpy as np

from actors.cli.simulate import open_case
from pipeline.cycle import Cycle, cycle
from tests.support.below_limits import below_limits
from tests.support.dealt_in_turn import defect_in, served
from tests.support.depth import sampled
from tests.support.seeds import compare

SEEDS = range(sampled(60))


def defect_of(seed: int) -> str | None:
    """What is wrong with the plans for one cluster; None if nothing is."""
    case = open_case(below_limits(seed))
    return defect_in(case, *served(case))


def test_each_plan_is_lawful_after_those_before_it_and_none_is_missed() -> None:
    wrong = {seed: found for seed in SEEDS if (found := defect_of(seed))}
    assert not wrong


def test_at_once_they_lose_no_more_tasks_in_sum() -> None:
    counted = np.array([[_lost(done) for done in served(open_case(below_limits(seed)))] for seed in SEEDS])
    together, alone = counted.sum(axis=0)
    assert 0 < together <= alone


def _lost(done: Cycle) -> int:
    return sum(len(plan.statement.evictions) for plan in done.plans)


def test_in_some_of_the_clusters_podgroups_alike_get_plans_with_victims() -> None:
    cases = [open_case(below_limits(seed)) for seed in SEEDS]
    done = [cycle(case.snapshot, case.policy, case.now).plans for case in cases]
    several = [len(plans) > 1 and any(len(one.statement.evictions) for one in plans) for plans in done]
    assert sum(several) > len(SEEDS) // 6


if __name__ == "__main__":
    sys.exit(compare(defect_of, int(sys.argv[1]), int(sys.argv[2])))
