"""Units that return to a slice by halves: returns that leave too little are refused here, before the need is placed.

The slots of each shape, the room of all nodes, and what regions have for parts are kept as tasks return. All of that is
necessary, so that no return is refused with which the need would find places.
"""

from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Longs, Rows
from pipeline.kernels import inlined, kernel, writing
from pipeline.placement.layout.regions_of_parts import AskedOfRegions, may_hold_all, offer
from pipeline.solvers.scenarios.slices.slots_kernels import (
    CountedSlice,
    SlotState,
    as_it_is,
    leave,
    let,
    set_slots,
    slots_now,
    within,
)


class Asked(NamedTuple):
    """What is to fit beside the units that return.

    Attributes
    ----------
    total: int64[R]
        The whole need.
    regions, usable: AskedOfRegions, bool[S, n]
        As for ``may_find_regions``.
    """

    total: Longs
    regions: AskedOfRegions
    usable: Bools


class Halves(NamedTuple):
    """Where the return of units is.

    Attributes
    ----------
    state
        Of the slice.
    free: int64[R]
        Room of the nodes that are open to the need.
    have, offered: int64[L, S + 1, Q], int64[L, S + 1, n]
        What regions have for parts, and how much of it is on each node.
    column: int64[L, n]
        The region of each node among those of a level; NONE for a node in none.
    back: bool[U]
        Units that are back, with those that are tried.
    todo: int64[K, 2]
        What is to be tried, as positions in the order of return, from the first up to the last; the last pair first.
    many: int64[2]
        How many pairs those are, with the one that is tried; and how many units were refused by themselves.
    """

    state: SlotState
    free: Longs
    have: Longs
    offered: Longs
    column: Longs
    back: Bools
    todo: Longs
    many: Longs


def halves(ground: CountedSlice, asked: Asked, units: int, leaving: Rows, order: Rows) -> Halves:
    """The slice after ``leaving`` have gone; to it the units ``order`` are to return, the others are there.

    Nothing is tried yet: the first call of ``some_return`` is with ``kept``.
    """
    back, todo = np.ones(units, np.bool_), np.zeros((len(order) + 2, 2), np.int64)
    back[order], todo[0, 1] = False, len(order)
    return Halves(*_begun(ground, asked, leaving), back, todo, np.array([2, 0]))


@kernel
def _begun(ground: CountedSlice, asked: Asked, leaving: Rows) -> tuple[SlotState, Longs, Longs, Longs, Longs]:
    """The fields of `Halves` that follow from the slice: the state, free, have, offered and column."""
    state = as_it_is(ground)
    leave(leaving, ground, state)
    free, nodes = np.zeros(len(asked.total), np.int64), len(state.room)
    for at in range(nodes):
        if ground.allowed[:, at].any():
            for r in range(len(free)):
                free[r] += max(state.room[at, r], 0)
    levels, rows, _ = asked.regions.amount.shape
    column, widest = np.full((levels, nodes), NONE, np.int64), 1
    for level in range(levels):
        number, region = 0, asked.regions.region[level, ground.first : ground.first + nodes]
        for at in range(nodes):
            number += int(at > 0 and region[at] != region[at - 1])
            if region[at] != NONE:
                column[level, at] = number
        widest = max(widest, number + 1)
    have, offered = np.zeros((levels, rows, widest), np.int64), np.zeros((levels, rows, nodes), np.int64)
    there = np.zeros((levels, rows), np.int64)
    for at in range(nodes if levels > 0 else 0):
        offer(asked.regions, asked.usable, state.room, at, there)
        for level in range(levels):
            if column[level, at] != NONE:
                offered[level, :, at] = there[level]
                have[level, :, column[level, at]] += there[level]
    return state, free, have, offered, column


@writing("walk")
def some_return(
    ground: CountedSlice, asked: Asked, start: Longs, rows: Rows, order: Rows, walk: Halves, most: int, kept: bool
) -> bool:
    """Try the next units that may leave enough; they are ``back`` in ``walk``. False if nothing is left to try.

    Units that do not return all together are tried by halves, the first half first.

    Parameters
    ----------
    start, rows
        Unit ``u`` is ``rows[start[u]:start[u + 1]]``.
    order: int64[K]
        The order of return.
    most
        After more refusals of single units nothing is tried any more.
    kept
        Whether the units that were tried last stay.
    """
    todo, many = walk.todo, walk.many
    first, last = todo[many[0] - 1]
    if not kept:
        _go_again(ground, asked, start, rows, order[first:last], walk)
    while True:
        many[0] -= 1
        if not kept and last - first > 1:
            half = first + (last - first) // 2
            todo[many[0]], todo[many[0] + 1] = (half, last), (first, half)
            many[0] += 2
        elif not kept:
            many[1] += 1
        if many[0] == 0 or many[1] > most:
            return False
        first, last = todo[many[0] - 1]
        kept = _come_back(ground, asked, start, rows, order[first:last], walk)
        if kept:
            return True


@inlined
def _come_back(ground: CountedSlice, asked: Asked, start: Longs, rows: Rows, units: Rows, walk: Halves) -> bool:
    """Let units return if that may leave enough; if not, nothing is changed."""
    for i in range(len(units)):
        walk.back[units[i]] = True
        _move(-1, ground, rows[start[units[i]] : start[units[i] + 1]], walk)
        if not (within(ground.wanted, walk.state.total) and within(asked.total, walk.free)):
            for unit in units[: i + 1]:
                walk.back[unit] = False
                _move(1, ground, rows[start[unit] : start[unit + 1]], walk)
            return False
    if len(walk.have) == 0:
        return True
    for unit in units:
        _offer_again(ground, asked, rows[start[unit] : start[unit + 1]], walk)
    if may_hold_all(asked.regions, walk.have):
        return True
    _go_again(ground, asked, start, rows, units, walk)
    return False


@inlined
def _go_again(ground: CountedSlice, asked: Asked, start: Longs, rows: Rows, units: Rows, walk: Halves) -> None:
    """Undo the return of units."""
    for unit in units:
        walk.back[unit] = False
        _move(1, ground, rows[start[unit] : start[unit + 1]], walk)
    for unit in units:
        _offer_again(ground, asked, rows[start[unit] : start[unit + 1]], walk)


@inlined
def _move(sign: int, ground: CountedSlice, rows: Rows, walk: Halves) -> None:
    """Let tasks go (1) or return (-1), but for what regions have."""
    state = walk.state
    for row in rows:
        at = ground.node[row] - ground.first
        if at < 0 or at >= len(state.room):
            continue
        is_open = ground.allowed[:, at].any()
        for r in range(len(walk.free) if is_open else 0):
            walk.free[r] -= max(state.room[at, r], 0)
        let(sign, row, at, ground, state)
        for r in range(len(walk.free) if is_open else 0):
            walk.free[r] += max(state.room[at, r], 0)
        for s in range(len(state.total)):
            if ground.allowed[s, at]:
                set_slots(ground, state, s, at, slots_now(sign, s, at, ground, state))


@inlined
def _offer_again(ground: CountedSlice, asked: Asked, rows: Rows, walk: Halves) -> None:
    """Count again what regions have on the nodes of some tasks."""
    there = np.zeros(walk.have.shape[:2], np.int64)
    for row in rows:
        at = ground.node[row] - ground.first
        if at < 0 or at >= len(walk.state.room):
            continue
        offer(asked.regions, asked.usable, walk.state.room, at, there)
        for level in range(len(there)):
            region = walk.column[level, at]
            if region != NONE:
                for kind in range(len(there[level])):
                    walk.have[level, kind, region] += there[level, kind] - walk.offered[level, kind, at]
                    walk.offered[level, kind, at] = there[level, kind]
