"""Podgroups that can do without some tasks, served at once: each plan holds, and the rest is asked for in order.

More seeds by

    python -m tests.property.test_elastic_at_once 0 2000
"""

import random
import sys
from typing import Any
from unittest.mock import patch

import pytest

from actors.cli.simulate import open_case
from pipeline.cycle import Cycle, cycle
from pipeline.decision.decided import carried_out
from pipeline.policy import Purpose
from tests.support.dealt_in_turn import defect_in, served
from tests.support.depth import sampled
from tests.support.full_fleets import WAYS, full, full_fleet, starving
from tests.support.seeds import compare


def elastic(seed: int, profile: str, purpose: Purpose) -> dict[str, Any]:
    """Full nodes, and podgroups of up to three kinds in any order; most can do without some tasks."""
    rng = random.Random(seed)
    nodes, podgroups = full(rng, 20, [1, 1, 2, 4], purpose)
    kinds = [(rng.choice([1, 1, 2]), many := rng.randint(1, 5), rng.randint(1, many)) for _ in range(rng.randint(1, 3))]
    for at in range(rng.randint(2 * len(kinds), 10 * len(kinds))):
        size, many, minimum = rng.choice(kinds)
        podgroups.append(starving(at, [size] * many, minimum, purpose))
    return full_fleet(nodes, podgroups, profile, purpose)


def later_turns(done: Cycle) -> list[int]:
    """Whose turns got a plan after their first one, in order."""
    every = [plan.statement.preemptor for plan in done.plans]
    return [one for at, one in enumerate(every) if one in every[:at]]


def defect_of(seed: int) -> str | None:
    """What is wrong with what is decided for one cluster, and not one after the other; None if nothing is.

    Where the same podgroups have as many turns, those after the first ones are in the same order.
    """
    for profile, purpose in WAYS:
        case = open_case(elastic(seed, profile, purpose))
        together, alone = served(case)
        found = defect_in(case, together)
        if found and defect_in(case, alone) is None:
            return f"{profile} {purpose.value}: {found}"
        some, others = later_turns(together), later_turns(alone)
        if sorted(some) == sorted(others) and some != others:
            return f"{profile} {purpose.value}: {some}, one after the other {others}"
    return None


@pytest.mark.parametrize("seed", range(sampled(60)))
def test_each_plan_holds_after_those_before_it_and_the_rest_is_asked_for_in_order(seed: int) -> None:
    assert defect_of(seed) is None


@pytest.mark.parametrize("seed", range(sampled(30)))
def test_what_one_is_told_that_finds_no_room_to_grow_holds_for_others_of_its_kind(seed: int) -> None:
    """Also in the next cycle, in which all that grow have what they were promised."""
    for profile, purpose in WAYS:
        case = open_case(elastic(seed, profile, purpose))
        after = case.snapshot
        for plan in cycle(case.snapshot, case.policy, case.now).plans:
            after = carried_out(plan.statement, after, case.now)
        for state in (case.snapshot, after):
            done = cycle(state, case.policy, case.now)
            with patch("pipeline.actions.evicting.one_pass.growing_kind", lambda *_: None):
                alone = cycle(state, case.policy, case.now)
            assert repr((done.plans, done.unplaced)) == repr((alone.plans, alone.unplaced))


@pytest.mark.parametrize(("profile", "purpose"), WAYS)
def test_no_more_podgroups_break_in_sum_than_one_after_the_other(profile: str, purpose: Purpose) -> None:
    """And as many get a plan."""
    broken, served_ = [0, 0], [0, 0]
    for seed in range(20):
        for way, done in enumerate(served(open_case(elastic(seed, profile, purpose)))):
            broken[way] += sum(plan.price.gangs_broken for plan in done.plans)
            served_[way] += len({plan.statement.preemptor for plan in done.plans})
    assert 0 < broken[0] < broken[1]
    assert served_[0] >= served_[1]


if __name__ == "__main__":
    sys.exit(compare(defect_of, int(sys.argv[1]), int(sys.argv[2])))
