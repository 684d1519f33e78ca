"""Tasks in rank order dealt to the nodes of one vertex: the fullest child first, down to the nodes."""

from collections.abc import Iterator

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Longs, Rows
from pipeline.kernels import kernel
from pipeline.placement.layout.packing import place_classes
from pipeline.solvers.gather.choice import in_dealing_order
from pipeline.solvers.gather.multiples import Steps
from pipeline.solvers.gather.offers import Kinds, Offers
from pipeline.solvers.gather.tree import Tree


def dealt(
    tree: Tree, offers: Offers, kinds: Kinds, room: Longs, vertex: int, steps: Steps | None = None
) -> Rows | None:
    """int64[K]: the node of each task, in rank order; None if they do not fit the vertex together.

    Neighbours in rank share a node, then a block, then a spine. If the tasks are not alike, a node takes the next one
    in rank as long as it fits; if that leaves tasks without a node, a node takes any that fit; if that does too, kinds
    are packed, and only tasks of one kind are in the order of rank.
    """
    for choosy in (False, True)[: len(kinds.count)]:
        placed = np.full(len(kinds.rows), NONE, np.int64)
        for nodes, most in _batches(tree, offers, vertex, len(placed), steps):
            if _deal(nodes, most, kinds.kind, kinds.request, kinds.allowed[:, nodes], room[nodes], placed, choosy):
                return placed
    return _packed(tree, kinds, room, vertex) if len(kinds.count) > 1 else None


def _batches(tree: Tree, offers: Offers, vertex: int, many: int, steps: Steps | None) -> Iterator[tuple[Rows, Longs]]:
    """The nodes of a vertex that offer slots, in the order in which they are filled, neighbours together.

    With each batch how many of ``many`` tasks a node takes at most: all of them unless there are ``steps``.
    """
    if vertex >= tree.domains:
        yield np.array([vertex - tree.domains]), np.array([many])
        return
    children = tree.children(vertex)
    ordered = in_dealing_order(offers, children[offers.slots[children] > 0])
    most = np.full(len(ordered), many)
    if steps is not None:
        step = np.asarray(steps.by_tier, np.int64)[tree.tier[ordered]]
        for at, child in enumerate(ordered.tolist()):
            most[at] = min(many, int(offers.slots[child])) // step[at] * step[at]
            many -= int(most[at])
        ordered, most = ordered[most > 0], most[most > 0]
    if (ordered >= tree.domains).all():
        yield ordered - tree.domains, most
        return
    for child, share in zip(ordered.tolist(), most.tolist(), strict=True):
        yield from _batches(tree, offers, child, share, steps)


@kernel
def _deal(
    nodes: Rows, most: Longs, kind: Longs, request: Longs, allowed: Bools, left: Longs, placed: Rows, choosy: bool
) -> bool:
    """Fill the nodes in order, each with ``most`` tasks at most; returns whether all tasks are placed.

    ``placed`` takes the nodes, NONE: not yet.
    """
    first = 0
    for at in range(len(nodes)):
        here = 0
        while first < len(placed) and placed[first] != NONE:
            first += 1
        for task in range(first, len(placed)):
            if here >= most[at]:
                break
            if placed[task] != NONE:
                continue
            fits = allowed[kind[task], at]
            for r in range(request.shape[1]):
                fits &= request[kind[task], r] <= 0 or request[kind[task], r] <= left[at, r]
            if fits:
                placed[task] = nodes[at]
                left[at] -= request[kind[task]]
                here += 1
            elif not choosy:
                break
    while first < len(placed) and placed[first] != NONE:
        first += 1
    return first == len(placed)


def _packed(tree: Tree, kinds: Kinds, room: Longs, vertex: int) -> Rows | None:
    start, stop = tree.slice(vertex)
    taken = place_classes(kinds.request, kinds.count, kinds.allowed[:, start:stop], room[start:stop])
    if (taken.sum(axis=1) < kinds.count).any():
        return None
    placed = np.empty(len(kinds.rows), np.int64)
    for kind in range(len(kinds.count)):
        placed[kinds.kind == kind] = start + np.repeat(np.arange(stop - start), taken[kind])
    return placed
