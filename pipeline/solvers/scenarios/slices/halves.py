"""Units that return to a slice by halves: what leaves too little is refused, then the need is placed beside the rest.

The slots of each shape, the room of all nodes, and what regions have for parts are kept as tasks return. All of that is
necessary, so that no return is refused with which the need would find places. Places are kept as well.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Longs, Rows
from pipeline.kernels import inlined, kernel, writing
from pipeline.placement.kept_places import (
    KeptPlaces,
    count_offers,
    find_again,
    find_places,
    may_be_held,
    no_places,
    offer_again,
)
from pipeline.placement.layout.settled_groups import AskedPlaces
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
    places
        The need in the slice; without groups if it is not placed here.
    keeps
        Whether places are kept from one return to the next; else the need is laid out anew each time.
    """

    total: Longs
    places: AskedPlaces
    keeps: bool


class Halves(NamedTuple):
    """Where the return of units is.

    Attributes
    ----------
    state
        Of the slice.
    free: int64[R]
        Room of the nodes that are open to the need.
    places
        The places of the need, and what regions have for its parts.
    back: bool[U]
        Units that are back, with those that are tried.
    todo: int64[K, 2]
        What is to be tried, as positions in the order of return, from the first up to the last; the last pair first.
    many: int64[4]
        How many pairs those are, with the one that is tried; how many units were refused by themselves; how many tasks
        are gone; and the position of the first unit that leaves too little if all before it return, NONE if that is not
        known.
    """

    state: SlotState
    free: Longs
    places: KeptPlaces
    back: Bools
    todo: Longs
    many: Longs


class Begun(NamedTuple):
    """The same before any unit is back, as far as it follows from the tasks that are gone."""

    state: SlotState
    free: Longs
    places: KeptPlaces


def halves(begun: Begun, units: int, leaving: Rows, order: Rows) -> Halves:
    """The slice after ``leaving`` have gone; to it the units ``order`` are to return, the others are there.

    Nothing is tried yet: the first call of ``some_return`` is with ``kept``.
    """
    back, todo = np.ones(units, np.bool_), np.zeros((len(order) + 2, 2), np.int64)
    back[order], todo[0, 1] = False, len(order)
    state, places = SlotState(*_copied(begun.state)), KeptPlaces(*_copied(begun.places))
    return Halves(state, begun.free.copy(), places, back, todo, np.array([2, 0, len(leaving), NONE]))


def _copied(columns: Iterable[Longs]) -> list[Longs]:
    return [column.copy() for column in columns]


@kernel
def begun(ground: CountedSlice, asked: Asked, leaving: Rows) -> Begun:
    """The slice after ``leaving`` have gone."""
    state = as_it_is(ground)
    leave(leaving, ground, state)
    free, nodes = np.zeros(len(asked.total), np.int64), len(state.room)
    for at in range(nodes):
        if ground.allowed[:, at].any():
            for r in range(len(free)):
                free[r] += max(state.room[at, r], 0)
    places = no_places(asked.places)
    if asked.keeps and len(asked.places.tree.own) > 0:
        find_places(asked.places, places, state.room)
    else:
        count_offers(asked.places, places, state.room)
    return Begun(state, free, places)


@writing("walk")
def some_return(
    ground: CountedSlice, asked: Asked, start: Longs, rows: Rows, order: Rows, walk: Halves, most: int, kept: bool,
    asks: bool,
) -> bool:  # fmt: skip
    """Try the next units that may return; they are ``back`` in ``walk``. False if nothing is left to try.

    Units that do not return all together are tried by halves, the first half first. Not all tasks that are gone return.

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
    asks
        Whether something else is to be asked about them; else all is decided here.
    """
    todo, many = walk.todo, walk.many
    first, last = todo[many[0] - 1]
    there = last  # up to here units of the pair are back
    while True:
        many[0] -= 1
        if not kept:
            half = first + (last - first) // 2
            for at in range(half, there):
                _go_again(ground, asked, start, rows, order[at], walk)
            there = min(there, half)
            if last - first > 1:
                todo[many[0]], todo[many[0] + 1] = (half, last), (first, half)
                many[0] += 2
            else:
                many[1], many[3] = many[1] + 1, NONE
        if many[0] == 0 or many[1] > most:
            return False
        first, last = todo[many[0] - 1]
        there = _all_back(ground, asked, start, rows, order, max(there, first), last, walk)
        kept = there == last and many[2] > 0 and _has_places(ground, asked, start, rows, order[first:last], walk)
        if kept and asks:
            return True


@writing("walk")
def too_few_return(ground: CountedSlice, asked: Asked, start: Longs, rows: Rows, walk: Halves, most: int) -> bool:
    """Whether more than ``most`` of all units can never return: not even if no other does.

    ``start`` and ``rows`` as for ``some_return``; none of the units is back.
    """
    stay = 0
    for unit in range(len(start) - 1):
        if _comes_back(ground, asked, start, rows, unit, walk, True):
            _go_again(ground, asked, start, rows, unit, walk)
        else:
            stay += 1
    return stay > most


@inlined
def _all_back(
    ground: CountedSlice, asked: Asked, start: Longs, rows: Rows, order: Rows, begin: int, last: int, walk: Halves
) -> int:  # fmt: skip
    """Let the units from ``begin`` up to ``last`` return while what is left may be enough; up to where they did.

    If one of them is known to leave too little, nothing changes.
    """
    if walk.many[3] != NONE and walk.many[3] < last:
        return begin
    for at in range(begin, last):
        if not _comes_back(ground, asked, start, rows, order[at], walk, walk.many[3] == NONE):
            walk.many[3] = at
            return at
    return last


@inlined
def _comes_back(
    ground: CountedSlice, asked: Asked, start: Longs, rows: Rows, unit: int, walk: Halves, doubt: bool
) -> bool:  # fmt: skip
    """Let a unit return; where there is ``doubt``, only if slots, room and regions may be enough for the need."""
    mine = rows[start[unit] : start[unit + 1]]
    walk.back[unit] = True
    _move(-1, ground, mine, walk)
    if doubt and not (within(ground.wanted, walk.state.total) and within(asked.total, walk.free)):
        walk.back[unit] = False
        _move(1, ground, mine, walk)
        return False
    offer_again(_nodes_of(ground, mine, walk), asked.places, walk.places, walk.state.room)
    if doubt and not may_be_held(asked.places, walk.places):
        _go_again(ground, asked, start, rows, unit, walk)
        return False
    return True


@inlined
def _has_places(ground: CountedSlice, asked: Asked, start: Longs, rows: Rows, units: Rows, walk: Halves) -> bool:
    """Whether there are places after some units returned; true if the need is not placed here."""
    if len(asked.places.tree.own) == 0:
        return True
    if not asked.keeps:
        walk.places.found[0] = 0
    mine, many = np.empty(len(rows), np.int64), 0
    for unit in units:
        for row in rows[start[unit] : start[unit + 1]]:
            mine[many] = row
            many += 1
    return find_again(_nodes_of(ground, mine[:many], walk), asked.places, walk.places, walk.state.room)


@inlined
def _go_again(ground: CountedSlice, asked: Asked, start: Longs, rows: Rows, unit: int, walk: Halves) -> None:
    """Undo the return of a unit."""
    mine = rows[start[unit] : start[unit + 1]]
    walk.back[unit] = False
    _move(1, ground, mine, walk)
    offer_again(_nodes_of(ground, mine, walk), asked.places, walk.places, walk.state.room)


@inlined
def _nodes_of(ground: CountedSlice, rows: Rows, walk: Halves) -> Rows:
    """The nodes of tasks, as far as they are in the slice, counted from its start."""
    nodes, many = np.empty(len(rows), np.int64), 0
    for row in rows:
        at = ground.node[row] - ground.first
        if 0 <= at < len(walk.state.room):
            nodes[many] = at
            many += 1
    return nodes[:many]


@inlined
def _move(sign: int, ground: CountedSlice, rows: Rows, walk: Halves) -> None:
    """Let tasks go (1) or return (-1), but for what regions have."""
    state = walk.state
    walk.many[2] += sign * len(rows)
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
