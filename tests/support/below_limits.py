"""Clusters whose nodes may have more room than their queues may use."""

import random
from typing import Any

GPU = "nvidia.com/gpu"


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
