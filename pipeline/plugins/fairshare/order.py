"""Which queue is served next, as KAI Scheduler's `queue_order` ranks siblings with the podgroup that each has next.

A queue that holds no more than its fair share goes first; then one that stays within what it deserves with its next
podgroup; then queue priority; then one that takes no resource without a share of it; then the smaller dominant share
with that podgroup, and without it; then the smaller share; then age. An inner queue has the next podgroup of its best
child; queues are compared level by level.

Upstream's last comparison but one is a partial order, so the whole is no total order. Here the number of resources
without a bound and then the sum of a queue's parts of the cluster replace it, which agrees with upstream wherever
upstream's comparison decides.
"""

from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Floats, Ids, Longs
from pipeline.kernels import kernel, linked, writing

_KEYS = 9
#: The key that is the dominant share with the next podgroup.
AFTER = 4
#: Factor for the saturation of a resource without a share (upstream's constant).
_NO_SHARE = 1000.0


class Compared(NamedTuple):
    """What queues are compared by; float64[Q, R] unless stated otherwise.

    Attributes
    ----------
    parent: int32[Q]
    priority: int32[Q]
    seniority: int64[Q]
    fair, deserved, allocatable, allocated
        See `shares`; and what their tasks hold.
    whole: float64[R]
        The cluster.
    counts: bool[R]
        Resources that are divided.
    """

    parent: Ids
    priority: Ids
    seniority: Longs
    fair: Floats
    deserved: Floats
    allocatable: Floats
    allocated: Floats
    whole: Floats
    counts: Bools


@writing("following", "waits")
def keys_of(queues: Compared, following: Floats, waits: Bools) -> Floats:
    """float64[Q, 9]: keys of each queue among its siblings, smaller first.

    Parameters
    ----------
    following: float64[Q, R]
        What the next podgroup of each leaf asks for; those of inner queues are filled in, from their best child.
    waits: bool[Q]
        Whether each has a next podgroup; queues without one come last.
    """
    keys, best = np.zeros((len(queues.parent), _KEYS)), np.full(len(queues.parent), NONE, np.int64)
    for queue in range(len(keys) - 1, -1, -1):  # children come after parents
        if best[queue] != NONE and not waits[queue]:
            following[queue], waits[queue] = following[best[queue]], True
        _fill(queue, queues, following[queue], keys[queue])
        above = queues.parent[queue]
        if waits[queue] and above != NONE and (best[above] == NONE or less(keys[queue], keys[best[above]])):
            best[above] = queue
    return keys


@linked
def _fill(queue: int, queues: Compared, following: Floats, key: Floats) -> None:
    over, starved, without, after, now, endless, share = True, True, False, 0.0, 0.0, 0.0, 0.0
    for r in range(len(following)):
        if not queues.counts[r]:
            continue
        held, bound = queues.allocated[queue, r], queues.allocatable[queue, r]
        over &= queues.fair[queue, r] < held
        starved &= held + following[r] <= queues.deserved[queue, r]
        without |= bound == 0 and held + following[r] > 0
        endless += np.isinf(bound)
        bound = queues.whole[r] if np.isinf(bound) else bound
        after, now = max(after, _part(held + following[r], bound)), max(now, _part(held, bound))
        share += _part(bound, queues.whole[r]) if queues.whole[r] > 0 else 0.0
    key[0], key[1], key[2], key[3] = over, not starved, -queues.priority[queue], without
    key[4], key[5], key[6], key[7], key[8] = after, now, endless, share, queues.seniority[queue]


@linked
def _part(held: float, bound: float) -> float:
    return held / bound if bound > 0 else held * _NO_SHARE


@linked
def dominant_share(queues: Compared, queue: int, change: Floats) -> float:
    """The largest part of its share that a queue holds of any resource, with ``change`` (float64[R]) added."""
    share = -np.inf
    for r in np.flatnonzero(queues.counts):
        bound = queues.allocatable[queue, r]
        bound = queues.whole[r] if np.isinf(bound) else bound
        share = max(share, _part(queues.allocated[queue, r] + change[r], bound))
    return share


@linked
def less(one: Floats, other: Floats) -> bool:
    """Whether the first differing key of ``one`` (float64[9]) is the smaller."""
    for at in range(len(one)):
        if one[at] != other[at]:
            return bool(one[at] < other[at])
    return False


def rank_of(parent: Ids, keys: Floats, waits: Bools) -> Longs:
    """int64[Q]: ranks by ``keys`` (`keys_of`), queues being compared where their ancestors differ."""
    among = np.lexsort((*keys.T[::-1], ~waits, parent))
    return _numbered(parent, among.astype(np.int64))


@kernel
def _numbered(parent: Ids, among: Longs) -> Longs:
    """Number queues depth-first; ``among`` lists siblings next to each other in the order of service."""
    count = len(parent)
    first, following = np.full(count + 1, NONE, np.int64), np.full(count, NONE, np.int64)
    for at in range(count - 1, -1, -1):  # the last of all
        queue = among[at]
        above = count if parent[queue] == NONE else parent[queue]
        following[queue], first[above] = first[above], queue
    rank, number, queue = np.empty(count, np.int64), 0, first[count]
    while queue != NONE:
        rank[queue] = number
        number += 1
        if first[queue] != NONE:
            queue = first[queue]
            continue
        while queue != NONE and following[queue] == NONE:
            queue = parent[queue]
        queue = following[queue] if queue != NONE else NONE
    return rank
