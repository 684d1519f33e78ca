"""Small clusters under the profile `kai`, and every set of victims that the solver `scenarios` may take in them.

The oracle takes every set of tasks after which each podgroup keeps its minimum or has lost all it had, asks the plugins
about the whole, and puts what is asked for on every combination of nodes.
"""

import random
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, Rows
from pipeline.cluster.rules.minimum import has_minimum
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.what_if import WhatIf
from pipeline.decision.attempt import Attempt
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Preemptor
from pipeline.policy import Purpose
from pipeline.solvers.scenarios.asking import asked_for
from tests.support.brute_force import GPU, NOW, stands

_NODES, _TASKS = 3, 8
_LEAVES = ("a1", "a2", "b1", "b2")


def contended(seed: int, purpose: Purpose = Purpose.RECLAIM) -> dict[str, Any]:
    """Up to eight tasks of a few podgroups in four queues of two departments, and a podgroup that wants its share.

    In preempt all are in one queue, and the one that waits is more important than the others, which are all alike.
    """
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
    if purpose is Purpose.PREEMPT:
        for podgroup in podgroups:
            podgroup |= {"queue": "a1", "priority": int(podgroup["name"] == "waits")}
    free = [rng.choice([0, 0, 1]) for _ in range(_NODES)]
    rest = {"cpu": "unlimited", "memory": "unlimited"}
    leaves = [{"name": name, "parent": name[0], "deserved": {GPU: rng.randint(0, 3), **rest}} for name in _LEAVES]
    above = [{"name": name, "deserved": {GPU: rng.randint(1, 6), **rest}} for name in "ab"]
    return {
        "version": 1, "id": f"contended-{seed}", "now": NOW, "policy": {"profile": "kai", "actions": [purpose.value]},
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
    may = attempt.purpose is not Purpose.RECLAIM or host.preemptive(preemptor)
    if need.minimum == 0 or need.short or not may:
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
