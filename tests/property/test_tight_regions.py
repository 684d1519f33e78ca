"""Where a gang needs several racks at once, there is a plan if and only if some lawful set of victims makes room."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from pipeline.decision.plan import Plan
from pipeline.judge import judge
from pipeline.policy import Purpose
from pipeline.propose import propose
from tests.support.brute_force import GPU, attempt_of

#: Nodes of some devices, all in use: more tasks than those of which every set is tried.
RACKS, WIDE, DEVICES = 4, 3, 4
NODES = RACKS * WIDE


def document(rng: np.random.Generator, waits: dict[str, Any], spare: int) -> tuple[dict[str, Any], list[list[int]]]:
    """A cluster file whose queue ``a`` holds all and can lose ``spare`` devices; the nodes of its gangs' tasks."""
    places = rng.permutation(np.arange(NODES).repeat(DEVICES)) if rng.random() < 0.3 else near(rng)
    cuts = np.sort(rng.choice(np.arange(1, NODES * DEVICES), 9, replace=False))
    gangs = [part.tolist() for part in np.split(places, cuts)]
    running = [
        {
            "name": f"g{at}", "queue": "a", "priority": int(rng.integers(0, 2)), "min_available": len(nodes),
            "tasks": [
                {"name": f"g{at}-{n}", "request": {GPU: 1}, "status": "Running", "node": f"n{node:02d}"}
                for n, node in enumerate(nodes)
            ],
        }
        for at, nodes in enumerate(gangs)
    ]  # fmt: skip
    racks = [[f"n{rack * WIDE + at:02d}" for at in range(WIDE)] for rack in range(RACKS)]
    return {
        "version": 1, "id": "regions", "now": 10_000.0,
        "policy": {"profile": "default", "actions": ["reclaim"]},
        "nodes": [
            {
                "name": name, "labels": {"rack": f"r{rack}"}, "allocatable": {GPU: DEVICES, "cpu": 1, "pods": 20},
                "cards": [{"name": "c", "capacity": "1"}],
            }
            for rack, names in enumerate(racks) for name in names
        ],
        "topology": {
            "levels": ["rack"],
            "domains": [{"name": f"r{rack}", "level": "rack", "nodes": names} for rack, names in enumerate(racks)],
        },
        "queues": [
            {"name": "a", "deserved": {GPU: NODES * DEVICES - spare}},
            {"name": "b", "deserved": {GPU: NODES * DEVICES}},
        ],
        "podgroups": [*running, {"name": "waits", "priority": 9, "min_available": len(waits["tasks"]), **waits}],
    }, gangs  # fmt: skip


def near(rng: np.random.Generator) -> np.ndarray:
    """Nodes of all tasks, so that gangs lie on neighbouring nodes, some of them across each other."""
    places = np.arange(NODES).repeat(DEVICES)
    for _ in range(12):
        one, other = rng.integers(0, len(places), 2)
        places[[one, other]] = places[[other, one]]
    return places


def possible(gangs: list[list[int]], spare: int, sizes: list[int], most: int) -> bool:
    """Whether some whole gangs that can be lost clear nodes for parts of these sizes, ``most`` in a rack."""
    held = np.array([np.bincount(nodes, minlength=NODES) for nodes in gangs])
    gone = np.array([*product([0, 1], repeat=len(gangs))]) @ held
    cleared = (gone[gone.sum(axis=1) <= spare] == DEVICES).reshape(-1, RACKS, WIDE).sum(axis=2)
    return any(ways(sizes, one, most) for one in np.unique(cleared, axis=0))


def ways(sizes: list[int], cleared: np.ndarray, most: int) -> bool:
    """Whether the parts find racks."""
    return any(
        (np.bincount(where, weights=sizes, minlength=RACKS) <= cleared).all()
        and np.bincount(where, minlength=RACKS).max() <= most
        for where in product(range(RACKS), repeat=len(sizes))
    )


def asked(
    purpose: Purpose, rng: np.random.Generator, tasks: list[dict[str, Any]], **waits: Any
) -> tuple[Plan | None, list[list[int]], int]:
    """What is decided about a gang for whose tasks whole nodes are to be cleared."""
    reclaims = purpose is Purpose.RECLAIM
    spare = len(tasks) * DEVICES + int(rng.choice([0, 1, 3, 8])) if reclaims else NODES * DEVICES
    said = {"queue": "b" if reclaims else "a", "tasks": tasks, **waits}
    cluster, gangs = document(rng, said, spare)
    attempt = attempt_of(cluster, purpose)
    made = propose(attempt)
    if not isinstance(made, Plan):
        return None, gangs, spare
    assert "Accepted" in type(judge(made, attempt.snapshot, attempt.policy, attempt.now)).__name__
    return made, gangs, spare


@pytest.mark.parametrize("purpose", [Purpose.PREEMPT, Purpose.RECLAIM])
@pytest.mark.parametrize("seed", range(20))
def test_tasks_that_keep_apart_by_rack_are_refused_only_where_no_set_clears_racks_enough(
    seed: int, purpose: Purpose
) -> None:
    rng = np.random.default_rng(seed)
    many = int(rng.integers(2, RACKS + 1))
    apart = [{"topology_key": "rack", "match_labels": {"app": "w"}}]
    tasks = [
        {"name": f"w{at}", "request": {GPU: DEVICES}, "labels": {"app": "w"}, "pod_anti_affinity": apart}
        for at in range(many)
    ]
    made, gangs, spare = asked(purpose, rng, tasks)
    assert (made is not None) == possible(gangs, spare, [1] * many, 1)


@pytest.mark.parametrize("purpose", [Purpose.PREEMPT, Purpose.RECLAIM])
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(("shapes", "more"), [(1, {}), (2, {}), (2, {"card_request": "1"})])
def test_parts_that_need_a_rack_each_are_refused_only_where_no_set_clears_racks_enough(
    shapes: int, more: dict[str, str], seed: int, purpose: Purpose
) -> None:
    rng = np.random.default_rng(100 + seed)
    sizes = [[3, 1], [2, 2], [2, 2, 1], [3, 2], [3, 3], [2, 1, 1]][int(rng.integers(0, 6))]
    tasks = [
        {"name": f"w{part}-{at}", "request": {GPU: DEVICES, "cpu": at % shapes}, "subgroup": f"s{part}", **more}
        for part, size in enumerate(sizes) for at in range(size)
    ]  # fmt: skip
    parts = [
        {"name": f"s{part}", "min_available": size, "topology": {"required": "rack"}} for part, size in enumerate(sizes)
    ]
    made, gangs, spare = asked(purpose, rng, tasks, subgroups=parts)
    assert (made is not None) == possible(gangs, spare, sizes, len(sizes))
