"""Victims counted in slots: leading units until the tasks fit, and units that may return.

For one shape that only resources and nodes constrain, the tasks fit if and only if the slots add up. Of several shapes
each is counted as if alone, which gives a lower bound.
"""

from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import NONE, UNLIMITED, Bools, Floats, Ids, Longs, Rows
from pipeline.kernels import inlined, kernel
from pipeline.placement.layout.packing import slots_at, slots_less, slots_more


class CountedSlice(NamedTuple):
    """A slice of nodes and what is to be placed there, as kernels read it.

    Attributes
    ----------
    node, shape: int32[T]
        Of all tasks.
    held: int64[H, R]
        What a task of each shape holds.
    first
        The first node of the slice.
    request, wanted, allowed: int64[S, R], int64[S], bool[S, n]
        Of the need: as for ``packing.place_classes``.
    room: int64[n, R]
        Of the slice as it is.
    slots, total: int64[S, n], int64[S]
        Slots by shape and node as the slice is, and in all.
    """

    node: Ids
    shape: Ids
    held: Longs
    first: int
    request: Longs
    wanted: Longs
    allowed: Bools
    room: Longs
    slots: Longs
    total: Longs


@inlined
def _leave(rows: Rows, ground: CountedSlice, room: Longs, slots: Longs, total: Longs) -> None:
    """Add what some tasks hold to the room of their nodes, and count the slots of those nodes anew."""
    for row in rows:
        at = ground.node[row] - ground.first
        if at < 0 or at >= len(room):
            continue
        for r in range(room.shape[1]):
            room[at, r] += ground.held[ground.shape[row], r]
        for s in range(len(total)):
            if ground.allowed[s, at]:
                now = slots_more(ground.request, s, room, at, ground.wanted[s], slots[s, at])
                total[s] += now - slots[s, at]
                slots[s, at] = now


@inlined
def _come_back(rows: Rows, ground: CountedSlice, room: Longs, slots: Longs, total: Longs) -> bool:
    """The reverse, if every shape keeps the slots that it wants; if not, nothing is changed."""
    for i in range(len(rows)):
        at = ground.node[rows[i]] - ground.first
        if at < 0 or at >= len(room):
            continue
        for r in range(room.shape[1]):
            room[at, r] -= ground.held[ground.shape[rows[i]], r]
        enough = True
        for s in range(len(total)):
            if ground.allowed[s, at]:
                now = slots_less(ground.request, s, room, at, ground.wanted[s], slots[s, at])
                total[s] += now - slots[s, at]
                slots[s, at] = now
                enough &= total[s] >= ground.wanted[s]
        if not enough:
            _leave(rows[: i + 1], ground, room, slots, total)
            return False
    return True


@inlined
def _add(rows: Rows, ground: CountedSlice, amounts: Longs) -> None:
    """Add what some tasks hold to amounts."""
    for row in rows:
        for r in range(len(amounts)):
            amounts[r] += ground.held[ground.shape[row], r]


@inlined
def _within(some: Longs, most: Longs) -> bool:
    """Whether no amount is more than ``most`` of it; NumPy would make an array of the answers."""
    holds = True
    for at in range(len(some)):
        holds &= some[at] <= most[at]
    return holds


@kernel
def with_slots(
    request: Longs, shape: int, allowed: Bools, room: Longs, capacity: Longs, used: Longs
) -> tuple[Rows, Longs, Floats]:
    """Of a slice the nodes that take tasks of a shape, int64[K] ascending.

    Also how many tasks each takes, int64[K], and float64[K] how many would fill what no task holds of it now.
    """
    nodes, there, spare = np.empty(len(room), np.int64), np.empty(len(room), np.int64), np.empty(len(room))
    many = 0
    for n in range(len(room)):
        count = slots_at(request, shape, room, n, UNLIMITED) if allowed[shape, n] else 0
        if count <= 0:
            continue
        least = np.inf
        for r in range(request.shape[1]):
            if request[shape, r] > 0:
                least = min(least, (capacity[n, r] - used[n, r]) / request[shape, r])
        nodes[many], there[many], spare[many] = n, count, least
        many += 1
    return nodes[:many], there[:many], spare[:many]


@kernel
def leading(ground: CountedSlice, start: Longs, rows: Rows) -> int:
    """How many leading units must go until every shape has its slots, 0 for none; NONE if all are too few.

    Unit ``u`` is ``rows[start[u]:start[u + 1]]``.
    """
    room, slots, total = ground.room.copy(), ground.slots.copy(), ground.total.copy()
    if _within(ground.wanted, total):
        return 0
    for unit in range(len(start) - 1):
        _leave(rows[start[unit] : start[unit + 1]], ground, room, slots, total)
        if _within(ground.wanted, total):
            return unit + 1
    return NONE


@kernel
def returned(
    ground: CountedSlice, start: Longs, rows: Rows, leaving: Rows, quota: Longs, orders: Longs, many: Longs, upto: Longs
) -> Bools:
    """bool[O, U]: units that return, one after the other, while every shape keeps its slots, within a quota.

    Parameters
    ----------
    start, rows
        The units, as for ``leading``.
    leaving: int64[V]
        All tasks that go, those of the units included.
    quota: int64[R]
        How much more than what goes may return in all.
    orders: int64[O, U]
        Orders of return, each tried by itself.
    many, upto: int64[O]
        In each only the leading ``many`` units and the leading ``upto`` of ``leaving`` go, no fewer than in the one
        before; units that stay count as returned.
    """
    room, slots, total = ground.room.copy(), ground.slots.copy(), ground.total.copy()
    result, holds = np.ones(orders.shape, np.bool_), np.zeros((len(start) - 1, len(quota)), np.int64)
    left, may, gone = quota.copy(), np.empty(len(quota), np.int64), 0
    for unit in range(len(holds)):
        _add(rows[start[unit] : start[unit + 1]], ground, holds[unit])
    for number in range(len(orders)):
        _leave(leaving[gone : upto[number]], ground, room, slots, total)
        _add(leaving[gone : upto[number]], ground, left)
        may[:], gone = left, upto[number]
        result[number, : many[number]] = False
        for unit in orders[number]:
            if unit >= many[number] or not (_within(holds[unit], may) and _within(ground.wanted, total)):
                continue
            if _come_back(rows[start[unit] : start[unit + 1]], ground, room, slots, total):
                result[number, unit] = True
                for r in range(len(may)):
                    may[r] -= holds[unit, r]
        for back in np.flatnonzero(result[number, : many[number]]):
            _leave(rows[start[back] : start[back + 1]], ground, room, slots, total)
    return result
