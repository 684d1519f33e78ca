"""Victims counted in slots: leading units until the tasks fit, and units that may return.

For one shape the tasks fit if and only if the slots add up. Parts of equal size that each lie in one domain are counted
as well. Of several shapes each is counted as if alone, which gives a lower bound.
"""

from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import NONE, UNLIMITED, Bools, Floats, Ids, Longs, Rows
from pipeline.kernels import inlined, kernel, linked
from pipeline.placement.layout.packing import slots_at, slots_less, slots_more


class CountedSlice(NamedTuple):
    """A slice of nodes and what is to be placed there, as kernels read it.

    Attributes
    ----------
    node, form: int32[T]
        Of all tasks.
    held: int64[F, R]
        What a task of each form holds, see ``RoomColumns``.
    first
        The first node of the slice.
    request, wanted, allowed: int64[S, R], int64[S], bool[S, n]
        Of the need: as for ``packing.place_classes``.
    room: int64[n, R]
        Of the slice as it is.
    region, each: int64[n], int
        The domain of each node, NONE without one, in which whole parts of ``each`` tasks must lie; 0: there are none.
    slots, total, regions: int64[S, n], int64[S], int64[n]
        Slots of the slice as it is, by shape and node; in all, in tasks of whole parts; by region. See ``counted``.
    """

    node: Ids
    form: Ids
    held: Longs
    first: int
    request: Longs
    wanted: Longs
    allowed: Bools
    room: Longs
    region: Longs
    each: int
    slots: Longs
    total: Longs
    regions: Longs


class SlotState(NamedTuple):
    """A slice while tasks go and return: as in ``CountedSlice``."""

    room: Longs
    slots: Longs
    total: Longs
    regions: Longs


def counted(ground: CountedSlice) -> CountedSlice:
    """With its slots."""
    shape, nodes = ground.allowed.shape, len(ground.region)
    empty, given = (np.zeros(shape, np.int64), np.zeros(shape[0], np.int64), np.zeros(nodes, np.int64)), ground[:-3]
    return CountedSlice(*given, *_counted(CountedSlice(*given, *empty)))


@kernel
def _counted(ground: CountedSlice) -> tuple[Longs, Longs, Longs]:
    state = as_it_is(ground)
    for s in range(len(state.total)):
        for at in range(len(ground.room)):
            if ground.allowed[s, at]:
                set_slots(ground, state, s, at, slots_at(ground.request, s, state.room, at, ground.wanted[s]))
    return state.slots, state.total, state.regions


@inlined
def as_it_is(ground: CountedSlice) -> SlotState:
    """The slice before any task goes."""
    return SlotState(ground.room.copy(), ground.slots.copy(), ground.total.copy(), ground.regions.copy())


@inlined
def set_slots(ground: CountedSlice, state: SlotState, s: int, at: int, now: int) -> None:
    """Set the slots of a node to ``now``."""
    more, each = now - state.slots[s, at], ground.each
    state.slots[s, at] = now
    if each == 0:
        state.total[s] += more
    elif ground.region[at] != NONE:
        region = ground.region[at]
        before = state.regions[region] // each
        state.regions[region] += more
        state.total[s] += (state.regions[region] // each - before) * each


@inlined
def let(sign: int, row: int, at: int, ground: CountedSlice, state: SlotState) -> None:
    """Let what a task holds be free (1) or taken (-1)."""
    for r in range(state.room.shape[1]):
        state.room[at, r] += sign * ground.held[ground.form[row], r]


@inlined
def slots_now(sign: int, s: int, at: int, ground: CountedSlice, state: SlotState) -> int:
    """Slots of a node for a shape after a task has left it (1) or come back to it (-1)."""
    if sign > 0:
        return slots_more(ground.request, s, state.room, at, ground.wanted[s], state.slots[s, at])
    return slots_less(ground.request, s, state.room, at, ground.wanted[s], state.slots[s, at])


@inlined
def leave(rows: Rows, ground: CountedSlice, state: SlotState) -> None:
    """Add what some tasks hold to the room of their nodes, and count the slots of those nodes anew."""
    for row in rows:
        at = ground.node[row] - ground.first
        if at < 0 or at >= len(state.room):
            continue
        let(1, row, at, ground, state)
        for s in range(len(state.total)):
            if not ground.allowed[s, at]:
                continue
            set_slots(ground, state, s, at, slots_now(1, s, at, ground, state))


@inlined
def _come_back(rows: Rows, ground: CountedSlice, state: SlotState) -> bool:
    """The reverse, if every shape keeps the slots that it wants; if not, nothing is changed."""
    for i in range(len(rows)):
        at = ground.node[rows[i]] - ground.first
        if at < 0 or at >= len(state.room):
            continue
        let(-1, rows[i], at, ground, state)
        enough = True
        for s in range(len(state.total)):
            if not ground.allowed[s, at]:
                continue
            set_slots(ground, state, s, at, slots_now(-1, s, at, ground, state))
            enough &= state.total[s] >= ground.wanted[s]
        if not enough:
            leave(rows[: i + 1], ground, state)
            return False
    return True


@inlined
def _add(rows: Rows, ground: CountedSlice, amounts: Longs) -> None:
    """Add what some tasks hold to amounts."""
    for row in rows:
        for r in range(len(amounts)):
            amounts[r] += ground.held[ground.form[row], r]


@inlined
def within(some: Longs, most: Longs) -> bool:
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


@kernel
def leading(ground: CountedSlice, start: Longs, rows: Rows) -> int:
    """How many leading units must go until every shape has its slots, 0 for none; NONE if all are too few.

    Unit ``u`` is ``rows[start[u]:start[u + 1]]``.
    """
    state = as_it_is(ground)
    if within(ground.wanted, state.total):
        return 0
    for unit in range(len(start) - 1):
        leave(rows[start[unit] : start[unit + 1]], ground, state)
        if within(ground.wanted, state.total):
            return unit + 1
    return NONE


@kernel
def suffices(ground: CountedSlice, asked: Longs, leaving: Rows) -> bool:
    """Whether what some tasks leave can be enough: slots of each shape as if alone, and room of each resource in all.

    ``asked`` int64[R] is the whole need.
    """
    room, free = ground.room.copy(), np.zeros(len(asked), np.int64)
    for row in leaving:
        at = ground.node[row] - ground.first
        if 0 <= at < len(room):
            for r in range(len(asked)):
                room[at, r] += ground.held[ground.form[row], r]
    for at in range(len(room)):
        if ground.allowed[:, at].any():
            for r in range(len(asked)):
                free[r] += max(room[at, r], 0)
    if not within(asked, free):  # sooner known than slots
        return False
    state = as_it_is(ground)
    leave(leaving, ground, state)
    return within(ground.wanted, state.total)


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
    state = as_it_is(ground)
    result, holds = np.ones(orders.shape, np.bool_), np.zeros((len(start) - 1, len(quota)), np.int64)
    left, may, gone = quota.copy(), np.empty(len(quota), np.int64), 0
    for unit in range(len(holds)):
        _add(rows[start[unit] : start[unit + 1]], ground, holds[unit])
    for number in range(len(orders)):
        leave(leaving[gone : upto[number]], ground, state)
        _add(leaving[gone : upto[number]], ground, left)
        may[:], gone = left, upto[number]
        result[number, : many[number]] = False
        for unit in orders[number]:
            if unit >= many[number] or not (within(holds[unit], may) and within(ground.wanted, state.total)):
                continue
            if _come_back(rows[start[unit] : start[unit + 1]], ground, state):
                result[number, unit] = True
                for r in range(len(may)):
                    may[r] -= holds[unit, r]
        for back in np.flatnonzero(result[number, : many[number]]):
            leave(rows[start[back] : start[back + 1]], ground, state)
    return result
