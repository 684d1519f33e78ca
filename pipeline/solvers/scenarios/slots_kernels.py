"""Victims counted in slots: leading units until the tasks fit, and units that may return.

For one shape that only resources and nodes constrain, the tasks fit if and only if the slots add up. Of several shapes
each is counted as if alone, which gives a lower bound.
"""

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Longs, Rows
from pipeline.kernels import inlined, kernel
from pipeline.placement.layout.packing import slots_at


@inlined
def _moved(sign: int, held: Longs, at: int, node: int, request: Longs, count: Longs, allowed: Bools, room: Longs,
           slots: Longs, total: Longs) -> None:  # fmt: skip
    """Add what task ``at`` holds to its node's room, or subtract it, and count the node's slots anew."""
    for r in range(room.shape[1]):
        room[node, r] += sign * held[at, r]
    for s in range(len(request)):
        if allowed[s, node]:
            now = slots_at(request, s, room, node, count[s])
            total[s] += now - slots[s, node]
            slots[s, node] = now


@kernel
def _counted(request: Longs, count: Longs, allowed: Bools, room: Longs) -> tuple[Longs, Longs]:
    """Slots by shape and node, int64[S, n], and in all, int64[S]."""
    slots = np.zeros(allowed.shape, np.int64)
    for s in range(len(request)):
        for n in range(len(room)):
            if allowed[s, n]:
                slots[s, n] = slots_at(request, s, room, n, count[s])
    return slots, slots.sum(axis=1)


@kernel
def leading(start: Longs, node: Rows, held: Longs, request: Longs, count: Longs, allowed: Bools, room: Longs) -> int:
    """How many leading units must go until every shape has its slots, 0 for none; NONE if all are too few.

    Parameters
    ----------
    start: int64[U + 1]
        Offsets of the units' tasks.
    node, held: int64[V], int64[V, R]
        The node of each task within the slice (outside of it: NONE), and what it holds.
    request, count, allowed, room
        int64[S, R], int64[S], bool[S, n], int64[n, R] of the slice: as for ``packing.fits``. ``room`` is changed.
    """
    slots, total = _counted(request, count, allowed, room)
    if (total >= count).all():
        return 0
    for unit in range(len(start) - 1):
        for at in range(start[unit], start[unit + 1]):
            if node[at] != NONE:
                _moved(1, held, at, node[at], request, count, allowed, room, slots, total)
        if (total >= count).all():
            return unit + 1
    return NONE


@kernel
def returned(
    start: Longs,
    node: Rows,
    held: Longs,
    request: Longs,
    count: Longs,
    allowed: Bools,
    room: Longs,
    quota: Longs,
) -> Bools:
    """bool[U]: units that return, one after the other, while every shape keeps its slots, within a quota.

    Parameters
    ----------
    room
        Of the slice, with all units gone; changed.
    quota: int64[R]
        How much may return in all; changed.
    start, node, held, request, count, allowed
        As for ``leading``.
    """
    slots, total = _counted(request, count, allowed, room)
    result = np.zeros(len(start) - 1, np.bool_)
    for unit in range(len(start) - 1):
        back = held[start[unit] : start[unit + 1]].sum(axis=0)
        if (back > quota).any():
            continue
        for sign in (-1, 1):
            for at in range(start[unit], start[unit + 1]):
                if node[at] != NONE:
                    _moved(sign, held, at, node[at], request, count, allowed, room, slots, total)
            if sign < 0 and (total >= count).all():
                result[unit] = True
                quota -= back
                break
    return result
