"""The tree of queues: sums upwards, limits downwards, and the chain from a queue to its root.

A tree is ``parent`` int32[Q]: the row of each queue's parent, which comes before it, or NONE. Flat queues are a tree
without parents, so one function serves both; the parts of a need are such a tree as well.
"""

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Ids, Longs, mask_of
from pipeline.kernels import kernel


def flat(queues: int) -> Ids:
    """int32[Q]: no queue has a parent."""
    return np.full(queues, NONE, np.int32)


@kernel
def with_descendants(parent: Ids, own: Longs) -> Longs:
    """Add to each queue what its descendants have: int64[Q, R]."""
    total = own.copy()
    for queue in range(len(parent) - 1, -1, -1):
        if parent[queue] != NONE:
            for r in range(total.shape[1]):
                total[parent[queue], r] += total[queue, r]
    return total


@kernel
def least_above(parent: Ids, own: Longs) -> Longs:
    """The least of what each queue and its ancestors have: int64[Q, R]."""
    least = own.copy()
    for queue in range(len(parent)):
        if parent[queue] != NONE:
            for r in range(least.shape[1]):
                least[queue, r] = min(least[queue, r], least[parent[queue], r])
    return least


def is_parent(parent: Ids) -> Bools:
    """bool[Q]: queues that have children."""
    return mask_of(parent[parent != NONE], len(parent))


@kernel
def in_common(parent: Ids, queue: int) -> Longs:
    """int64[Q]: how many queues of the chain of ``queue`` are in that of each queue."""
    own, common = np.zeros(len(parent), np.bool_), np.zeros(len(parent), np.int64)
    while queue != NONE:
        own[queue], queue = True, parent[queue]
    for one in range(len(parent)):
        common[one] = own[one] + (common[parent[one]] if parent[one] != NONE else 0)
    return common


def chain(parent: Ids, queue: int) -> list[int]:
    """The queue and its ancestors, itself first."""
    way = []
    while queue != NONE:
        way.append(queue)
        queue = int(parent[queue])
    return way
