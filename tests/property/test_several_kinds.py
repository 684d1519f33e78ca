"""Many podgroups of a few kinds that take turns: kind by kind each gets a plan that holds after those before it.

More seeds by

    python -m tests.property.test_several_kinds 0 2000
"""

import random
import sys
from typing import Any

import pytest

from actors.cli.simulate import open_case
from pipeline.policy import Purpose
from tests.support.dealt_in_turn import defect_in, served
from tests.support.depth import sampled
from tests.support.full_fleets import WAYS, full, full_fleet, starving
from tests.support.seeds import compare


def mixed(seed: int, profile: str, purpose: Purpose) -> dict[str, Any]:
    """Full nodes, and podgroups of two to four kinds in any order; some have a small task."""
    rng = random.Random(seed)
    nodes, podgroups = full(rng, 30, [1, 1, 2, 4, 8], purpose)
    kinds = [
        [rng.choice([1, 1, 2, 4, 8])] * rng.choice([1, 1, 1, 2, 3]) + [1] * (rng.random() < 0.3)
        for _ in range(rng.randint(2, 4))
    ]
    for at in range(rng.randint(2 * len(kinds), 12 * len(kinds))):
        sizes = rng.choice(kinds)
        podgroups.append(starving(at, sizes, len(sizes), purpose))
    return full_fleet(nodes, podgroups, profile, purpose)


def defect_of(seed: int) -> str | None:
    """What is wrong with what is decided for one cluster, and not one after the other; None if nothing is."""
    for profile, purpose in WAYS:
        case = open_case(mixed(seed, profile, purpose))
        together, alone = served(case)
        found = defect_in(case, together)
        if found and defect_in(case, alone) is None:
            return f"{profile} {purpose.value}: {found}"
    return None


@pytest.mark.parametrize("seed", range(sampled(60)))
def test_each_plan_holds_after_those_before_it(seed: int) -> None:
    assert defect_of(seed) is None


@pytest.mark.parametrize(("profile", "purpose"), WAYS)
def test_no_more_podgroups_break_in_sum_than_one_after_the_other(profile: str, purpose: Purpose) -> None:
    """Where the same podgroups get a plan."""
    together, alone = 0, 0
    for seed in range(20):
        some, others = (done.plans for done in served(open_case(mixed(seed, profile, purpose))))
        if {one.statement.preemptor for one in some} == {one.statement.preemptor for one in others}:
            together += sum(plan.price.gangs_broken for plan in some)
            alone += sum(plan.price.gangs_broken for plan in others)
    assert 0 < together < alone


if __name__ == "__main__":
    sys.exit(compare(defect_of, int(sys.argv[1]), int(sys.argv[2])))
