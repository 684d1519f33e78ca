"""The vertex in which a gang is gathered: the lowest that takes all of it, near existing tasks, then the closest fit.

Among vertices of one height the one with more existing tasks goes first, compared at the vertex and then at each
vertex above it; then the one with fewer slots, compared in the same way; then the first node.
"""

from collections.abc import Iterator

import numpy as np

from pipeline.cluster.arrays import Bools, Longs, Rows
from pipeline.solvers.gather.offers import Offers
from pipeline.solvers.gather.tree import Tree

#: At most this many vertices of one height are tried; more than one only if tasks are not alike.
_TRIALS = 16


def candidates(tree: Tree, offers: Offers, outer: Rows) -> Iterator[int]:
    """Vertices within the domains ``outer`` (int64[O], of one height) that could take all tasks, best first."""
    may = offers.enough & _within(tree, outer)
    vertices = np.flatnonzero(may)
    tier = tree.tier[vertices]
    for height in np.unique(tier).tolist():
        left = vertices[tier == height]
        for _ in range(_TRIALS):
            if len(left) == 0:
                break
            best = _best(tree, offers, left)
            yield best
            left = left[left != best]


def _within(tree: Tree, outer: Rows) -> Bools:
    """bool[V]: vertices that lie in one of the domains, each of them included."""
    start, stop = tree.topology.start[outer], tree.topology.stop[outer]
    order = np.argsort(start, kind="stable")
    order = order[start[order] < stop[order]]
    if len(order) == 0:
        return np.zeros(len(tree.parent), bool)
    nodes = np.arange(len(tree.parent) - tree.domains)
    first = np.concatenate([tree.topology.start, nodes])
    last = np.concatenate([tree.topology.stop, nodes + 1])
    at = order[np.maximum(np.searchsorted(start[order], first, side="right") - 1, 0)]
    inside = (start[at] <= first) & (last <= stop[at]) & (first < last)
    return np.asarray(inside & (tree.tier <= tree.tier[outer].max()))


def _best(tree: Tree, offers: Offers, vertices: Rows) -> int:
    """The first of some vertices by the order of this module: one pass for each criterion over those that are left."""
    for numbers, sign in ((offers.existing, -1), (offers.slots, 1)):
        above = vertices
        for _ in range(tree.topology.levels + 2):
            mine = sign * numbers[above]
            keep = mine == mine.min()
            vertices, above = vertices[keep], tree.parent[above[keep]]
    return int(vertices[0])


def in_dealing_order(offers: Offers, vertices: Longs) -> Rows:
    """int64[C]: siblings in the order of filling: near existing tasks, then the largest, so that few are needed."""
    return vertices[np.lexsort((vertices, -offers.slots[vertices], -offers.existing[vertices]))]
