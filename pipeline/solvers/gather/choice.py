"""The vertex in which a gang is gathered: the lowest that takes all of it, near existing tasks, then the closest fit.

Among vertices of one height the one with more existing tasks goes first, compared at the vertex and then at each
vertex above it; then the one with fewer slots, compared in the same way; then the first node.
"""

import numpy as np

from pipeline.cluster.arrays import Bools, Ids, Longs, Rows
from pipeline.kernels import inlined, kernel
from pipeline.solvers.gather.offers import Offers
from pipeline.solvers.gather.tree import Tree

#: At most this many vertices of one height are tried; more than one only if tasks are not alike.
_TRIALS = 16


def inside_domains(tree: Tree, outer: Rows) -> Bools:
    """bool[V]: vertices that lie in one of the domains ``outer`` (int64[O], of one height), each of them included."""
    start, stop = tree.first[outer], tree.last[outer]
    order = np.argsort(start, kind="stable")
    order = order[start[order] < stop[order]]
    if len(order) == 0:
        return np.zeros(len(tree.parent), bool)
    first, last = tree.first, tree.last
    at = order[np.maximum(np.searchsorted(start[order], first, side="right") - 1, 0)]
    inside = (start[at] <= first) & (last <= stop[at]) & (first < last)
    return np.asarray(inside & (tree.tier <= tree.tier[outer].max()))


@kernel
def best_first(tree: Tree, offers: Offers, may: Bools) -> Rows:
    """int64[C]: vertices that could take all tasks, of those that may (bool[V]), in the order of this module."""
    heights = int(tree.tier[0]) + 1
    found, many = np.empty(heights * _TRIALS, np.int64), 0
    left = may.copy()
    for height in range(heights):
        for _ in range(_TRIALS):
            best = -1
            for vertex in range(len(left)):
                if not left[vertex] or not offers.enough[vertex] or tree.tier[vertex] != height:
                    continue
                if best < 0 or _precedes(tree.parent, offers.existing, offers.slots, vertex, best):
                    best = vertex
            if best < 0:
                break
            left[best], found[many] = False, best
            many += 1
    return found[:many]


@inlined
def _precedes(parent: Ids, existing: Longs, slots: Longs, one: int, other: int) -> bool:
    """Whether one of two vertices of the same height comes first; the one with the lower number has been seen."""
    a, b = one, other
    while a != b:
        if existing[a] != existing[b]:
            return bool(existing[a] > existing[b])
        a, b = parent[a], parent[b]
    a, b = one, other
    while a != b:
        if slots[a] != slots[b]:
            return bool(slots[a] < slots[b])
        a, b = parent[a], parent[b]
    return False
