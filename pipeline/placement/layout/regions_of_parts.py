"""What parts of a need ask of the regions that they go into, one each, and whether these have too little for them all.

Where that is refused there are no places; else there may be some. Where slots say that there are, see
``parts_in_regions``.
"""

from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, NONE, Bools, Floats, Ids, Longs, frozen, sealed
from pipeline.cluster.snapshot import Snapshot
from pipeline.kernels import inlined, kernel, linked
from pipeline.placement.layout.packing import slots_at
from pipeline.placement.layout.parts import Group, groups_of, regions_at
from pipeline.placement.need import Need

#: More slots than any node has.
_ANY = (1 << 31) - 1
#: How often a part is put into a region, or none is found for it, before it is left open whether all find one.
_STEPS = 1_000
#: What an upper bound is multiplied with, so that rounding never makes it too low.
_ROUNDED_UP = 1 + 1e-9


class AskedOfRegions(NamedTuple):
    """What parts ask of the regions that they go into, one each, by required level.

    Attributes
    ----------
    request: int64[S, R]
        By shape.
    amount: int64[L, S + 1, P]
        Of each part: its tasks of each shape, and what it takes of the scarcest resource; by row the largest first, and
        0 after the last.
    part: int64[L, P, S + 1]
        The same part by part, those first that take the most of that resource; equal ones follow each other.
    scarce
        That resource.
    region: int32[L, N]
        The region of each node; NONE for a node in none.
    """

    request: Longs
    amount: Longs
    part: Longs
    scarce: int
    region: Ids


#: Of a need without such parts.
NOT_ASKED = AskedOfRegions(
    frozen(np.zeros((0, 0)), np.int64), frozen(np.zeros((0, 0, 0)), np.int64), frozen(np.zeros((0, 0, 0)), np.int64),
    0, frozen(np.zeros((0, 0)), np.int32),
)  # fmt: skip


def scarcest(need: Need, snapshot: Snapshot) -> int:
    """The resource for which the minimum asks the largest part of what all nodes have free."""
    return int(np.argmax(need.total / (snapshot.room.free + 1.0)))


def asked_of_regions(need: Need, request: Longs, snapshot: Snapshot, own: Longs | None = None) -> AskedOfRegions | None:
    """What parts of the minimum ask of regions; None if no part requires a level.

    Of parts in each other that require the same level the outer one is counted, which all go into one region.

    Parameters
    ----------
    request: int64[S, R]
        By shape of the need, anti-affinity included where it is counted as a resource.
    own: int64[P, S]
        Tasks of each shape in each part itself; None: those of the minimum.
    """
    grouping = None if need.plain else groups_of(need, snapshot, NO_ROWS)
    levels = sorted({one.required for one in grouping[0]} - {NONE}) if grouping else []
    if grouping is None or not levels:
        return None
    groups, of = grouping
    total = np.zeros((len(groups), len(need.shapes)), np.int64)
    if own is None:
        np.add.at(total, (of[need.part[: need.minimum]], need.shape[: need.minimum]), 1)
    else:
        np.add.at(total, of, own)
    for g in range(len(groups) - 1, 0, -1):
        total[groups[g].parent] += total[g]
    scarce = scarcest(need, snapshot)
    taken = np.column_stack([total, total @ request[:, scarce]]).T
    amount = np.zeros((len(levels), len(taken), len(groups)), np.int64)
    part = np.zeros((len(levels), len(groups), len(taken)), np.int64)
    for at, level in enumerate(levels):
        mine = taken[:, [g for g in range(1, len(groups)) if _is_outermost(groups, g, level)]]
        amount[at, :, : mine.shape[1]] = -np.sort(-mine, axis=1)
        part[at, : mine.shape[1]] = mine.T[np.lexsort(-mine)]
    region = np.stack([regions_at(snapshot, level) for level in levels])
    return AskedOfRegions(frozen(request, np.int64), sealed(amount), sealed(part), scarce, sealed(region))


def asked_of_one_region(need: Need, request: Longs, snapshot: Snapshot) -> AskedOfRegions:
    """The same of a need of one part: what it asks of any slice of nodes, as if that were a region."""
    scarce, every = scarcest(need, snapshot), np.zeros((1, len(snapshot.nodes)))
    taken = np.append(need.count, need.count @ request[:, scarce])
    amount, part = frozen(taken.reshape(1, -1, 1), np.int64), frozen(taken.reshape(1, 1, -1), np.int64)
    return AskedOfRegions(frozen(request, np.int64), amount, part, scarce, frozen(every, np.int32))


def _is_outermost(groups: list[Group], group: int, level: int) -> bool:
    """Whether a group requires the level, and none around it does."""
    around = [groups[group].parent]
    while around[-1] != NONE:
        around.append(groups[around[-1]].parent)
    return groups[group].required == level and all(groups[one].required != level for one in around[:-1])


@kernel
def may_find_regions(asked: AskedOfRegions, allowed: Bools, room: Longs, first: int) -> bool:
    """Whether regions have enough for all parts, by shape and by the scarcest resource; if not, some part finds none.

    Parameters
    ----------
    allowed: bool[S, n]
    room: int64[n, R]
        Of the nodes from ``first`` on.
    """
    levels, rows, widest = len(asked.amount), asked.amount.shape[1], 1
    for level in range(levels):
        many = 1
        for n in range(1, len(room)):
            many += int(asked.region[level, first + n] != asked.region[level, first + n - 1])
        widest = max(widest, many)
    have, there = np.zeros((levels, rows, widest), np.int64), np.zeros((levels, rows), np.int64)
    at = np.zeros(levels, np.int64)
    for n in range(len(room)):
        offer_to_parts(asked, allowed, room, n, there)
        for level in range(levels):
            region = asked.region[level, first + n]
            at[level] += int(n > 0 and region != asked.region[level, first + n - 1])
            if region != NONE:
                have[level, :, at[level]] += there[level]
    return may_hold_all(asked, have)


@linked
def may_hold_all(asked: AskedOfRegions, have: Longs) -> bool:
    """Whether regions that ``have`` so much, int64[L, S + 1, Q], may hold all parts: see ``may_find_regions``."""
    for level in range(len(have)):
        for row in range(have.shape[1]):
            if not hold(have[level, row], asked.amount[level, row]):
                return False
        if not _may_hold_together(have[level], asked.part[level]):
            return False
    return True


@inlined
def hold(have: Longs | Floats, amount: Longs) -> bool:
    """Whether regions that ``have`` so much hold parts of these amounts, int64[P] with the largest first.

    All that are as large as a part, or larger, have to lie in regions that hold as many of its size.
    """
    for part in range(len(amount)):
        if amount[part] == 0:
            break
        if part + 1 < len(amount) and amount[part + 1] == amount[part]:
            continue
        many = 0
        for there in have:
            many += there // amount[part]
            if many > part:
                break
        if many <= part:
            return False
    return True


@linked
def _may_hold_together(have: Longs, part: Longs) -> bool:
    """Whether regions that ``have`` so much of each, int64[S + 1, Q], may hold all parts, int64[P, S + 1].

    Depth first, part after part in the regions that have the least of the scarcest resource; what was not decided after
    some steps may be. Of equal parts the later one goes into no earlier region.
    """
    many, at, steps = 0, 0, 0
    while many < len(part) and _asks(part, many):
        many += 1
    if part.shape[1] - 1 == 1 and many > 0 and part[0, 0] == part[many - 1, 0]:
        return True  # equal parts of one shape: ``hold`` has said all
    left = have[:, np.argsort(have[-1], kind="mergesort")]
    region = np.zeros(many + 1, np.int64)
    while at < many and steps < _STEPS:
        steps += 1
        while region[at] < left.shape[1] and not _is_held(part[at], left, region[at]):
            region[at] += 1
        if region[at] < left.shape[1]:
            _add(left, region[at], part[at], -1)
            at += 1
            if at < many:
                region[at] = region[at - 1] if _are_equal(part, at, at - 1) else 0
        elif at == 0:
            return False
        else:
            at -= 1
            _add(left, region[at], part[at], 1)
            region[at] += 1
    return True


@inlined
def _asks(part: Longs, at: int) -> bool:
    """Whether a part asks for anything."""
    asks = False
    for row in range(part.shape[1]):
        asks |= part[at, row] != 0
    return asks


@inlined
def _are_equal(part: Longs, one: int, other: int) -> bool:
    equal = True
    for row in range(part.shape[1]):
        equal &= part[one, row] == part[other, row]
    return equal


@inlined
def _is_held(part: Longs, left: Longs, region: int) -> bool:
    """Whether a region has all that a part takes, int64[S + 1]; loops, since so few rows are not worth an array."""
    held = True
    for row in range(len(part)):
        held &= part[row] <= left[row, region]
    return held


@inlined
def _add(left: Longs, region: int, part: Longs, sign: int) -> None:
    for row in range(len(part)):
        left[row, region] += sign * part[row]


@linked
def offer_to_parts(asked: AskedOfRegions, allowed: Bools, room: Longs, node: int, there: Longs) -> None:
    """What a node has for the parts of each level at most: slots of each shape, and of the scarcest resource."""
    shapes = len(asked.request)
    for level in range(len(there)):
        for s in range(shapes):
            there[level, s] = 0
            if asked.amount[level, s, 0] > 0 and allowed[s, node]:
                there[level, s] = slots_at(asked.request, s, room, node, _ANY)
        there[level, shapes] = _usable(asked, there[level], room, node)


@inlined
def _usable(asked: AskedOfRegions, slots: Longs, room: Longs, node: int) -> int:
    """How much of the scarcest resource tasks of all shapes can take at most, given the slots int64[S + 1] for each.

    No more than all slots together take, and than another resource allows for which all these tasks ask.
    """
    request, scarce, most = asked.request, asked.scarce, 0
    for s in range(len(request)):
        most += slots[s] * request[s, scarce]
    for other in range(request.shape[1] if most > 0 else 0):
        ratio = 0.0
        for s in range(len(request)):
            if slots[s] > 0 and request[s, scarce] > 0:
                ratio = max(ratio, request[s, scarce] / request[s, other]) if request[s, other] > 0 else np.inf
        if ratio < np.inf:
            most = min(most, int(ratio * room[node, other] * _ROUNDED_UP))
    return most
