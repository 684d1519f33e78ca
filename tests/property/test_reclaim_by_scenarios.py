"""Reclaim under the profile `kai` against a search of all victims, on small clusters with a tree of queues.

The oracle takes every set of tasks after which each podgroup keeps its minimum or has lost all it had, asks the rule of
the gate about the whole (`test_fair_shares` compares that rule with plain Python), and puts what is asked for on every
combination of nodes. More seeds by

    python -m tests.property.test_reclaim_by_scenarios 0 4000
"""

import random
import sys
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, NONE, Rows
from pipeline.cluster.rules.minimum import has_minimum
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.what_if import WhatIf
from pipeline.decision.attempt import Attempt
from pipeline.decision.plan import Plan
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Preemptor
from pipeline.policy import Purpose
from pipeline.propose import host_of, propose
from pipeline.solvers.scenarios.asking import asked_for
from tests.support.brute_force import GPU, NOW, attempt_of, stands

#: In the last one a podgroup with surplus loses a task that is not the first in its order.
SEEDS = (*range(80), 2546)
_NODES, _TASKS = 3, 8
_LEAVES = ("a1", "a2", "b1", "b2")


def contended(seed: int) -> dict[str, Any]:
    """Up to eight tasks of a few podgroups in four queues of two departments, and a podgroup that wants its share."""
    rng = random.Random(seed)
    podgroups, left, held = [], _TASKS, [0] * _NODES
    for at in range(rng.randint(1, 5)):
        many = min(rng.choice([1, 1, 2, 3, 4]), left)
        left -= many
        tasks = []
        for n in range(many):
            node, gpu = rng.randrange(_NODES), rng.choice([1, 1, 2, 3])
            held[node] += gpu
            place = {"status": "Running", "node": f"n{node}"}
            tasks.append({"name": f"g{at}-{n}", "request": {GPU: gpu, "cpu": 1}, **place})
        if tasks:
            least = rng.randint(1, many) if rng.random() < 0.5 else many
            podgroups.append({
                "name": f"g{at}", "queue": rng.choice(_LEAVES), "priority": rng.randint(0, 2), "min_available": least,
                "preemptible": rng.random() < 0.9, "created": float(rng.randint(0, 3)), "tasks": tasks,
            })  # fmt: skip
    many = rng.randint(1, 3)
    wanted = [{"name": f"w{n}", "request": {GPU: rng.randint(1, 3), "cpu": 1}} for n in range(many)]
    podgroups.append({
        "name": "waits", "queue": "a1", "priority": rng.randint(0, 2), "min_available": rng.randint(1, many),
        "tasks": wanted,
    })  # fmt: skip
    free = [rng.choice([0, 0, 1]) for _ in range(_NODES)]
    rest = {"cpu": "unlimited", "memory": "unlimited"}
    leaves = [{"name": name, "parent": name[0], "deserved": {GPU: rng.randint(0, 3), **rest}} for name in _LEAVES]
    above = [{"name": name, "deserved": {GPU: rng.randint(1, 6), **rest}} for name in "ab"]
    return {
        "version": 1, "id": f"contended-{seed}", "now": NOW, "policy": {"profile": "kai", "actions": ["reclaim"]},
        "nodes": [
            {"name": f"n{n}", "allocatable": {"cpu": 20, GPU: held[n] + free[n], "pods": 20}} for n in range(_NODES)
        ],
        "queues": [*above, *leaves], "podgroups": podgroups,
    }  # fmt: skip


def working(attempt: Attempt, host: Host) -> list[Rows]:
    """Every set of victims that may be taken and makes room, and of which no part makes room.

    What is not needed for the room does not go, even if the rule would allow the whole and not the part: a victim of
    its own department lets a queue take more from another.
    """
    snapshot, need = attempt.snapshot, asked_for(host, attempt.podgroups)
    preemptor = Preemptor(attempt.podgroups, need.total, attempt.purpose)
    if need.minimum == 0 or need.short or not host.preemptive(preemptor):
        return []
    tasks, least = need.tasks[: need.minimum], list[Rows]()
    for rows in sorted(sets_of_victims(snapshot, np.flatnonzero(host.candidates(preemptor))), key=len):
        more = any(np.isin(one, rows).all() for one in least)
        if not more and stands(attempt, host, tasks, rows, (0, len(snapshot.nodes))):
            least.append(rows)
    return [rows for rows in least if host.validate_set(preemptor, rows)]


def sets_of_victims(snapshot: Snapshot, candidates: Rows) -> Iterator[Rows]:
    """Sets of candidates after which every podgroup has its minimum, or nothing left."""
    owner = snapshot.tasks.podgroup[candidates]
    each = [parts(snapshot, group, candidates[owner == group]) for group in np.unique(owner).tolist()]
    for some in product(*each):
        yield np.sort(np.concatenate([NO_ROWS, *some]))


def parts(snapshot: Snapshot, group: int, rows: Rows) -> list[Rows]:
    """Sets of one podgroup's tasks that may go."""
    found = []
    for chosen in product((False, True), repeat=len(rows)):
        some = rows[np.array(chosen, bool)]
        kept = has_minimum(WhatIf.of(snapshot).evicting(some), group)
        if len(some) == 0 or kept or len(some) == snapshot.counts.running[group]:
            found.append(some)
    return found


def defect_of(seed: int) -> str | None:
    """What is wrong with the outcome for one cluster; None if nothing is."""
    attempt = attempt_of(contended(seed), Purpose.RECLAIM)
    host = host_of(attempt)
    sets, found = working(attempt, host), propose(attempt, host)
    if not isinstance(found, Plan):
        return f"missed {found.explanation.reason}, {sets[0]} would do" if sets else None
    made = found.statement
    lost = np.setdiff1d(made.evictions, made.moved)
    need = asked_for(host, attempt.podgroups)
    preemptor = Preemptor(attempt.podgroups, need.total, attempt.purpose)
    if not host.preemptive(preemptor) or not host.validate_set(preemptor, lost):
        return f"takes {lost}, which it may not"
    if (made.nominated_node[np.isin(made.nominated, need.tasks[: need.minimum])] == NONE).any():
        return "places too few tasks"
    if not any(np.array_equal(one, lost) for one in sets_of_victims(attempt.snapshot, lost)):
        return f"leaves a part of a podgroup behind: {lost}"
    if len(made.moved) == 0 and any(set(one.tolist()) < set(lost.tolist()) for one in sets):
        return f"takes {lost}, though fewer would do"
    return None


def test_reclaim_finds_room_wherever_there_is_any_and_takes_no_more_than_it_may_and_needs() -> None:
    wrong = {seed: found for seed in SEEDS if (found := defect_of(seed))}
    assert not wrong


def main(first: int, stop: int) -> int:
    """Compare a range of seeds, and print what is wrong."""
    wrong = 0
    for seed in range(first, stop):
        found = defect_of(seed)
        if found:
            wrong += 1
            sys.stdout.write(f"{seed} {found}\n")
    sys.stdout.write(f"{wrong} of {stop - first}\n")
    return wrong


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])) > 0)
