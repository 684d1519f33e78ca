"""Tasks in rank order dealt to the nodes of one vertex: the fullest child first, down to the nodes."""

from collections.abc import Iterator

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Longs, Rows
from pipeline.kernels import kernel
from pipeline.placement.layout.packing import place_classes
from pipeline.solvers.gather.choice import in_dealing_order
from pipeline.solvers.gather.offers import Kinds, Offers
from pipeline.solvers.gather.tree import Tree


def dealt(tree: Tree, offers: Offers, kinds: Kinds, room: Longs, vertex: int) -> Rows | None:
    """int64[K]: the node of each task, in rank order; None if they do not fit the vertex together.

    Neighbours in rank share a node, then a block, then a spine. If the tasks are not alike, a node takes the next one
    in rank as long as it fits; if that leaves tasks without a node, a node takes any that fit; if that does too, kinds
    are packed, and only tasks of one kind are in the order of rank.
    """
    for choosy in (False, True)[: len(kinds.count)]:
        placed = np.full(len(kinds.rows), NONE, np.int64)
        for nodes in _batches(tree, offers, vertex):
            if _deal(nodes, kinds.kind, kinds.request, kinds.allowed[:, nodes], room[nodes], placed, choosy):
                return placed
    return _packed(tree, kinds, room, vertex) if len(kinds.count) > 1 else None


def _batches(tree: Tree, offers: Offers, vertex: int) -> Iterator[Rows]:
    """The nodes of a vertex that offer slots, in the order in which they are filled, neighbours together."""
    if vertex >= tree.domains:
        yield np.array([vertex - tree.domains])
        return
    children = tree.children(vertex)
    ordered = in_dealing_order(offers, children[offers.slots[children] > 0])
    if (ordered >= tree.domains).all():
        yield ordered - tree.domains
        return
    for child in ordered.tolist():
        yield from _batches(tree, offers, child)


@kernel
def _deal(nodes: Rows, kind: Longs, request: Longs, allowed: Bools, left: Longs, placed: Rows, choosy: bool) -> bool:
    """Fill the nodes in order; returns whether all tasks are placed. ``placed`` takes the nodes, NONE: not yet."""
    first = 0
    for at in range(len(nodes)):
        while first < len(placed) and placed[first] != NONE:
            first += 1
        for task in range(first, len(placed)):
            if placed[task] != NONE:
                continue
            fits = allowed[kind[task], at]
            for r in range(request.shape[1]):
                fits &= request[kind[task], r] <= 0 or request[kind[task], r] <= left[at, r]
            if fits:
                placed[task] = nodes[at]
                left[at] -= request[kind[task]]
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
