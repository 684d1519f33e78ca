"""No thrash: whoever is evicted starts over, and the evictions end all the same (DESIGN section 6).

Preempt takes strictly lower priority, and reclaim never leaves a queue below what it deserves; so what a victim may
take in turn is less each time, and two gangs cannot evict each other.
"""

import random
from typing import Any

import pytest

from actors.search.batched_search import Spread
from pipeline.policy import Policy
from tests.support.assembly import Assembly, decisions, gang, rack_cluster, restarting

TURNS, QUIET = 40, 15


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


@pytest.mark.parametrize("seed", [5, 9, 13, 16, 17])
def test_evictions_end_though_every_victim_starts_over(seed: int) -> None:
    draw = random.Random(seed)
    assembly = crowded(draw)
    made = []
    for turn in range(TURNS):
        if turn in (0, 4, 8):
            assembly.say([said for at in "xy" for said in assembly.fleet.submit(arrival(draw, f"{at}{turn}"))])
        assembly.committer.lead()
        assembly.cycle()
        assembly.clock.now += 0.01  # the fleet answers a moment later
        assembly.obey()
        assembly.pass_time(2.0)
        made.append(len(decisions(assembly)))
    assert made[0], "there is something to decide"
    assert made[-1] == made[-QUIET], "nothing new is decided on a state in which nothing happens"
    report = assembly.report()
    assert report.broken == []
    assert report.victims
    assert assembly.fleet.tally.misfits == 0
