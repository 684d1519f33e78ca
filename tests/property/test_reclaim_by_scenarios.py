"""Reclaim under the profile `kai` against a search of all victims, on small clusters with a tree of queues.

`test_fair_shares` compares the rule of the gate with plain Python. More seeds by

    python -m tests.property.test_reclaim_by_scenarios 0 4000
"""

import sys
from dataclasses import replace
from itertools import product

import numpy as np

from pipeline.cluster.arrays import NONE, Rows
from pipeline.decision.plan import Plan
from pipeline.placement.feasibility import feasible
from pipeline.plugins.plugin import Preemptor
from pipeline.policy import Purpose
from pipeline.propose import host_of, propose
from pipeline.solvers.scenarios.asking import asked_for
from pipeline.solvers.scenarios.law import Law
from tests.support.brute_force import attempt_of
from tests.support.depth import sampled
from tests.support.every_scenario import contended, sets_of_victims, working
from tests.support.seeds import compare

#: In 530 the gang starts with other tasks than its first ones. In the others at the end a podgroup with surplus loses a
#: task that is not the first in its order (2546, 11813), and a unit is lawful only beside others (13593, 19443, 33874,
#: 35692); in 27022 the gang fits only if placing it looks back, and in 27668 what makes room is lawful only beside a
#: victim that is not needed, as in 810771, where victims could move.
SEEDS = (*range(sampled(80)), 530, 2546, 11813, 13593, 19443, 27022, 27668, 33874, 35692, 810771)


def defect_of(seed: int) -> str | None:
    """What is wrong with the outcome for one cluster; None if nothing is."""
    attempt = attempt_of(contended(seed), Purpose.RECLAIM)
    host = host_of(attempt)
    sets, found = working(attempt, host), propose(attempt, host)
    if not isinstance(found, Plan):
        missed = [one for one in sets if len(one)]  # room that is there is for `allocate`
        return f"missed {found.explanation.reason}, {missed[0]} would do" if missed else None
    made = found.statement
    lost = np.setdiff1d(made.evictions, made.moved)
    starts = made.nominated[attempt.snapshot.tasks.podgroup[made.nominated] == attempt.podgroups[0]]
    preemptor = Preemptor(attempt.podgroups, attempt.snapshot.request_of(starts).sum(axis=0), attempt.purpose)
    if not host.preemptive(preemptor) or not host.validate_set(preemptor, lost):
        return f"takes {lost}, which it may not"
    if len(starts) < asked_for(host, attempt.podgroups).minimum or (made.nominated_node == NONE).any():
        return "places too few tasks"
    if not any(np.array_equal(one, lost) for one in sets_of_victims(attempt.snapshot, lost)):
        return f"leaves a part of a podgroup behind: {lost}"
    if len(made.moved) == 0 and any(set(one.tolist()) < set(lost.tolist()) for one in sets):
        return f"takes {lost}, though fewer would do"
    stay = [one for one in sets_of_victims(attempt.snapshot, lost) if len(one) < len(lost) and len(made.moved) == 0]
    if any(feasible(attempt.snapshot, replace(made, evictions=one)) for one in stay):
        return f"takes {lost}, though some could stay beside what is promised"
    return None


def refused_parts(seed: int) -> list[tuple[Rows, Rows]]:
    """Lawful victims and a part that is refused, though no queue of those left out is nearer than one of the part."""
    attempt = attempt_of(contended(seed), Purpose.RECLAIM)
    host, tasks = host_of(attempt), attempt.snapshot.tasks
    preemptor = Preemptor(attempt.podgroups, asked_for(host, attempt.podgroups).total, attempt.purpose)
    near = Law(host, preemptor).nearness(tasks.podgroup.astype(np.int64))
    sets = list(sets_of_victims(attempt.snapshot, np.flatnonzero(host.candidates(preemptor))))
    lawful = host.validate_each(preemptor, sets)
    pairs = product((sets[at] for at in np.flatnonzero(lawful)), [sets[at] for at in np.flatnonzero(~lawful)])
    return [
        (whole, part) for whole, part in pairs
        if np.isin(part, whole).all() and near[np.setdiff1d(whole, part)].max() <= near[part].min(initial=9)
    ]  # fmt: skip


def test_of_lawful_victims_every_part_is_lawful_that_keeps_those_of_the_nearest_queues() -> None:
    """Of those of 53 and 119 other parts are refused."""
    assert not any(refused_parts(seed) for seed in (*range(sampled(40)), 53, 119))


def test_reclaim_finds_room_wherever_there_is_any_and_takes_no_more_than_it_may_and_needs() -> None:
    wrong = {seed: found for seed in SEEDS if (found := defect_of(seed))}
    assert not wrong


if __name__ == "__main__":
    sys.exit(compare(defect_of, int(sys.argv[1]), int(sys.argv[2])))
