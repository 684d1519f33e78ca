"""Which candidates of a reclaim hold more than their queues' runtime quota, each after those before it."""

from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Ids, Longs, Rows
from pipeline.cluster.rules.quota import run_end
from pipeline.kernels import kernel, linked


class Held(NamedTuple):
    """What queues hold and may keep.

    Attributes
    ----------
    parent: int32[Q]
    used, runtime, base: int64[Q, R]
    limited: bool[Q, R]
        Resources with a quota.
    own: bool[Q]
        The preemptor's queue and its ancestors, which hold as much after the reclaim as before.
    asked: bool[R]
        What the preemptor asks for, but for pods, which are no quota.
    """

    parent: Ids
    used: Longs
    runtime: Longs
    base: Longs
    limited: Bools
    own: Bools
    asked: Bools


@linked
def _may_go(queues: Held, left: Longs, queue: int, taken: Longs) -> bool:
    """Whether a queue is over its runtime quota of something asked for, and its base of that is kept without ``taken``.

    What else it holds is not asked about: it may be less than its base already.
    """
    for r in range(len(taken)):
        counts = queues.asked[r] and taken[r] > 0 and queues.limited[queue, r]
        if counts and left[queue, r] > queues.runtime[queue, r] and _keeps_base(queues, left, queue, r, taken[r]):
            return True
    return False


@linked
def _keeps_base(queues: Held, left: Longs, queue: int, r: int, taken: int) -> bool:
    """Whether the queue and its ancestors that are not the preemptor's keep their base of one resource."""
    row = queue
    while row != NONE and not queues.own[row]:
        if left[row, r] - taken < queues.base[row, r]:
            return False
        row = queues.parent[row]
    return True


@kernel
def overused(queue: Ids, held: Longs, unit: Rows, queues: Held) -> Bools:
    """bool[C]: candidates in order; each unit may go if its queue is over its runtime quota before it.

    The last one may take the queue below its runtime quota, since a gang goes whole, but not below its base of the
    resource that it is over.

    Parameters
    ----------
    queue: int32[C], held: int64[C, R], unit: int64[C]
        Columns of the candidates; neighbours of one unit go together, NONE: alone.
    """
    result, left = np.zeros(len(queue), np.bool_), queues.used.copy()
    first = 0
    while first < len(queue):
        stop = run_end(unit, first)
        taken = held[first].copy()
        for at in range(first + 1, stop):
            taken += held[at]
        mine = queue[first]
        if _may_go(queues, left, mine, taken):
            result[first:stop] = True
            row = mine
            while row != NONE:
                left[row] -= taken
                row = queues.parent[row]
        first = stop
    return result
