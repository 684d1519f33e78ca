"""From which queue the next victims go: KAI Scheduler's queue of victims, which follows what was taken before.

Siblings are compared as in `order`, in the reverse order, with one difference: a queue's dominant share is what it
would hold without the victims before, and without all that is left of the podgroup whose turn it would be. So queues
that are equally full lose in turn. An inner queue is compared with the next victims of its best child.

Upstream counts a podgroup that loses one task after the other as gone again and again, and of an inner queue only what
its best child lost; here what went is counted once, and all of it.
"""

from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import NONE, Floats, Longs, Rows, offsets
from pipeline.kernels import linked, writing
from pipeline.plugins.fairshare.order import AFTER, Compared, dominant_share, keys_of, less


class _VictimLines(NamedTuple):
    """The units of victims in a line for each queue, and the tree of queues.

    Attributes
    ----------
    unit: int64[U]
    start: int64[Q + 1]
        The line of ``q`` is ``unit[start[q]:start[q + 1]]``.
    sibling: int64[Q]
    children: int64[Q + 2]
        ``sibling[children[q]:children[q + 1]]`` are below ``q``, the roots below the last.
    held, rest: float64[U, R]
        See `across_queues`.
    """

    unit: Rows
    start: Longs
    sibling: Rows
    children: Longs
    held: Floats
    rest: Floats


def across_queues(queues: Compared, queue: Longs, held: Floats, rest: Floats) -> Rows:
    """int64[U]: units of victims in the order in which they go, those of one queue in the order given.

    Parameters
    ----------
    queue: int64[U]
        The queue of each unit.
    held: float64[U, R]
        What each unit holds.
    rest: float64[U, R]
        What is left of its podgroup when its turn comes, itself included.
    """
    count = len(queues.parent)
    keys = keys_of(queues, np.zeros(queues.fair.shape), np.zeros(count, bool))
    unit, above = np.argsort(queue, kind="stable"), np.where(queues.parent == NONE, count, queues.parent)
    sibling = np.argsort(above, kind="stable")
    children = offsets(above[sibling], count + 1)
    return _merged(queues, keys, _VictimLines(unit, offsets(queue[unit], count), sibling, children, held, rest))


@writing("keys")
def _merged(queues: Compared, keys: Floats, lines: _VictimLines) -> Rows:
    """The merged lines."""
    count = len(queues.parent)
    head, gone = lines.start[:count].copy(), np.zeros_like(queues.fair)
    leaf = np.full(count + 1, NONE, np.int64)  # whose next unit goes if one below each queue does
    for queue in range(count - 1, -1, -1):  # children come after parents
        leaf[queue] = _choose(queues, keys, queue, lines, leaf, head, gone)
    result = np.empty(len(lines.unit), np.int64)
    for at in range(len(result)):
        queue = leaf[_last(keys, leaf, lines, count)]
        unit = lines.unit[head[queue]]
        result[at] = unit
        head[queue] += 1
        while queue != NONE:
            for r in range(gone.shape[1]):
                gone[queue, r] += lines.held[unit, r]
            leaf[queue] = _choose(queues, keys, queue, lines, leaf, head, gone)
            queue = queues.parent[queue]
    return result


@linked
def _choose(
    queues: Compared, keys: Floats, queue: int, lines: _VictimLines, leaf: Longs, head: Longs, gone: Floats
) -> int:
    """The leaf at or below a queue whose next unit goes first, NONE if none is left; its key is brought up to date."""
    best = queue if head[queue] < lines.start[queue + 1] else NONE
    below = _last(keys, leaf, lines, queue)
    if best == NONE and below != NONE:
        best = leaf[below]
    if best != NONE:
        keys[queue, AFTER] = dominant_share(queues, queue, -gone[queue] - lines.rest[lines.unit[head[best]]])
    return best


@linked
def _last(keys: Floats, leaf: Longs, lines: _VictimLines, queue: int) -> int:
    """Of the queues below one, the one that is served last among those with victims; NONE if there is none."""
    last = NONE
    for at in range(lines.children[queue], lines.children[queue + 1]):
        one = lines.sibling[at]
        if leaf[one] != NONE and (last == NONE or less(keys[last], keys[one])):
            last = one
    return last
