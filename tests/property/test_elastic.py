"""Podgroups with more tasks than their minimum under the profile `kai`, against a search of all sets of victims.

More seeds by

    python -m tests.property.test_elastic 0 4000
"""

import sys
from dataclasses import replace

import numpy as np
import pytest

from pipeline.cluster.rules.minima_met import breaks_without
from pipeline.cluster.rules.minimum import has_minimum
from pipeline.cycle import cycle
from pipeline.decision.attempt import Attempt
from pipeline.decision.plan import Plan
from pipeline.plugins.plugin import Preemptor
from pipeline.policy import Purpose
from pipeline.propose import host_of, propose
from pipeline.solvers.scenarios.asking import asked_for
from pipeline.solvers.scenarios.units import victim_units
from tests.support.brute_force import attempt_of
from tests.support.depth import sampled
from tests.support.every_scenario import contended, working

#: In the last one a task that moves makes up the minimum of its podgroup.
SEEDS = (*range(sampled(60)), 1064)
BOTH = [Purpose.PREEMPT, Purpose.RECLAIM]


def breaks(attempt: Attempt, rows: np.ndarray) -> int:
    """How many podgroups break without some tasks."""
    owner = np.unique(attempt.snapshot.tasks.podgroup[rows]).astype(np.int64)
    return int(breaks_without(attempt.snapshot, owner, rows).sum())


def broken_for_nothing(seed: int) -> str | None:
    """In preempt among equals: the podgroups that break though surplus alone would make room."""
    attempt = attempt_of(contended(seed, Purpose.PREEMPT), Purpose.PREEMPT)
    host = host_of(attempt)
    sets, found = [rows for rows in working(attempt, host) if len(rows)], propose(attempt, host)
    if not isinstance(found, Plan):  # room that is there is for `allocate`
        return f"missed, {sets[0]} would do" if sets else None
    units = victim_units(host, Preemptor(attempt.podgroups, asked_for(host, attempt.podgroups).total, attempt.purpose))
    surplus = units.rows_of(~units.whole)
    sets = [one for one in sets if not breaks(attempt, one) and np.isin(one, surplus).all()]
    rows = np.setdiff1d(found.statement.evictions, found.statement.moved)
    return f"{rows} break {breaks(attempt, rows)}, {sets[0]} none" if breaks(attempt, rows) and sets else None


def not_grown(seed: int, purpose: Purpose) -> str | None:
    """What is wrong once the podgroup that waits has had all its turns in one action."""
    attempt = attempt_of(contended(seed, purpose), purpose)
    before, after = attempt.snapshot, cycle(attempt.snapshot, attempt.policy, attempt.now).snapshot
    left = replace(attempt, snapshot=after)
    more = [rows for rows in working(left, host_of(left)) if len(rows)]  # room that is left over waits
    if more:
        return f"could still grow by {more[0]}"
    for group in range(len(before.podgroups)):
        kept = has_minimum(after, group) or not has_minimum(before, group)
        if after.counts.running[group] and not kept:
            return f"podgroup {group} is left below its minimum"
    return None


def test_no_podgroup_breaks_where_the_surplus_of_its_equals_makes_room() -> None:
    assert not {seed: found for seed in SEEDS if (found := broken_for_nothing(seed))}


@pytest.mark.parametrize("purpose", BOTH, ids=["preempt", "reclaim"])
def test_a_podgroup_grows_in_one_action_as_far_as_it_may_and_others_keep_their_minimum(purpose: Purpose) -> None:
    assert not {seed: found for seed in SEEDS if (found := not_grown(seed, purpose))}


def main(first: int, stop: int) -> None:
    """Compare a range of seeds, and print what is wrong."""
    for seed in range(first, stop):
        for found in (broken_for_nothing(seed), *(not_grown(seed, purpose) for purpose in BOTH)):
            if found:
                sys.stdout.write(f"{seed} {found}\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
