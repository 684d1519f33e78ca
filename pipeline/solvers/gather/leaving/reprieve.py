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
    """Whether there are slots for each kind if the candidates ``leaves`` (bool[C]) leave; else as `reprieved`."""
    for c in range(len(node)):
        if leaves[c]:
            left[node[c]] += held[c]
    _, total = node_slots(wanted.request, wanted.many, wanted.allowed, 0, left)
    return bool((total >= wanted.many).all())


@writing("left")
def brought(wanted: Wanted, left: Longs, node: Rows, held: Longs, unit: Longs, order: Rows) -> Brought:
    """The slots that units bring alone; the arguments are those of `reprieved`."""
    slots, total = node_slots(wanted.request, wanted.many, wanted.allowed, 0, left)
    missing = np.maximum(wanted.many - total, 0).sum()
    freed, frees = np.zeros(left.shape[1], np.int64), np.zeros_like(held)
    result, first = np.zeros(len(node), np.int64), 0
    while first < len(order):
        stop, before = first + 1, total.sum()
        while stop < len(order) and unit[order[first]] != NONE and unit[order[stop]] == unit[order[first]]:
            stop += 1
        for at in range(first, stop):
            _returned(wanted, left, slots, total, freed, node, held, frees, order[at], -1)
        result[order[first:stop]] = total.sum() - before
        for at in range(first, stop):
            _returned(wanted, left, slots, total, freed, node, held, frees, order[at], 1)
        first = stop
    return Brought(result, missing)


@writing("left")
def reprieved(wanted: Wanted, left: Longs, node: Rows, held: Longs, frees: Longs, unit: Longs, order: Rows) -> Bools:
    """bool[C]: which candidates leave, if they return in order, each unit whole or, in a second round, one by one.

    Parameters
    ----------
    left: int64[n, R]
        Room of the nodes beside the candidates; changed in place.
    node: int64[C], held: int64[C, R], unit: int64[C], order: int64[C]
        Of the candidates; nodes count from the first of ``left``.
    frees: int64[C, R]
        How much of the quota that the gang lacks each candidate frees.
    """
    leaves = np.ones(len(node), np.bool_)
    slots, total, freed = _all_left(wanted, left, node, held, frees)
    for alone in (False, True):
        first = 0
        while first < len(order):
            stop = first + 1
            whole = not alone and unit[order[first]] != NONE
            while whole and stop < len(order) and unit[order[stop]] == unit[order[first]]:
                stop += 1
            # What did not fit by itself before fits even less now.
            if leaves[order[first]] and not (alone and unit[order[first]] == NONE):
                fits = _all_returned(wanted, left, slots, total, freed, node, held, frees, order[first:stop])
                leaves[order[first:stop]] = not fits
            first = stop
    return leaves


@writing("left")
def within(
    wanted: Wanted, left: Longs, node: Rows, held: Longs, frees: Longs, unit: Longs, order: Rows,
    covered: Bools, beyond: Longs,
) -> Bools:  # fmt: skip
    """bool[C]: which candidates leave if in order only those return, whole units, that exceed budgets.

    Parameters
    ----------
    covered: bool[P, C]
        Which budgets cover which candidates.
    beyond: int64[P]
        How many too many leave by each budget; a unit returns while it is covered by one that is exceeded.

    The others are those of `reprieved`.
    """
    leaves, over = np.ones(len(node), np.bool_), beyond.copy()
    slots, total, freed = _all_left(wanted, left, node, held, frees)
    arranged, first = unit[order], 0
    while first < len(order):
        stop = run_end(arranged, first)
        exceeds = False
        for p in range(len(over)):
            for at in range(first, stop):
                exceeds |= over[p] > 0 and covered[p, order[at]]
        if exceeds and _all_returned(wanted, left, slots, total, freed, node, held, frees, order[first:stop]):
            leaves[order[first:stop]] = False
            for p in range(len(over)):
                for at in range(first, stop):
                    over[p] -= covered[p, order[at]]
        first = stop
    return leaves


@linked
def _all_left(wanted: Wanted, left: Longs, node: Longs, held: Longs, frees: Longs) -> tuple[Longs, Longs, Longs]:
    """Let all candidates leave; returns the slots of each node and their sums, and the quota that is freed."""
    freed = np.zeros(left.shape[1], np.int64)
    for c in range(len(node)):
        for r in range(len(freed)):
            left[node[c], r] += held[c, r]
            freed[r] += frees[c, r]
    slots, total = node_slots(wanted.request, wanted.many, wanted.allowed, 0, left)
    return slots, total, freed


@linked
def _all_returned(
    wanted: Wanted, left: Longs, slots: Longs, total: Longs, freed: Longs,
    node: Rows, held: Longs, frees: Longs, some: Rows,
) -> bool:  # fmt: skip
    """Let some candidates return, all if there are enough slots and quota then, else none; returns whether they did."""
    fits, tried = True, 0
    while fits and tried < len(some):
        fits = _returned(wanted, left, slots, total, freed, node, held, frees, some[tried], 1)
        tried += 1
    for at in range(tried if not fits else 0):
        _returned(wanted, left, slots, total, freed, node, held, frees, some[at], -1)
    return fits


@linked
def _returned(
    wanted: Wanted, left: Longs, slots: Longs, total: Longs, freed: Longs,
    node: Rows, held: Longs, frees: Longs, candidate: int, sign: int,
) -> bool:  # fmt: skip
    """Let a candidate return (``sign`` 1) or go again (-1); returns whether there are enough slots and quota then."""
    n, enough = node[candidate], True
    for r in range(len(freed)):
        left[n, r] -= sign * held[candidate, r]
    for kind in range(len(total)):
        if wanted.allowed[kind, n]:
            now = slots_at(wanted.request, kind, left, n, wanted.many[kind])
            total[kind] += now - slots[kind, n]
            slots[kind, n] = now
        enough &= total[kind] >= wanted.many[kind]
    for r in range(len(freed)):
        freed[r] -= sign * frees[candidate, r]
        enough &= wanted.short[r] <= 0 or freed[r] >= wanted.short[r]
    return enough
