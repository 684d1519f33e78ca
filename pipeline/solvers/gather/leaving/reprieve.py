"""Reprieve: candidates return one unit after the other as long as the gang keeps its slots and its quota."""

from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Longs, Rows
from pipeline.cluster.rules.quota import run_end
from pipeline.kernels import inlined, linked, writing
from pipeline.placement.kept_places import (
    KeptPlaces,
    count_offers,
    find_again,
    find_places,
    may_be_held,
    no_places,
    offer_again,
    stay,
)
from pipeline.placement.layout.packing import node_slots, slots_less, slots_more
from pipeline.placement.layout.settled_groups import AskedPlaces

#: After this many returns that left the gang no places it is not laid out anew any more.
_MISSED = 32


class Wanted(NamedTuple):
    """What must remain possible.

    Attributes
    ----------
    request: int64[M, R'], many: int64[M]
        Of each kind of the gang's tasks, by columns of ``CountedNeed``.
    allowed: bool[M, n]
    short: int64[R]
        How much quota the gang lacks, 0 where it lacks none: what victims free of it must come to as much.
    places
        The gang in the slice, if more than slots decides where it fits; else nothing is asked of regions, and it has no
        groups. Without groups it is not placed here, and only what regions have is counted.
    """

    request: Longs
    many: Longs
    allowed: Bools
    short: Longs
    places: AskedPlaces


class Exceeded(NamedTuple):
    """Disruption budgets that are exceeded if all candidates leave.

    Attributes
    ----------
    start: int64[C + 1], budget: int64[E]
        Those that cover candidate ``c`` are ``budget[start[c]:start[c + 1]]``; without budgets both are empty.
    beyond: int64[P]
        How many too many leave by each.
    """

    start: Longs
    budget: Rows
    beyond: Longs


class LeavingCandidates(NamedTuple):
    """Candidates, which all leave at first.

    Attributes
    ----------
    node: int64[C]
        The node of each, counted from the first of the room.
    held: int64[C, R']
    frees: int64[C, R]
        How much of the quota that the gang lacks each frees.
    unit, gain: int64[C]
        As in `Pool`.
    """

    node: Rows
    held: Longs
    frees: Longs
    unit: Longs
    gain: Longs


class _Ground(NamedTuple):
    """What is left as they return, changed in place: room and slots of nodes, sums of slots, and quota that is freed.

    These are int64[n, R'], int64[M, n], int64[M] and int64[R]; places of the gang, and int64[1], how often it was laid
    out anew and found none.
    """

    left: Longs
    slots: Longs
    total: Longs
    freed: Longs
    places: KeptPlaces
    missed: Longs


@writing("left")
def has_slots_without(wanted: Wanted, left: Longs, node: Rows, held: Longs, leaves: Bools) -> bool:
    """Whether there are slots for each kind, and enough in regions, if the candidates ``leaves`` (bool[C]) leave.

    ``node``, ``held``: see `LeavingCandidates`.
    """
    for c in range(len(node)):
        if leaves[c]:
            left[node[c]] += held[c]
    _, total = node_slots(wanted.request, wanted.many, wanted.allowed, 0, left)
    if not (total >= wanted.many).all():
        return False
    places = no_places(wanted.places)
    count_offers(wanted.places, places, _in_slice(wanted, left))
    return bool(may_be_held(wanted.places, places))


@writing("left")
def enough_without(wanted: Wanted, left: Longs, some: LeavingCandidates) -> Bools:
    """bool[2 ** C]: whether slots and quota suffice after each set of candidates: one leaves if its bit is set.

    Each set differs from the one before it by one candidate (Gray code).
    """
    ground = _all_left(wanted, left, some, no_places(wanted.places))
    sets = 1 << len(some.node)
    result, gone = np.zeros(sets, np.bool_), sets - 1
    result[gone] = (ground.total >= wanted.many).all() & (ground.freed >= wanted.short).all()
    for step in range(1, sets):
        candidate = 0
        while not step >> candidate & 1:
            candidate += 1
        sign = 1 if gone >> candidate & 1 else -1
        gone ^= 1 << candidate
        result[gone] = _returned(wanted, ground, some, candidate, sign)
    return result


@writing("left")
def brought(wanted: Wanted, left: Longs, some: LeavingCandidates, order: Rows) -> Longs:
    """int64[C]: the slots that the unit of each brings alone, for all kinds together; arguments as of `reprieved`."""
    slots, total = node_slots(wanted.request, wanted.many, wanted.allowed, 0, left)
    freed, places = np.zeros(some.frees.shape[1], np.int64), no_places(wanted.places)
    ground = _Ground(left, slots, total, freed, places, np.zeros(1, np.int64))
    arranged, result, first = some.unit[order], np.zeros(len(some.node), np.int64), 0
    while first < len(order):
        stop, before = run_end(arranged, first), total.sum()
        for at in range(first, stop):
            _returned(wanted, ground, some, order[at], -1)
        result[order[first:stop]] = total.sum() - before
        for at in range(first, stop):
            _returned(wanted, ground, some, order[at], 1)
        first = stop
    return result


@writing("left")
def reprieved(wanted: Wanted, left: Longs, some: LeavingCandidates, order: Rows, exceeded: Exceeded) -> Bools:
    """bool[C]: which candidates leave, if they return in order, each unit whole.

    In a second round those of units that leave return one by one, the ones that gain the fewest slots first. If budgets
    are exceeded only whole units return, each while it is covered by such a budget.

    Parameters
    ----------
    left: int64[n, R']
        Room of the nodes beside the candidates; changed in place.
    order: int64[K]
        Positions of candidates.
    exceeded
        The budgets that are exceeded if all leave.
    """
    ground = _all_left(wanted, left, some, no_places(wanted.places))
    count_offers(wanted.places, ground.places, _in_slice(wanted, left))
    return _all_in_order(wanted, ground, some, order, exceeded)


@writing("left", "kept")
def reprieved_in_places(wanted: Wanted, left: Longs, some: LeavingCandidates, order: Rows, kept: KeptPlaces) -> Bools:
    """The same where those that return leave the gang ``kept`` places: there are none yet.

    After some returns that leave it none, its tasks stay where they are.
    """
    ground = _all_left(wanted, left, some, kept)
    find_places(wanted.places, kept, _in_slice(wanted, left))
    nothing = np.zeros(0, np.int64)
    return _all_in_order(wanted, ground, some, order, Exceeded(nothing, nothing, nothing))


@linked
def _all_in_order(wanted: Wanted, ground: _Ground, some: LeavingCandidates, order: Rows, exceeded: Exceeded) -> Bools:
    """See ``reprieved``."""
    over = exceeded.beyond.copy()
    leaves, refused = np.ones(len(some.node), np.bool_), np.full(len(ground.left), NONE, np.int64)
    placed = len(wanted.places.tree.own) > 0
    for alone in range(2 if len(over) == 0 else 1):
        turns, first = _of_units(some, order, leaves) if alone else order.copy(), 0
        arranged = some.unit[turns]
        while first < len(turns):
            stop = first + 1 if alone else run_end(arranged, first)
            asks = leaves[turns[first]] if len(over) == 0 else _counts(exceeded, over, turns[first:stop], 0) > 0
            asks = asks and not _takes_as_much(some, turns[first:stop], refused)
            if asks and _all_returned(wanted, ground, some, turns[first:stop]):
                leaves[turns[first:stop]] = False
                if len(over):
                    _counts(exceeded, over, turns[first:stop], 1)
            elif asks and stop == first + 1 and not placed:
                refused[some.node[turns[first]]] = turns[first]
            first = stop
    return leaves


@linked
def _counts(exceeded: Exceeded, over: Longs, unit: Rows, returns: int) -> int:
    """How often the tasks of a unit are covered by budgets by which too many leave; fewer do where it ``returns``."""
    many = 0
    for candidate in unit:
        for budget in exceeded.budget[exceeded.start[candidate] : exceeded.start[candidate + 1]]:
            many += over[budget] > 0
            over[budget] -= returns
    return many


@linked
def _of_units(some: LeavingCandidates, order: Rows, leaves: Bools) -> Rows:
    """Those that leave with others of their units, in the order of what they gain.

    What is by itself did not fit before, and fits even less now.
    """
    kept, many = np.empty(len(order), np.int64), 0
    for candidate in order:
        if leaves[candidate] and some.unit[candidate] != NONE:
            kept[many] = candidate
            many += 1
    kept = kept[:many]
    return kept[np.argsort(some.gain[kept], kind="mergesort")]


@linked
def _takes_as_much(some: LeavingCandidates, these: Rows, refused: Rows) -> bool:
    """Whether any of some candidates takes as much of its node, and of the quota, as one that was ``refused`` there."""
    for candidate in these:
        other = refused[some.node[candidate]]
        if other == NONE:
            continue
        as_much = True
        for r in range(some.held.shape[1]):
            as_much &= some.held[candidate, r] >= some.held[other, r]
        for r in range(some.frees.shape[1]):
            as_much &= some.frees[candidate, r] >= some.frees[other, r]
        if as_much:
            return True
    return False


@linked
def _all_left(wanted: Wanted, left: Longs, some: LeavingCandidates, places: KeptPlaces) -> _Ground:
    """Let all candidates leave."""
    freed = np.zeros(some.frees.shape[1], np.int64)
    for c in range(len(some.node)):
        for r in range(left.shape[1]):
            left[some.node[c], r] += some.held[c, r]
        for r in range(len(freed)):
            freed[r] += some.frees[c, r]
    slots, total = node_slots(wanted.request, wanted.many, wanted.allowed, 0, left)
    return _Ground(left, slots, total, freed, places, np.zeros(1, np.int64))


@inlined
def _in_slice(wanted: Wanted, left: Longs) -> Longs:
    """The room without the row that stands for nodes outside."""
    return left[: wanted.places.usable.shape[1]]


@linked
def _all_returned(wanted: Wanted, ground: _Ground, some: LeavingCandidates, these: Rows) -> bool:
    """Let these candidates return, if the gang keeps its slots, places and quota then, else none; whether they did."""
    fits, tried, before = True, 0, ground.total[0]
    while fits and tried < len(these):
        fits = _returned(wanted, ground, some, these[tried], 1)
        tried += 1
    placed, regions = len(wanted.places.tree.own) > 0, len(wanted.places.regions.amount) > 0
    # Of one kind regions have less only where there are fewer slots.
    offers = fits and (placed or (regions and (len(ground.total) > 1 or ground.total[0] < before)))
    if not offers:
        for at in range(tried if not fits else 0):
            _returned(wanted, ground, some, these[at], -1)
        return fits
    nodes, room = some.node[these], _in_slice(wanted, ground.left)
    nodes = nodes[nodes < len(room)] if len(room) < len(ground.left) else nodes
    if _keeps_places(wanted.places, ground, nodes, room):
        return True
    for at in range(tried):
        _returned(wanted, ground, some, these[at], -1)
    offer_again(nodes, wanted.places, ground.places, room)
    return False


@inlined
def _keeps_places(asked: AskedPlaces, ground: _Ground, nodes: Rows, room: Longs) -> bool:
    """Whether regions have enough, and there are places, after some nodes (int64[K]) lost room."""
    if offer_again(nodes, asked, ground.places, room) and not may_be_held(asked, ground.places):
        return False
    if len(asked.tree.own) == 0:
        return True
    if ground.missed[0] == _MISSED:
        return stay(nodes, asked, ground.places, room)
    found = find_again(nodes, asked, ground.places, room)
    ground.missed[0] += not found
    return found


@linked
def _returned(wanted: Wanted, ground: _Ground, some: LeavingCandidates, candidate: int, sign: int) -> bool:
    """Let a candidate return (``sign`` 1) or go again (-1); returns whether there are enough slots and quota then."""
    left, slots, total, freed = ground.left, ground.slots, ground.total, ground.freed
    n, enough = some.node[candidate], True
    for r in range(left.shape[1]):
        left[n, r] -= sign * some.held[candidate, r]
    for kind in range(len(total)):
        if wanted.allowed[kind, n]:
            most, before = wanted.many[kind], slots[kind, n]
            if sign > 0:
                now = slots_less(wanted.request, kind, left, n, most, before)
            else:
                now = slots_more(wanted.request, kind, left, n, most, before)
            total[kind] += now - before
            slots[kind, n] = now
        enough &= total[kind] >= wanted.many[kind]
    for r in range(len(freed)):
        freed[r] -= sign * some.frees[candidate, r]
        enough &= wanted.short[r] <= 0 or freed[r] >= wanted.short[r]
    return enough
