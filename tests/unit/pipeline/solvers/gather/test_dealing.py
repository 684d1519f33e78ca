"""The kernels that choose a vertex and deal tasks to its nodes, against the same rules written plainly."""

from collections.abc import Iterator

import numpy as np
import pytest

from pipeline.cluster.arrays import NONE, Longs
from pipeline.placement.layout.packing import place_classes
from pipeline.solvers.gather.choice import best_first
from pipeline.solvers.gather.dealing import dealt
from pipeline.solvers.gather.offers import Kinds, Offers, offered
from pipeline.solvers.gather.tree import Tree, below, tree_over

TRIED = 16


def random_tree(rng: np.random.Generator) -> Tree:
    """Some blocks of some racks of some nodes."""
    level, parent, start, stop = [NONE, 0], [NONE, 0], [0, 0], [0, 0]
    block, nodes = 1, 0
    for _ in range(rng.integers(1, 4)):
        for _ in range(rng.integers(1, 4)):
            level, parent, start = [*level, 1], [*parent, block], [*start, nodes]
            nodes += int(rng.integers(1, 5))
            stop = [*stop, nodes]
        stop[block] = nodes
        level, parent, start, stop = [*level, 0], [*parent, 0], [*start, nodes], [*stop, nodes]
        block = len(level) - 1
    stop[0] = nodes
    tier = np.array([3 if one == NONE else 2 - one for one in level[:-1]], np.int32)
    above = np.maximum(np.array(parent[:-1], np.int32), 0)
    return tree_over(above, tier, np.array(start[:-1]), np.array(stop[:-1]), nodes)


def random_kinds(rng: np.random.Generator, nodes: int) -> Kinds:
    kinds, many = int(rng.integers(1, 4)), int(rng.integers(3, 14))
    kind = np.sort(rng.integers(0, kinds, many)) if rng.random() < 0.5 else rng.integers(0, kinds, many)
    kind = np.unique(kind, return_inverse=True)[1].reshape(-1)
    kinds = int(kind.max()) + 1
    allowed = rng.random((kinds, nodes)) < 0.9
    return Kinds(np.arange(many), kind, rng.integers(1, 4, (kinds, 2)), np.bincount(kind), allowed)


def alone(kinds: Kinds, kind: int, room: Longs) -> Longs:
    slots = np.maximum(np.min(room // kinds.request[kind], axis=1), 0)
    return np.minimum(slots, kinds.many[kind]) * kinds.allowed[kind]


def plainly_offered(tree: Tree, kinds: Kinds, room: Longs, existing: Longs) -> Offers:
    each, left, together = [alone(kinds, kind, room) for kind in range(len(kinds.many))], np.maximum(room, 0), 0
    for kind in range(len(kinds.many)):
        here = alone(kinds, kind, left)
        left = left - here[:, None] * kinds.request[kind]
        together = together + here
    enough = np.all([tree.summed(one) >= many for one, many in zip(each, kinds.many, strict=True)], axis=0)
    slots = tree.summed(np.asarray(together))
    if len(each) > 1:
        enough[tree.domains :] &= slots[tree.domains :] == len(kinds.kind)
        enough &= together_enough(tree, kinds, room, each)
    return Offers(slots, tree.summed(existing), enough)


def together_enough(tree: Tree, kinds: Kinds, room: Longs, each: list[Longs]) -> np.ndarray:
    """Whether each vertex has slots for each kind with the larger ones, and of each resource what all may take."""
    enough = np.ones(len(tree.parent), bool)
    for kind in range(len(each)):
        larger = np.flatnonzero((kinds.request >= kinds.request[kind]).all(axis=1))
        many = kinds.many[larger].sum()
        slots = np.clip(np.min(room // kinds.request[kind], axis=1), 0, many) * kinds.allowed[larger].any(axis=0)
        enough &= tree.summed(slots) >= many
    used = sum(one[:, None] * kinds.request[kind] for kind, one in enumerate(each))
    for r, asked in enumerate(kinds.many @ kinds.request):
        enough &= tree.summed(np.minimum(used[:, r], np.maximum(room[:, r], 0))) >= asked
    return enough


def upwards(tree: Tree, numbers: Longs, vertex: int) -> list[int]:
    line = [int(numbers[vertex])]
    while vertex != 0:
        vertex = int(tree.parent[vertex])
        line.append(int(numbers[vertex]))
    return line


def plainly_best_first(tree: Tree, offers: Offers) -> list[int]:
    def worth(vertex: int) -> tuple[int, list[int], list[int], int]:
        near = [-number for number in upwards(tree, offers.existing, vertex)]
        return int(tree.tier[vertex]), near, upwards(tree, offers.slots, vertex), vertex

    ordered = sorted(np.flatnonzero(offers.enough).tolist(), key=worth)
    tiers = sorted({int(tree.tier[vertex]) for vertex in ordered})
    return [one for tier in tiers for one in [v for v in ordered if tree.tier[v] == tier][:TRIED]]


def in_dealing_order(tree: Tree, offers: Offers, vertex: int) -> Iterator[int]:
    if vertex >= tree.domains:
        yield vertex - tree.domains
        return
    children = tree.child[tree.child_start[vertex] : tree.child_start[vertex + 1]].tolist()
    for child in sorted(children, key=lambda c: (-offers.existing[c], -offers.slots[c], c)):
        if offers.slots[child] > 0:
            yield from in_dealing_order(tree, offers, child)


def plainly_dealt(tree: Tree, offers: Offers, kinds: Kinds, room: Longs, vertex: int) -> list[int]:
    for choosy in (False, True)[: len(kinds.many)]:
        placed = np.full(len(kinds.kind), NONE)
        for node in in_dealing_order(tree, offers, vertex):
            left = room[node].copy()
            for task in np.flatnonzero(placed == NONE).tolist():
                kind = kinds.kind[task]
                if kinds.allowed[kind, node] and (kinds.request[kind] <= left).all():
                    placed[task] = node
                    left -= kinds.request[kind]
                elif not choosy:
                    break
        if (placed != NONE).all():
            return placed.tolist()
    start, stop = tree.slice(vertex)
    taken = place_classes(kinds.request, kinds.many, kinds.allowed[:, start:stop], room[start:stop])
    if len(kinds.many) == 1 or (taken.sum(axis=1) < kinds.many).any():
        return []
    for kind in range(len(kinds.many)):
        placed[kinds.kind == kind] = start + np.repeat(np.arange(stop - start), taken[kind])
    return placed.tolist()


@pytest.mark.parametrize("seed", range(150))
def test_the_vertex_and_the_nodes_are_those_that_the_rules_say(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tree = random_tree(rng)
    nodes = len(tree.parent) - tree.domains
    kinds, room = random_kinds(rng, nodes), rng.integers(-1, 9, (nodes, 2))
    existing, may = rng.integers(0, 2, nodes), np.ones(len(tree.parent), bool)
    wanted = plainly_offered(tree, kinds, room, existing)
    for one in (offered, offered.py_func):
        for mine, theirs in zip(one(tree, kinds, room, existing), wanted, strict=True):
            assert mine.tolist() == theirs.tolist()
    order = plainly_best_first(tree, wanted)
    for choose in (best_first, best_first.py_func):
        assert choose(tree, wanted, may).tolist() == order
    for vertex in order:
        expected = plainly_dealt(tree, wanted, kinds, room, vertex)
        for deal in (dealt, dealt.py_func):
            assert deal(tree, wanted, kinds, room, vertex, np.array([], np.int64)).tolist() == expected


@pytest.mark.parametrize("seed", range(20))
def test_the_tree_of_a_domain_is_the_part_of_the_whole_below_it(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tree = random_tree(rng)
    per_node = rng.integers(0, 9, len(tree.parent) - tree.domains)
    domain = int(rng.integers(0, tree.domains))
    start, stop = tree.slice(domain)
    part, whole = below(tree, domain), tree.summed(per_node)
    inside = [d for d in range(tree.domains) if d == domain or domain in ancestors(tree, d)]
    assert part.summed(per_node[start:stop]).tolist() == [*whole[inside].tolist(), *per_node[start:stop].tolist()]
    assert part.tier[: part.domains].tolist() == tree.tier[inside].tolist()
    for vertex in range(1, part.domains):
        assert inside[part.parent[vertex]] == tree.parent[inside[vertex]]


def ancestors(tree: Tree, domain: int) -> list[int]:
    found = []
    while domain != 0:
        domain = int(tree.parent[domain])
        found.append(domain)
    return found


@pytest.mark.parametrize("seed", range(60))
def test_a_vertex_that_offers_too_little_takes_the_gang_in_no_way(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tree = random_tree(rng)
    nodes = len(tree.parent) - tree.domains
    kinds, room = random_kinds(rng, nodes), rng.integers(0, 9, (nodes, 2))
    offers = offered(tree, kinds, room, np.zeros(len(room), np.int64))
    for vertex in np.flatnonzero(~offers.enough).tolist():
        start, stop = tree.slice(vertex)
        assert not fit(kinds, np.repeat(np.arange(len(kinds.many)), kinds.many).tolist(), room, start, stop)


def fit(kinds: Kinds, tasks: list[int], room: Longs, start: int, stop: int) -> bool:
    """Whether tasks of these kinds fit on the nodes, in whatever way."""
    seen: set[tuple[int, bytes]] = set()

    def placed(at: int, left: Longs) -> bool:
        if at == len(tasks):
            return True
        if (key := (at, left[start:stop].tobytes())) in seen:
            return False
        seen.add(key)
        for node in range(start, stop):
            if kinds.allowed[tasks[at], node] and (kinds.request[tasks[at]] <= left[node]).all():
                rest = left.copy()
                rest[node] -= kinds.request[tasks[at]]
                if placed(at + 1, rest):
                    return True
        return False

    return placed(0, room)
