"""Podgroups alike whose queue is full, while nodes have room: served at once, they are served as one after the other.

More seeds by

    python -m tests.property.test_dealing_below_limits 0 2000
"""

import random
import sys
from typing import Any

import numpy as np

from actors.cli.simulate import open_case
from pipeline.cycle import Cycle, cycle
from tests.support.dealt_in_turn import defect_in, served
from tests.support.depth import sampled
from tests.support.seeds import compare

GPU = "nvidia.com/gpu"
SEEDS = range(sampled(60))


def below_limits(seed: int) -> dict[str, Any]:
    """Two queues under one limit, nodes that may have more room than that, and two to four podgroups alike."""
    rng = random.Random(seed)
    purpose, profile = rng.choice(["preempt", "reclaim"]), rng.choice(["default", "kai"])
    limit, nodes = rng.randint(3, 8), rng.randint(1, 3)
    rest, held = [rng.randint(3, 6) for _ in range(nodes)], 0
    podgroups: list[dict[str, Any]] = []
    for at in range(rng.randint(2, 6)):
        size, node = rng.randint(1, 3), rng.randrange(nodes)
        many = min(rng.randint(1, 2), rest[node] // size, (limit - held) // size)
        if many > 0:
            rest[node] -= many * size
            held += many * size
            runs = {"request": {GPU: size}, "status": "Running", "node": f"n{node}"}
            tasks = [{"name": f"low{at}-{n}", **runs} for n in range(many)]
            podgroups.append({"name": f"low{at}", "queue": "a", "priority": rng.randint(1, 3), "tasks": tasks})
            podgroups[-1] |= {"min_available": rng.randint(1, many), "phase": "Running"}
    room = [left + sum(_held(one, f"n{at}") for one in podgroups) for at, left in enumerate(rest)]
    asks, each = rng.randint(1, 2), rng.randint(1, 2)
    for at in range(rng.randint(2, 4)):
        tasks = [{"name": f"hi{at}-{n}", "request": {GPU: asks}} for n in range(each)]
        queue = "a" if purpose == "preempt" else "b"
        podgroups.append({"name": f"hi{at}", "queue": queue, "priority": 9, "tasks": tasks})
        podgroups[-1] |= {"min_available": each, "phase": "Inqueue"}
    all_of_it = {"cpu": "unlimited", "memory": "unlimited"}
    deserved = {"a": limit, "b": 0} if purpose == "preempt" else {"a": 0, "b": limit}
    depth = rng.choice([0, 0, 1])  # queues between the limit and the two
    between = [{"name": f"mid-{name}", "parent": "top"} for name in deserved] * depth
    return {
        "version": 1,
        "policy": {"profile": profile, "actions": [purpose]},
        "nodes": [{"name": f"n{at}", "allocatable": {GPU: gpus, "pods": 99}} for at, gpus in enumerate(room)],
        "queues": [
            {"name": "top", "capability": {GPU: limit}, "deserved": {GPU: limit, **all_of_it}},
            *(one | {"deserved": {GPU: deserved[one["name"][-1]], **all_of_it}} for one in between),
            *({"name": name, "parent": f"mid-{name}" if depth else "top", "capability": {GPU: limit},
               "deserved": {GPU: own, **all_of_it}} for name, own in deserved.items()),
        ],
        "podgroups": podgroups,
    }  # fmt: skip


def _held(podgroup: dict[str, Any], node: str) -> int:
    return sum(task["request"][GPU] for task in podgroup["tasks"] if task["node"] == node)


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
