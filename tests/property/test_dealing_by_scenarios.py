"""Podgroups alike under the profile `kai`: served at once, each plan holds after those before it, and none is missed.

One after the other they are served as upstream does, and can break fewer podgroups (in preempt on 2 of 400 clusters,
in reclaim on none); in sum they do not. More seeds by

    python -m tests.property.test_dealing_by_scenarios 0 2000
"""

import random
import sys
from typing import Any

import numpy as np
import pytest

from actors.cli.simulate import open_case
from pipeline.cycle import Cycle
from pipeline.policy import Purpose
from tests.support.dealt_in_turn import defect_in, served
from tests.support.depth import sampled
from tests.support.every_scenario import contended
from tests.support.seeds import compare

#: In the last one victims of one queue differ, and may go in one order only.
SEEDS = (*range(sampled(60)), 208)


def several(seed: int, purpose: Purpose) -> dict[str, Any]:
    """A contended cluster in which two to five podgroups alike wait, which need all of their tasks."""
    document, rng = contended(seed, purpose), random.Random(seed)
    first = document["podgroups"].pop()
    first["tasks"] = [dict(first["tasks"][0], name=f"w{n}") for n in range(rng.choice([1, 1, 2]))]
    first["min_available"] = len(first["tasks"])
    for at in range(rng.randint(2, 5)):
        tasks = [task | {"name": f"{at}-{task['name']}"} for task in first["tasks"]]
        document["podgroups"].append(first | {"name": f"waits-{at}", "created": float(at), "tasks": tasks})
    return document


def broken(done: Cycle) -> int:
    return sum(plan.price.gangs_broken for plan in done.plans)


def defect_of(seed: int, purpose: Purpose = Purpose.RECLAIM) -> str | None:
    """What is wrong with the plans for one cluster; None if nothing is."""
    case = open_case(several(seed, purpose))
    return defect_in(case, *served(case))


@pytest.mark.parametrize("purpose", [Purpose.PREEMPT, Purpose.RECLAIM], ids=["preempt", "reclaim"])
def test_each_plan_is_lawful_after_those_before_it_and_none_is_missed(purpose: Purpose) -> None:
    wrong = {seed: found for seed in SEEDS if (found := defect_of(seed, purpose))}
    assert not wrong


@pytest.mark.parametrize("purpose", [Purpose.PREEMPT, Purpose.RECLAIM], ids=["preempt", "reclaim"])
def test_together_they_break_no_more_podgroups_in_sum(purpose: Purpose) -> None:
    done = [served(open_case(several(seed, purpose))) for seed in SEEDS]
    counted = np.array([[broken(at_once), broken(in_turn)] for at_once, in_turn in done])
    together, alone = counted.sum(axis=0)
    assert 0 < together <= alone


if __name__ == "__main__":
    sys.exit(compare(defect_of, int(sys.argv[1]), int(sys.argv[2])))
