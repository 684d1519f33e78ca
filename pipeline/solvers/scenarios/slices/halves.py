"""Units that return to a slice by halves: what leaves too little is refused, then the need is placed beside the rest.

The slots of each shape, the room of all nodes, and what regions have for parts are kept as tasks return. All of that is
necessary, so that no return is refused with which the need would find places. Places are kept as well.
"""

from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Longs, Rows
from pipeline.kernels import inlined, writing
from pipeline.placement.kept_places import (
    KeptPlaces,
    apart,
    count_offers,
    find_again,
    find_places,
    may_be_held,
    no_places,
    offer_again,
)
from pipeline.placement.layout.settled_groups import AskedPlaces
from pipeline.placement.room.ground import Ground, copied_ground, enough, leave, recount_slots, shift
from pipeline.solvers.scenarios.slices.slots_kernels import free_of, here, none_exceeds


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


class Spare(NamedTuple):
    """How much of each limit the need leaves once all have gone (int64[K]), and what units take back (int64[K, U])."""

    left: Longs
    taken: Longs


#: No limit is tight.
NO_LIMITS = Spare(np.zeros(0, np.int64), np.zeros((0, 0), np.int64))


class Halves(NamedTuple):
    """Where the return of units is.

    Attributes
    ----------
    ground
        The slice at present.
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

    ground: Ground
    free: Longs
    places: KeptPlaces
    back: Bools
    todo: Longs
    many: Longs


class Begun(NamedTuple):
    """The same before any unit is back, as far as it follows from the tasks that are gone."""

    ground: Ground
    free: Longs
    places: KeptPlaces


def halves(begun: Begun, units: int, leaving: Rows, order: Rows) -> Halves:
    """The slice after ``leaving`` have gone; to it the units ``order`` are to return, the others are there.

    Nothing is tried yet: the first call of ``some_return`` is with ``kept``.
    """
    back, todo = np.ones(units, np.bool_), np.zeros((len(order) + 2, 2), np.int64)
    back[order], todo[0, 1] = False, len(order)
    places, many = apart(begun.places), np.array([2, 0, len(leaving), NONE])
    return Halves(copied_ground(begun.ground), begun.free.copy(), places, back, todo, many)


def begun(ground: Ground, asked: Asked, leaving: Rows) -> Begun:
    """The slice after ``leaving`` have gone."""
    ground = copied_ground(ground)
    return Begun(ground, *_begin(ground, asked, leaving))


@writing("ground")
def _begin(ground: Ground, asked: Asked, leaving: Rows) -> tuple[Longs, KeptPlaces]:
    leave(here(leaving, ground), ground)
    places = no_places(asked.places)
    if asked.keeps and len(asked.places.tree.own) > 0:
        find_places(asked.places, places, ground.room)
    else:
        count_offers(asked.places, places, ground.room)
    return free_of(ground, len(asked.total)), places


@writing("walk")
def some_return(
    asked: Asked, spare: Spare, start: Longs, rows: Rows, order: Rows, walk: Halves, most: int, kept: bool,
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
                _go_again(asked, start, rows, order[at], walk)
            there = min(there, half)
            if last - first > 1:
                todo[many[0]], todo[many[0] + 1] = (half, last), (first, half)
                many[0] += 2
            else:
                many[1], many[3] = many[1] + 1, NONE
        if many[0] == 0 or many[1] > most:
            return False
        first, last = todo[many[0] - 1]
        there = _all_back(asked, start, rows, order, max(there, first), last, walk)
        kept = there == last and many[2] > 0 and _has_places(asked, start, rows, order[first:last], walk)
        kept = kept and _leaves_room(spare, order[:last], walk.back)
        if kept and asks:
            return True


@writing("walk")
def too_few_return(asked: Asked, start: Longs, rows: Rows, walk: Halves, most: int) -> bool:
    """Whether more than ``most`` of all units can never return: not even if no other does.

    ``start`` and ``rows`` as for ``some_return``; none of the units is back.
    """
    stay = 0
    for unit in range(len(start) - 1):
        if _comes_back(asked, start, rows, unit, walk, True):
            _go_again(asked, start, rows, unit, walk)
        else:
            stay += 1
    return stay > most


@inlined
def _all_back(
    asked: Asked, start: Longs, rows: Rows, order: Rows, begin: int, last: int, walk: Halves
) -> int:  # fmt: skip
    """Let the units from ``begin`` up to ``last`` return while what is left may be enough; up to where they did.

    If one of them is known to leave too little, nothing changes.
    """
    if walk.many[3] != NONE and walk.many[3] < last:
        return begin
    for at in range(begin, last):
        if not _comes_back(asked, start, rows, order[at], walk, walk.many[3] == NONE):
            walk.many[3] = at
            return at
    return last


@inlined
def _comes_back(asked: Asked, start: Longs, rows: Rows, unit: int, walk: Halves, doubt: bool) -> bool:
    """Let a unit return; where there is ``doubt``, only if slots, room and regions may be enough for the need."""
    mine = rows[start[unit] : start[unit + 1]]
    walk.back[unit] = True
    _move(-1, mine, walk)
    if doubt and not (enough(walk.ground) and none_exceeds(asked.total, walk.free)):
        walk.back[unit] = False
        _move(1, mine, walk)
        return False
    offer_again(_nodes_of(mine, walk), asked.places, walk.places, walk.ground.room)
    if doubt and not may_be_held(asked.places, walk.places):
        _go_again(asked, start, rows, unit, walk)
        return False
    return True


@inlined
def _has_places(asked: Asked, start: Longs, rows: Rows, units: Rows, walk: Halves) -> bool:
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
    return find_again(_nodes_of(mine[:many], walk), asked.places, walk.places, walk.ground.room)


@inlined
def _leaves_room(spare: Spare, units: Rows, back: Bools) -> bool:
    """Whether those of the units that are back take no more of any limit than is left."""
    for limit in range(len(spare.left)):
        left = spare.left[limit]
        for unit in units:
            left -= back[unit] * spare.taken[limit, unit]
        if left < 0:
            return False
    return True


@inlined
def _go_again(asked: Asked, start: Longs, rows: Rows, unit: int, walk: Halves) -> None:
    """Undo the return of a unit."""
    mine = rows[start[unit] : start[unit + 1]]
    walk.back[unit] = False
    _move(1, mine, walk)
    offer_again(_nodes_of(mine, walk), asked.places, walk.places, walk.ground.room)


@inlined
def _nodes_of(rows: Rows, walk: Halves) -> Rows:
    """The nodes of tasks, as far as they are in the slice, counted from its start."""
    nodes, many = np.empty(len(rows), np.int64), 0
    for row in rows:
        at = walk.ground.node[row] - walk.ground.first
        if 0 <= at < len(walk.ground.room):
            nodes[many] = at
            many += 1
    return nodes[:many]


@inlined
def _move(sign: int, rows: Rows, walk: Halves) -> None:
    """Let tasks go (1) or return (-1), but for what regions have."""
    ground = walk.ground
    walk.many[2] += sign * len(rows)
    for row in rows:
        at = ground.node[row] - ground.first
        if at < 0 or at >= len(ground.room):
            continue
        is_open = ground.allowed[:, ground.first + at].any()
        for r in range(len(walk.free) if is_open else 0):
            walk.free[r] -= max(ground.room[at, r], 0)
        shift(at, row, sign, ground)
        for r in range(len(walk.free) if is_open else 0):
            walk.free[r] += max(ground.room[at, r], 0)
        recount_slots(at, sign, ground)
