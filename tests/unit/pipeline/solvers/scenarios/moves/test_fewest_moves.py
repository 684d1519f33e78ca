"""Consolidations that move no more tasks than they need, where bigger tasks find room only if smaller ones move too."""

from typing import Any

import pytest

from tests.support.fair_shares import GPU, file, group, queue
from tests.support.simulating import simulate

#: Free devices of each node that small tasks fill, one too few for a big task.
_FREE = 7


def moved(groups: list[dict[str, Any]], devices: dict[str, int]) -> list[str]:
    """Which tasks move on nodes with that many devices."""
    cluster = file([queue("a", 64), queue("b", 64)], groups, actions=["consolidation"])
    rest = {"cpu": 900, "memory": "900G", "pods": 900}
    cluster["nodes"] = [{"name": name, "allocatable": {**rest, GPU: many}} for name, many in devices.items()]
    (cycle,) = simulate(cluster)["cycles"]
    return [one["task"].removeprefix("default/") for one in cycle["evictions"]]


def placed(name: str, nodes: list[str], gpus: int, least: int, **more: Any) -> dict[str, Any]:
    podgroup = group(name, "a", running=len(nodes), gpus=gpus, min_available=least, **more)
    for task, node in zip(podgroup["tasks"], nodes, strict=True):
        task["node"] = node
    return podgroup


@pytest.mark.parametrize(("small", "big"), [(6, 3), (12, 5), (20, 3)])
@pytest.mark.parametrize("in_turn", [False, True])
def test_each_big_task_pushes_out_one_small_task_and_all_others_stay(small: int, big: int, in_turn: bool) -> None:
    """The new task needs all of the node of the big ones. One further node takes all small tasks that give way."""
    nodes = [f"n{at}" for at in range(big + 1)]
    smalls = placed("s", nodes * small if in_turn else sorted(nodes * small), 1, small * (big + 1), created=-9.0)
    groups = [placed("b", ["whole"] * big, 8, big, created=-5.0), smalls, group("new", "a", waiting=1, gpus=80)]
    found = moved(groups, {"whole": 80} | dict.fromkeys(nodes, small + _FREE))
    assert len(found) == len(set(found)) == 2 * big
    assert sum(name.startswith("b") for name in found) == big


def test_a_podgroup_stays_where_others_make_the_room_without_it() -> None:
    """More tasks would move than are tried one by one, so all those of a podgroup are tried at once."""
    filled = [f"n{at}" for at in (5, 5, 2, 4, 6, 4, 4, 2, 0, 1, 3, 1, 3)]
    groups = [
        placed("g0", ["n2"], 2, 1, priority=1, created=0.0),
        placed("g1", ["n5", "n1"], 3, 2, priority=50, created=-1.0),
        placed("g2", ["n2"], 2, 1, priority=1, created=-2.0),
        placed("g4", ["n0", "n6"], 2, 2, priority=50, created=-4.0, queue="b"),
        placed("g6", ["n3", "n0"], 3, 2, priority=50, created=-6.0, queue="b"),
        placed("g7", ["n6"], 3, 1, priority=50, created=-7.0, queue="b"),
        placed("g8", filled, 2, 13, priority=1, created=-8.0),
        group("new", "a", waiting=1, gpus=4, priority=100, min_available=1),
    ]
    assert len(moved(groups, dict.fromkeys([f"n{at}" for at in range(7)], 8))) == 2
