"""Reprieve: candidates return one unit after the other as long as the gang keeps its slots and its quota."""

from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Longs, Rows
from pipeline.cluster.rules.quota import run_end
from pipeline.kernels import linked, writing
from pipeline.placement.layout.packing import node_slots, slots_at


class Wanted(NamedTuple):
    """What must remain possible.

    Attributes
    ----------
    request: int64[M, R], many: int64[M]
        Of each kind of the gang's tasks.
    allowed: bool[M, n]
    short: int64[R]
        How much quota the gang lacks, 0 where it lacks none: what victims free of it must come to as much.
    """

    request: Longs
    many: Longs
    allowed: Bools
    short: Longs


class LeavingCandidates(NamedTuple):
    """Candidates, which all leave at first.

    Attributes
    ----------
    node: int64[C]
        The node of each, counted from the first of the room.
    held: int64[C, R]
    frees: int64[C, R]
        How much of the quota that the gang lacks each frees.
    unit: int64[C]
        As in `Pool`.
    """

    node: Rows
    held: Longs
    frees: Longs
    unit: Longs


class _Ground(NamedTuple):
    """What is left as they return, changed in place: room and slots of nodes, sums of slots, and quota that is freed.

    These are int64[n, R], int64[M, n], int64[M] and int64[R].
    """

    left: Longs
    slots: Longs
    total: Longs
    freed: Longs


class Brought(NamedTuple):
    """What units bring.

    Attributes
    ----------
    slots: int64[C]
        For each candidate the slots that its unit brings, for all kinds of tasks together, if it alone leaves.
    missing: int
        How many slots the kinds lack as long as all candidates stay, together.
    """

    slots: Longs
    missing: int


@writing("left")
def suffices(wanted: Wanted, left: Longs, node: Rows, held: Longs, leaves: Bools) -> bool:
    """Whether there are slots for each kind if the candidates ``leaves`` (bool[C]) leave; see `LeavingCandidates`."""
    for c in range(len(node)):
        if leaves[c]:
            left[node[c]] += held[c]
    _, total = node_slots(wanted.request, wanted.many, wanted.allowed, 0, left)
    return bool((total >= wanted.many).all())


@writing("left")
def brought(wanted: Wanted, left: Longs, some: LeavingCandidates, order: Rows) -> Brought:
    """The slots that units bring alone; the arguments are those of `reprieved`."""
    slots, total = node_slots(wanted.request, wanted.many, wanted.allowed, 0, left)
    ground = _Ground(left, slots, total, np.zeros(left.shape[1], np.int64))
    missing = np.maximum(wanted.many - total, 0).sum()
    arranged, result, first = some.unit[order], np.zeros(len(some.node), np.int64), 0
    while first < len(order):
        stop, before = run_end(arranged, first), total.sum()
        for at in range(first, stop):
            _returned(wanted, ground, some, order[at], -1)
        result[order[first:stop]] = total.sum() - before
        for at in range(first, stop):
            _returned(wanted, ground, some, order[at], 1)
        first = stop
    return Brought(result, missing)


@writing("left")
def reprieved(
    wanted: Wanted, left: Longs, some: LeavingCandidates, order: Rows, covered: Bools, beyond: Longs
) -> Bools:
    """bool[C]: which candidates leave, if they return in order, each unit whole or, in a second round, one by one.

    If budgets are exceeded only whole units return, each while it is covered by such a budget.

    Parameters
    ----------
    left: int64[n, R]
        Room of the nodes beside the candidates; changed in place.
    order: int64[K]
        Positions of candidates.
    covered: bool[P, C], beyond: int64[P]
        Of budgets that are exceeded which candidates each covers, and how many too many leave by it.
    """
    leaves, over = np.ones(len(some.node), np.bool_), beyond.copy()
    ground, arranged = _all_left(wanted, left, some), some.unit[order]
    for alone in range(2 if len(over) == 0 else 1):
        first = 0
        while first < len(order):
            stop = first + 1 if alone else run_end(arranged, first)
            # What did not fit by itself before fits even less now.
            asks = leaves[order[first]] and not (alone and arranged[first] == NONE)
            for p in range(len(over)):
                asks = over[p] > 0 and covered[p, order[first:stop]].any()
                if asks:
                    break
            if asks and _all_returned(wanted, ground, some, order[first:stop]):
                leaves[order[first:stop]] = False
                for p in range(len(over)):
                    over[p] -= covered[p, order[first:stop]].sum()
            first = stop
    return leaves


@linked
def _all_left(wanted: Wanted, left: Longs, some: LeavingCandidates) -> _Ground:
    """Let all candidates leave."""
    freed = np.zeros(left.shape[1], np.int64)
    for c in range(len(some.node)):
        for r in range(len(freed)):
            left[some.node[c], r] += some.held[c, r]
            freed[r] += some.frees[c, r]
    slots, total = node_slots(wanted.request, wanted.many, wanted.allowed, 0, left)
    return _Ground(left, slots, total, freed)


@linked
def _all_returned(wanted: Wanted, ground: _Ground, some: LeavingCandidates, these: Rows) -> bool:
    """Let these candidates return, if there are enough slots and quota then, else none; returns whether they did."""
    fits, tried = True, 0
    while fits and tried < len(these):
        fits = _returned(wanted, ground, some, these[tried], 1)
        tried += 1
    for at in range(tried if not fits else 0):
        _returned(wanted, ground, some, these[at], -1)
    return fits


@linked
def _returned(wanted: Wanted, ground: _Ground, some: LeavingCandidates, candidate: int, sign: int) -> bool:
    """Let a candidate return (``sign`` 1) or go again (-1); returns whether there are enough slots and quota then."""
    (left, slots, total, freed), n, enough = ground, some.node[candidate], True
    for r in range(len(freed)):
        left[n, r] -= sign * some.held[candidate, r]
    for kind in range(len(total)):
        if wanted.allowed[kind, n]:
            now = slots_at(wanted.request, kind, left, n, wanted.many[kind])
            total[kind] += now - slots[kind, n]
            slots[kind, n] = now
        enough &= total[kind] >= wanted.many[kind]
    for r in range(len(freed)):
        freed[r] -= sign * some.frees[candidate, r]
        enough &= wanted.short[r] <= 0 or freed[r] >= wanted.short[r]
    return enough
