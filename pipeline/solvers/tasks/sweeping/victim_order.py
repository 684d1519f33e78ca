"""In which order the candidates of a node go."""

from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import Ids, Longs, Rows
from pipeline.kernels import inlined, kernel


class VictimOrder(NamedTuple):
    """The keys of the order: by node, then by queue, then the last podgroup, then its last task.

    Attributes
    ----------
    queue_rank: int64[Q]
        The lower, the earlier.
    jobs: int64[P, G]
        Keys of podgroups as they are served, the most significant first; the last one tells all apart.
    tasks: int64[K, T]
        The same of tasks.
    node, podgroup: int32[T], queue: int32[G]
        Of tasks and podgroups.
    """

    queue_rank: Longs
    jobs: Longs
    tasks: Longs
    node: Ids
    podgroup: Ids
    queue: Ids


@inlined
def _precedes(order: VictimOrder, one: int, other: int) -> bool:
    if order.node[one] != order.node[other]:
        return bool(order.node[one] < order.node[other])
    mine, theirs = order.podgroup[one], order.podgroup[other]
    if mine != theirs:
        first, second = order.queue_rank[order.queue[mine]], order.queue_rank[order.queue[theirs]]
        if first != second:
            return bool(first < second)
        for key in range(len(order.jobs)):
            if order.jobs[key, mine] != order.jobs[key, theirs]:
                return bool(order.jobs[key, mine] > order.jobs[key, theirs])
    for key in range(len(order.tasks)):
        if order.tasks[key, one] != order.tasks[key, other]:
            return bool(order.tasks[key, one] > order.tasks[key, other])
    return False


@kernel
def in_victim_order(order: VictimOrder, rows: Rows) -> Rows:
    """int64[C]: tasks by node, and in victim order on each node.

    By inserting one after the other: a node has a handful.
    """
    result = np.empty(len(rows), np.int64)
    for many in range(len(rows)):
        first, last = 0, many
        while first < last:
            middle = (first + last) // 2
            if _precedes(order, rows[many], result[middle]):
                last = middle
            else:
                first = middle + 1
        for at in range(many, first, -1):
            result[at] = result[at - 1]
        result[first] = rows[many]
    return result
