"""Which queue may reclaim from which: the rules of KAI Scheduler's `proportion/reclaimable` (notes on KAI, 2.3).

They keep upstream's weak spots, for a profile that promises upstream's decisions: victims are looked at in order, each
before it is taken; a queue above its share of one resource may lose another; the last victim may take a queue far below
its share; a sibling without any share may always lose. The profile `default` has none of these.

Amounts are float64 in base units, infinite where there is no bound. Upstream writes -1 for that, so a
remainder of exactly minus one unit reads as unlimited; that is kept too.
"""

from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Floats, Ids, Longs, Rows
from pipeline.kernels import kernel, linked

_NO_BOUND = -1.0


class QueueShares(NamedTuple):
    """What the rules read of queues; rows of Q queues, resources R.

    Attributes
    ----------
    parent: int32[Q]
    deserved, fair_share, allocatable: float64[Q, R]
        ``allocatable``: how much it may hold without losing any of it.
    allocated, non_preemptible: float64[Q, R]
        What its tasks hold, descendants included, and the part of it held by tasks that can never be evicted.
    """

    parent: Ids
    deserved: Floats
    fair_share: Floats
    allocatable: Floats
    allocated: Floats
    non_preemptible: Floats


class Victims(NamedTuple):
    """Victims by queue, in the order in which they are looked at.

    Attributes
    ----------
    queue: int64[V]
        Queues that lose, each once.
    start: int64[V + 1]
        The units of queue ``v`` are ``held[start[v]:start[v + 1]]``.
    held: float64[U, R]
        What goes at once: a gang, or one task above its minimum.
    """

    queue: Rows
    start: Longs
    held: Floats


@linked
def within(held: Floats, request: Floats, limit: Floats) -> bool:
    """Whether ``held`` and ``request`` together stay within ``limit`` (float64[R] each), of every resource."""
    holds = True
    for r in range(len(held)):  # NumPy would make arrays, which takes longer than all the rest
        holds &= held[r] + request[r] <= limit[r]
    return holds


@kernel
def may_reclaim(queues: QueueShares, queue: int, request: Floats, preemptible: bool) -> bool:
    """Whether a queue may reclaim at all: it stays within its fair share of every resource, asked for or not.

    For work that can never be evicted it must stay within what it deserves too.
    """
    if not within(queues.allocated[queue], request, queues.fair_share[queue]):
        return False
    return preemptible or within(queues.non_preemptible[queue], request, queues.deserved[queue])


@linked
def may_take(
    queues: QueueShares, queue: int, request: Floats, preemptible: bool, victims: Victims, multiplier: float
) -> bool:
    """Whether a queue may take these victims for ``request``; ``multiplier`` scales its saturation in comparisons.

    Every victim is judged at the level of the tree where the ancestors of the two queues differ first.
    """
    if not preemptible:
        row = queue
        while row != NONE:
            if not within(queues.non_preemptible[row], request, queues.deserved[row]):
                return False
            row = queues.parent[row]
    left = queues.allocated.copy()
    involved = np.zeros(left.shape, np.bool_)
    rival = np.full(len(left), NONE, np.int64)
    for at in range(len(victims.queue)):
        mine, other = _parted(queues.parent, queue, victims.queue[at])
        rival[other] = mine
        for unit in victims.held[victims.start[at] : victims.start[at + 1]]:
            if not _spares(queues, mine, other, request, left):
                return False
            for r in range(len(unit)):
                involved[other, r] |= unit[r] > 0
            row = int(victims.queue[at])
            while row != NONE:
                for r in range(len(unit)):
                    left[row, r] -= unit[r]
                row = int(queues.parent[row])
    for sibling in range(len(rival)):
        if rival[sibling] == NONE:
            continue
        if _saturated(queues, rival[sibling], sibling, request, involved[sibling], left, multiplier):
            return False
    return True


@linked
def _parted(parent: Ids, one: int, other: int) -> tuple[int, int]:
    """The first two ancestors of two queues (themselves included) that differ on the way down from the root."""
    low, high = one, other
    for _ in range(_depth(parent, other), _depth(parent, one)):
        low = parent[low]
    for _ in range(_depth(parent, one), _depth(parent, other)):
        high = parent[high]
    if low == high:  # one lies above the other
        return one, other
    while parent[low] != parent[high]:
        low, high = parent[low], parent[high]
    return low, high


@linked
def _depth(parent: Ids, row: int) -> int:
    depth = 0
    while parent[row] != NONE:
        row, depth = parent[row], depth + 1
    return depth


@linked
def _spares(queues: QueueShares, mine: int, other: int, request: Floats, left: Floats) -> bool:
    """Whether a queue may lose its next victim.

    It holds more than its share of some resource; or the reclaiming queue stays within what it deserves of every
    resource, and this queue holds more than it deserves of some.
    """
    if _exceeds(left[other], queues.allocatable[other]):
        return True
    deserving = within(queues.allocated[mine], request, queues.deserved[mine])
    return deserving and _exceeds(left[other], queues.deserved[other])


@linked
def _exceeds(held: Floats, limit: Floats) -> bool:
    found = False
    for r in range(len(held)):
        found |= held[r] > limit[r] or (held[r] == _NO_BOUND and not np.isinf(limit[r]))
    return found


@linked
def _saturated(
    queues: QueueShares, mine: int, other: int, request: Floats, involved: Bools, left: Floats, multiplier: float
) -> bool:
    """Whether the reclaiming queue would exceed its share of a resource and be no less saturated than its sibling."""
    for r in range(len(request)):
        if not (involved[r] or request[r] > 0):
            continue
        full, theirs = _ratio(left[mine, r] + request[r], queues.fair_share[mine, r]), queues.fair_share[other, r]
        if full > 1 and 0 < theirs < np.inf and full * multiplier >= _ratio(left[other, r], theirs):
            return True
    return False


@linked
def _ratio(held: float, share: float) -> float:
    if np.isinf(share):
        return 0.0
    if share == 0:
        return np.inf if held > 0 else 0.0
    return held / share
