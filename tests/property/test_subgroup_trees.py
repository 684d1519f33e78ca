"""Subgroup trees with levels at every height are placed wherever brute force finds a place for them."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from tests.support.simulating import simulate

LEVELS = ("spine", "rack")
SEEDS = 220


@dataclass(frozen=True)
class Leaf:
    """Tasks that each ask for so many devices; the levels in whose domains it and its parent must lie."""

    count: int
    asks: int
    level: str | None
    parent: int
    above: str | None


@dataclass(frozen=True)
class Node:
    spine: int
    rack: int
    devices: int


def drawn(seed: int) -> tuple[list[Node], list[Leaf]]:
    draw = random.Random(seed)
    racks = [(spine, rack) for spine in range(2) for rack in range(draw.randint(1, 2))]
    nodes = [Node(spine, rack, draw.randint(1, 4)) for spine, rack in racks for _ in range(draw.randint(1, 2))]
    above = [draw.choice(("spine", "spine", None)) for _ in range(draw.randint(1, 2))]
    leaves = [
        Leaf(draw.randint(1, 2), draw.choice((1, 1, 2)), draw.choice(("rack", "rack", None)), parent, level)
        for parent, level in enumerate(above)
        for _ in range(draw.randint(1, 2))
    ]
    return nodes, leaves


def within(nodes: Sequence[Node], leaves: Sequence[Leaf]) -> Iterator[list[list[int]]]:
    """Per leaf the nodes that it may use, for every choice of domains."""
    spines, racks = sorted({node.spine for node in nodes}), sorted({(node.spine, node.rack) for node in nodes})
    parents = sorted({leaf.parent for leaf in leaves})
    for chosen in product(spines, repeat=len(parents)):
        for places in product(racks, repeat=len(leaves)):
            yield [
                [
                    at for at, node in enumerate(nodes)
                    if (leaf.above is None or node.spine == chosen[leaf.parent])
                    and (leaf.level is None or (node.spine, node.rack) == places[number])
                ]
                for number, leaf in enumerate(leaves)
            ]  # fmt: skip


def fits(nodes: Sequence[Node], leaves: Sequence[Leaf]) -> bool:
    """Whether there is any way at all."""
    return any(_packs([node.devices for node in nodes], leaves, may, 0, 0) for may in within(nodes, leaves))


def _packs(room: list[int], leaves: Sequence[Leaf], may: list[list[int]], leaf: int, placed: int) -> bool:
    if leaf == len(leaves):
        return True
    if placed == leaves[leaf].count:
        return _packs(room, leaves, may, leaf + 1, 0)
    for at in may[leaf]:
        if room[at] >= leaves[leaf].asks:
            room[at] -= leaves[leaf].asks
            done = _packs(room, leaves, may, leaf, placed + 1)
            room[at] += leaves[leaf].asks
            if done:
                return True
    return False


def cluster(nodes: Sequence[Node], leaves: Sequence[Leaf]) -> dict[str, Any]:
    domains = [{"name": f"s{spine}", "level": "spine"} for spine in sorted({node.spine for node in nodes})]
    domains += [
        {"name": f"r{spine}{rack}", "level": "rack", "parent": f"s{spine}",
         "nodes": [f"n{at}" for at, node in enumerate(nodes) if (node.spine, node.rack) == (spine, rack)]}
        for spine, rack in sorted({(node.spine, node.rack) for node in nodes})
    ]  # fmt: skip
    inner = [
        {"name": f"p{parent}", **_wants(next(leaf.above for leaf in leaves if leaf.parent == parent)),
         "children": [{"name": f"l{at}", "min_available": leaf.count, **_wants(leaf.level)}
                      for at, leaf in enumerate(leaves) if leaf.parent == parent]}
        for parent in sorted({leaf.parent for leaf in leaves})
    ]  # fmt: skip
    tasks = [
        {"name": f"l{at}-{each}", "subgroup": f"l{at}", "request": {"gpu": leaf.asks}}
        for at, leaf in enumerate(leaves)
        for each in range(leaf.count)
    ]
    return {
        "version": 1, "now": 10.0, "policy": {"actions": ["allocate"]},
        "nodes": [
            {"name": f"n{at}", "allocatable": {"gpu": node.devices, "pods": 99}} for at, node in enumerate(nodes)
        ],
        "topology": {"levels": list(LEVELS), "domains": domains}, "queues": [{"name": "q"}],
        "podgroups": [
            {"name": "g", "queue": "q", "min_available": len(tasks), "subgroups": inner, "tasks": tasks}
        ],
    }  # fmt: skip


def _wants(level: str | None) -> dict[str, Any]:
    return {} if level is None else {"topology": {"required": level}}


def legal(nodes: Sequence[Node], leaves: Sequence[Leaf], where: dict[str, str]) -> bool:
    """Whether every part lies in one domain of its level, and no node holds more than it has."""
    held = [0] * len(nodes)
    spines: dict[int, set[int]] = {}
    for number, leaf in enumerate(leaves):
        places = [int(where[f"default/l{number}-{each}"][1:]) for each in range(leaf.count)]
        for at in places:
            held[at] += leaf.asks
        if leaf.level is not None and len({(nodes[at].spine, nodes[at].rack) for at in places}) > 1:
            return False
        if leaf.above is not None:
            spines.setdefault(leaf.parent, set()).update(nodes[at].spine for at in places)
    return all(len(one) == 1 for one in spines.values()) and all(
        have <= node.devices for have, node in zip(held, nodes, strict=True)
    )


def test_a_tree_is_placed_where_brute_force_finds_a_place_and_as_its_levels_ask() -> None:
    feasible = 0
    for seed in range(SEEDS):
        nodes, leaves = drawn(seed)
        said = simulate(cluster(nodes, leaves), 1)
        assert said["error"] is None
        where = {one["task"]: one["node"] for one in said["cycles"][0]["bindings"]}
        possible = fits(nodes, leaves)
        assert bool(where) == possible, (seed, nodes, leaves)
        assert not where or legal(nodes, leaves, where), (seed, where)
        feasible += possible
    assert SEEDS // 4 < feasible < SEEDS
