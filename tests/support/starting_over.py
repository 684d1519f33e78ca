"""A fleet full of gangs that start over when they are evicted, and gangs that arrive there."""

import random
from typing import Any

from actors.search.batched_search import Spread
from pipeline.policy import Policy
from tests.support.assembly import Assembly, gang, rack_cluster, restarting


def crowded(draw: random.Random, policy: Policy | None = None, racks: int = 0) -> Assembly:
    """A fleet, full of gangs of two queues and three priorities that all start over when they are evicted.

    It is small unless it is told how many racks to have.
    """
    few, nodes, devices = draw.choice([1, 2, 3]), draw.choice([2, 3, 4]), draw.choice([4, 8])
    racks = racks or few
    cluster = rack_cluster(racks=racks, nodes=nodes, devices=devices)
    shares = draw.choice([(0.5, 0.5), (0.25, 0.75), (0.3, 0.3)])
    for queue, share in zip(cluster["queues"], shares, strict=True):
        queue["deserved"] = {"gpu": int(racks * nodes * devices * share)}
    left = {f"n{at}": devices for at in range(racks * nodes)}
    for at in range(max(40, 8 * racks)):
        size, each, then, places = draw.choice([1, 2, 3]), draw.choice([1, 2, 4]), dict(left), []
        while len(places) < size and (fitting := [name for name in then if then[name] >= each]):
            places.append(draw.choice(fitting))
            then[places[-1]] -= each
        if len(places) == size:
            left, priority = then, draw.choice([0, 0, 1, 2])
            made = gang(f"low{at}", size, each, queue=draw.choice("ab"), priority=priority, nodes=places)
            cluster["podgroups"].append(restarting(made))
    return Assembly(cluster, spread=Spread(in_place_cells=draw.choice([0, 4_096])), policy=policy)


def arrival(draw: random.Random, name: str) -> dict[str, Any]:
    more: dict[str, Any] = {"topology": {"required": "rack"}} if draw.random() < 0.5 else {}
    size, each = draw.choice([2, 3, 4]), draw.choice([1, 2, 4])
    return restarting(gang(name, size, each, queue=draw.choice("ab"), priority=draw.choice([0, 1, 3, 5]), **more))
