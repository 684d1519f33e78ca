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
def counted(request: Longs, count: Longs, allowed: Bools, room: Longs) -> tuple[Longs, Longs]:
    """Slots by shape and node, int64[S, n], and in all, int64[S]."""
    slots = np.zeros(allowed.shape, np.int64)
    for s in range(len(request)):
        for n in range(len(room)):
            if allowed[s, n]:
                slots[s, n] = slots_at(request, s, room, n, count[s])
    return slots, slots.sum(axis=1)


@inlined
def _within(some: Longs, most: Longs) -> bool:
    """Whether no amount is more than ``most`` of it; NumPy would make an array of the answers."""
    holds = True
    for at in range(len(some)):
        holds &= some[at] <= most[at]
    return holds


@kernel
def leading(start: Longs, node: Rows, held: Longs, request: Longs, count: Longs, elsewhere: Longs, allowed: Bools,
            room: Longs) -> int:  # fmt: skip
    """How many leading units must go until every shape has its slots, 0 for none; NONE if all are too few.

    Parameters
    ----------
    start: int64[U + 1]
        Offsets of the units' tasks.
    node, held: int64[V], int64[V, R]
        The node of each task among those that change (outside of the slice: NONE), and what it holds.
    request, count: int64[S, R], int64[S]
        Of the need.
    elsewhere: int64[S]
        Slots on nodes of the slice that do not change.
    allowed, room: bool[S, n], int64[n, R]
        Of the nodes that change: as for ``packing.fits``. ``room`` is changed.
    """
    slots, total = counted(request, count, allowed, room)
    total += elsewhere
    if _within(count, total):
        return 0
    for unit in range(len(start) - 1):
        for at in range(start[unit], start[unit + 1]):
            if node[at] != NONE:
                _moved(1, held, at, node[at], request, count, allowed, room, slots, total)
        if _within(count, total):
            return unit + 1
    return NONE


@kernel
def returned(
    orders: Longs,
    start: Longs,
    node: Rows,
    held: Longs,
    request: Longs,
    count: Longs,
    elsewhere: Longs,
    allowed: Bools,
    room: Longs,
    quota: Longs,
) -> Bools:
    """bool[O, U]: units that return, one after the other, while every shape keeps its slots, within a quota.

    Parameters
    ----------
    orders: int64[O, U]
        Orders of return, each tried by itself.
    room
        Of the nodes that change, with all units gone.
    quota: int64[R]
        How much may return in all.
    start, node, held, request, count, elsewhere, allowed
        As for ``leading``.
    """
    result, back = np.zeros(orders.shape, np.bool_), np.empty(len(quota), np.int64)
    first_slots, first_total = counted(request, count, allowed, room)
    first_total += elsewhere
    for number in range(len(orders)):
        slots, total, left, may = first_slots.copy(), first_total.copy(), room.copy(), quota.copy()
        for unit in orders[number]:
            back[:] = 0
            for at in range(start[unit], start[unit + 1]):
                for r in range(len(back)):
                    back[r] += held[at, r]
            if not _within(back, may):
                continue
            for sign in (-1, 1):
                for at in range(start[unit], start[unit + 1]):
                    if node[at] != NONE:
                        _moved(sign, held, at, node[at], request, count, allowed, left, slots, total)
                if sign < 0 and _within(count, total):
                    result[number, unit] = True
                    may -= back
                    break
    return result
