"""Victims counted in slots: leading units until the tasks fit, and units that may return.

The tasks of a ``Ground`` are all tasks here, by row; those that run elsewhere leave it as it is.
"""

import numpy as np

from pipeline.cluster.arrays import NONE, UNLIMITED, Bools, Floats, Longs, Rows
from pipeline.kernels import inlined, kernel, linked
from pipeline.placement.layout.packing import slots_at
from pipeline.placement.room.ground import Ground, copied_ground, enough, leave, recount_slots, shift, try_return


@inlined
def _add(rows: Rows, ground: Ground, amounts: Longs) -> None:
    """Add what some tasks hold to amounts."""
    for row in rows:
        for r in range(len(amounts)):
            amounts[r] += ground.held[ground.shape[row], r]


@inlined
def none_exceeds(some: Longs, most: Longs) -> bool:
    """Whether no amount is more than ``most`` of it; NumPy would make an array of the answers."""
    holds = True
    for at in range(len(some)):
        holds &= some[at] <= most[at]
    return holds


@kernel
def fullest(
    request: Longs, shape: int, allowed: Bools, room: Longs, capacity: Longs, used: Longs, wanted: int, emptiest: bool
) -> Rows:
    """int64[wanted]: nodes of a slice for tasks of a shape, ascending; fewer if there are too few slots.

    Those with the fewest slots first, of these the one with the least that no task holds now, or the most of it.
    """
    nodes, there, spare = with_slots(request, shape, allowed, room, capacity, used)
    order = np.argsort(-spare if emptiest else spare, kind="mergesort")
    placed, many = np.empty(wanted, np.int64), 0
    for at in order[np.argsort(there[order], kind="mergesort")]:
        for _ in range(min(there[at], wanted - many)):
            placed[many] = nodes[at]
            many += 1
    return np.sort(placed[:many])


@linked
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


@linked
def here(rows: Rows, ground: Ground) -> Rows:
    """int64[M]: those of some tasks (``rows`` int64[K]) that run in the slice."""
    inside, many = np.empty(len(rows), np.int64), 0
    for row in rows:
        if 0 <= ground.node[row] - ground.first < len(ground.room):
            inside[many] = row
            many += 1
    return inside[:many]


@kernel
def units_needed(ground: Ground, start: Longs, rows: Rows) -> int:
    """How many leading units must go until every shape has its slots, 0 for none; NONE if all are too few.

    Unit ``u`` is ``rows[start[u]:start[u + 1]]``.
    """
    ground = copied_ground(ground)
    for unit in range(len(start)):
        if enough(ground):
            return unit
        if unit + 1 < len(start):
            leave(here(rows[start[unit] : start[unit + 1]], ground), ground)
    return NONE


@kernel
def may_be_enough(ground: Ground, asked: Longs, leaving: Rows) -> bool:
    """Whether what some tasks leave can be enough: slots of each shape as if alone, and room of each resource in all.

    ``asked`` int64[R] is the whole need.
    """
    then, gone = copied_ground(ground), here(leaving, ground)
    for row in gone:
        shift(ground.node[row] - ground.first, row, 1, then)
    if not none_exceeds(asked, free_of(then, len(asked))):  # sooner known than slots
        return False
    for row in gone:
        recount_slots(ground.node[row] - ground.first, 1, then)
    return bool(enough(then))


@linked
def free_of(ground: Ground, many: int) -> Longs:
    """int64[many]: room of the nodes that are open to the need, of the first resources."""
    free = np.zeros(many, np.int64)
    for n in range(len(ground.room)):
        if ground.allowed[:, ground.first + n].any():
            for r in range(many):
                free[r] += max(ground.room[n, r], 0)
    return free


@kernel
def returned(
    ground: Ground, start: Longs, rows: Rows, leaving: Rows, quota: Longs, orders: Longs, many: Longs, upto: Longs
) -> Bools:
    """bool[O, U]: units that return, one after the other, while every shape keeps its slots, within a quota.

    Parameters
    ----------
    start, rows
        The units, as for ``units_needed``.
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
    ground, before = copied_ground(ground), np.empty((len(ground.wanted), len(rows)), np.int64)
    result, holds = np.ones(orders.shape, np.bool_), np.zeros((len(start) - 1, len(quota)), np.int64)
    left, may, gone = quota.copy(), np.empty(len(quota), np.int64), 0
    for unit in range(len(holds)):
        _add(rows[start[unit] : start[unit + 1]], ground, holds[unit])
    for number in range(len(orders)):
        leave(here(leaving[gone : upto[number]], ground), ground)
        _add(leaving[gone : upto[number]], ground, left)
        may[:], gone = left, upto[number]
        result[number, : many[number]] = False
        for unit in orders[number]:
            if unit >= many[number] or not (none_exceeds(holds[unit], may) and enough(ground)):
                continue
            if try_return(here(rows[start[unit] : start[unit + 1]], ground), before, ground):
                result[number, unit] = True
                for r in range(len(may)):
                    may[r] -= holds[unit, r]
        for back in np.flatnonzero(result[number, : many[number]]):
            leave(here(rows[start[back] : start[back + 1]], ground), ground)
    return result
