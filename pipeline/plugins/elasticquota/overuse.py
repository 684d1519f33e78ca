"""Which candidates of a reclaim hold more than their queues' runtime quota, each after those before it."""

from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Ids, Longs, Rows
from pipeline.cluster.resources import PODS
from pipeline.cluster.rules.quota import run_end
from pipeline.kernels import kernel, linked


class Held(NamedTuple):
    """What queues hold and may keep.

    Attributes
    ----------
    parent: int32[Q]
    used, runtime, base: int64[Q, R]
    bound: bool[Q, R]
        Resources with a quota; pods alone are no quota.
    own: bool[Q]
        The preemptor's queue and its ancestors, which hold as much after the reclaim as before.
    asked: bool[R]
        What the preemptor asks for.
    """

    parent: Ids
    used: Longs
    runtime: Longs
    base: Longs
    bound: Bools
    own: Bools
    asked: Bools


@linked
def _over(queues: Held, left: Longs, queue: int, taken: Longs) -> bool:
    """Whether a queue holds more than its runtime quota of a resource that is asked for and would be taken."""
    for r in range(len(taken)):
        counts = r != PODS and queues.asked[r] and taken[r] > 0 and queues.bound[queue, r]
        if counts and left[queue, r] > queues.runtime[queue, r]:
            return True
    return False


@linked
def _keeps_base(queues: Held, left: Longs, queue: int, taken: Longs) -> bool:
    """Whether the queue and its ancestors that are not the preemptor's keep their base, resource by resource."""
    row = queue
    while row != NONE and not queues.own[row]:
        for r in range(len(taken)):
            counts = r != PODS and taken[r] > 0 and queues.bound[row, r]
            if counts and left[row, r] - taken[r] < queues.base[row, r]:
                return False
        row = queues.parent[row]
    return True


@kernel
def overused(queue: Ids, held: Longs, unit: Rows, queues: Held) -> Bools:
    """bool[C]: candidates in order; each unit may go if its queue is over its runtime quota before it.

    The last one may take the queue below its runtime quota, since a gang goes whole, but never below its base.

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
        if _over(queues, left, mine, taken) and _keeps_base(queues, left, mine, taken):
            result[first:stop] = True
            row = mine
            while row != NONE:
                left[row] -= taken
                row = queues.parent[row]
        first = stop
    return result
