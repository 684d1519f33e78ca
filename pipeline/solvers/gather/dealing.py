"""Tasks in rank order dealt to the nodes of one vertex: the fullest child first, down to the nodes."""

import numpy as np

from pipeline.cluster.arrays import NONE, Longs, Rows
from pipeline.kernels import kernel, linked
from pipeline.placement.layout.packing import placed_classes
from pipeline.solvers.gather.offers import Kinds, Offers
from pipeline.solvers.gather.tree import Tree


@kernel
def dealt(tree: Tree, offers: Offers, kinds: Kinds, room: Longs, vertex: int, share: Longs) -> Rows:
    """int64[K]: the node of each task, in rank order; none if they do not fit the vertex together.

    Neighbours in rank share a node, then a block, then a spine. If the tasks are not alike, a node takes the next one
    in rank as long as it fits; if that leaves tasks without a node, a node takes any that fit; if that does too, kinds
    are packed, and only tasks of one kind are in the order of rank.

    ``share``: int64[V], how many tasks each vertex gets; no entries if any number will do.
    """
    nodes, most = _in_dealing_order(tree, offers, vertex, len(kinds.kind), share)
    tasks = np.argsort(kinds.kind, kind="mergesort")  # by kind, then in rank order
    begins = np.cumsum(kinds.many) - kinds.many
    for attempt in range(min(2, len(kinds.many))):
        placed, dealt_of, done = np.empty(len(kinds.kind), np.int64), np.zeros(len(kinds.many), np.int64), 0
        for at in range(len(nodes)):
            done += _deal(nodes[at], most[at], kinds, room, tasks, begins, dealt_of, placed, attempt == 1)
            if done == len(placed):
                return placed
    return _packed(tree, kinds, room, vertex) if len(kinds.many) > 1 else kinds.rows[:0].copy()


@linked
def _in_dealing_order(tree: Tree, offers: Offers, vertex: int, many: int, share: Longs) -> tuple[Rows, Longs]:
    """The nodes of a vertex that offer slots, in the order in which they are filled, and how many tasks each takes.

    Neighbours are together: siblings near existing tasks first, then the largest, so that few are needed.
    """
    nodes = np.empty(tree.last[vertex] - tree.first[vertex], np.int64)
    most, found = np.empty(len(nodes), np.int64), 0
    waiting, limit, depth = np.empty(len(tree.parent), np.int64), np.empty(len(tree.parent), np.int64), 1
    waiting[0], limit[0] = vertex, many
    while depth > 0:
        depth -= 1
        here, left = waiting[depth], limit[depth]
        if here >= tree.domains:
            nodes[found], most[found] = here - tree.domains, left
            found += 1
            continue
        children = _siblings(tree, offers, here, share)
        for at in range(len(children) - 1, -1, -1):  # the first one is looked at next
            waiting[depth], limit[depth] = children[at], share[children[at]] if len(share) else left
            depth += 1
    return nodes[:found], most[:found]


@linked
def _siblings(tree: Tree, offers: Offers, vertex: int, share: Longs) -> Rows:
    """int64[C]: the children of a vertex that offer slots, or have a share, in the order of filling."""
    result, many = np.empty(tree.child_start[vertex + 1] - tree.child_start[vertex], np.int64), 0
    for at in range(tree.child_start[vertex], tree.child_start[vertex + 1]):
        child = tree.child[at]
        if (share[child] if len(share) else offers.slots[child]) <= 0:
            continue
        place = many
        while place > 0:
            other = result[place - 1]
            mine, theirs = offers.existing[child], offers.existing[other]
            if mine < theirs or (mine == theirs and offers.slots[child] <= offers.slots[other]):
                break
            result[place] = other
            place -= 1
        result[place] = child
        many += 1
    return result[:many]


@linked
def _deal(
    node: int, most: int, kinds: Kinds, room: Longs, tasks: Rows, begins: Longs, dealt_of: Longs, placed: Rows,
    choosy: bool,
) -> int:  # fmt: skip
    """Fill a node with ``most`` tasks at most; returns how many it takes.

    Parameters
    ----------
    tasks: int64[K], begins: int64[M]
        Tasks by kind and rank, and where each kind begins among them.
    dealt_of: int64[M], placed: int64[K]
        How many of each kind have a node, the first ones; and which. Both are written.
    choosy
        Whether the next task in rank that fits is taken, and not only the next one if it fits.
    """
    left, here, fits = room[node].copy(), 0, kinds.allowed[:, node].copy()
    while here < most:
        kind = NONE
        for other in range(len(dealt_of)):
            if dealt_of[other] == kinds.many[other] or (choosy and not fits[other]):
                continue
            if kind == NONE or tasks[begins[other] + dealt_of[other]] < tasks[begins[kind] + dealt_of[kind]]:
                kind = other
        if kind == NONE:
            break
        for r in range(len(left)):
            fits[kind] &= kinds.request[kind, r] <= 0 or kinds.request[kind, r] <= left[r]
        if fits[kind]:
            placed[tasks[begins[kind] + dealt_of[kind]]] = node
            left -= kinds.request[kind]
            dealt_of[kind] += 1
            here += 1
        elif not choosy:
            break
    return here


@linked
def _packed(tree: Tree, kinds: Kinds, room: Longs, vertex: int) -> Rows:
    """int64[K]: a node for each task if kinds are packed, one after the other; none if they do not fit."""
    start, stop = tree.first[vertex], tree.last[vertex]
    allowed = np.ascontiguousarray(kinds.allowed[:, start:stop])
    taken = placed_classes(kinds.request, kinds.many, allowed, room[start:stop])
    placed, at = np.empty(len(kinds.kind), np.int64), np.zeros(len(kinds.many), np.int64)
    for kind in range(len(kinds.many)):
        if taken[kind].sum() < kinds.many[kind]:
            return placed[:0]
    for task in range(len(placed)):
        kind = kinds.kind[task]
        while taken[kind, at[kind]] == 0:
            at[kind] += 1
        taken[kind, at[kind]] -= 1
        placed[task] = start + at[kind]
    return placed
