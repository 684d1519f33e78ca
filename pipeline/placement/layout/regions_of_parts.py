"""Parts of a gang that go into one region each, where all tasks are alike: they are counted and not tried out.

A region is a domain of the level that all parts require. Tasks of one shape take slots wherever they lie, so the slots
of each region say whether the parts fit: each goes into the tightest region that takes it, the biggest first. Parts of
one size fit exactly if the regions hold enough of them. For several sizes that is bin packing (best-fit decreasing,
Johnson 1973); a part that finds no region moves to the front and all are placed anew, as in ``topology_packing``.
"""

from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Counts, Ids, Longs, Rows, frozen
from pipeline.cluster.rules.anti_affinity import concerns
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.subgroups import summed_upwards
from pipeline.kernels import inlined, kernel, linked
from pipeline.placement.layout.one_by_one import few_enough
from pipeline.placement.layout.packing import slots_at
from pipeline.placement.layout.parts import Group
from pipeline.placement.need import Need

#: Regions tried for each part, and once more, before it is given up.
TRIALS_A_PART = 16
#: Nodes with at least this many slots count as equally empty; more slots than any node has.
_BUCKETS, _ANY = 256, (1 << 31) - 1


class PartsInRegions(NamedTuple):
    """The parts of a need that go into one region each; no rows where there are none, or slots do not say if they fit.

    Attributes
    ----------
    size: int32[P]
        How many tasks each has, the biggest first.
    region: int32[N]
        The region of each node, in the order of the nodes; NONE for a node in none.
    """

    size: Counts
    region: Ids


class RegionSlots(NamedTuple):
    """The slots of a slice of nodes by region; the last two columns change in place.

    Attributes
    ----------
    size, region
        As in ``PartsInRegions``; no sizes where the slice lies in one region, so that all parts do.
    base
        The first region of the slice.
    slots: int64[Q]
        Slots in each region from there on.
    whole: int64[1]
        How many parts of the smallest size the regions hold together.
    """

    size: Counts
    region: Ids
    base: int
    slots: Longs
    whole: Longs


NO_PARTS = PartsInRegions(frozen([], np.int32), frozen([], np.int32))


def parts_in_regions(need: Need, snapshot: Snapshot) -> PartsInRegions | None:
    """The parts of a need if slots say whether they fit: then the answer is the same in every slice; None elsewhere.

    That is if all tasks are alike and none of their podgroups runs, and if all parts that ask for more than the domain
    require the same level, and none lies in another.
    """
    level = _level(need)
    if level == NONE or len(need.shapes) > 1 or snapshot.shapes.on_card[need.shapes].any():
        return None
    have, rows = snapshot.counts, list(need.podgroups)
    if (have.running[rows] + have.waiting[rows]).any() or concerns(snapshot, need.tasks):
        return None
    size = -np.sort(-_sizes(need))
    size = size[size > 0]
    if len(size) == 0 or (size[0] != size[-1] and few_enough(need.minimum, 0)):
        return None
    topology, region = snapshot.topology, np.full(len(snapshot.nodes), NONE, np.int32)
    domains = topology.at_level(level)
    for at, domain in enumerate(domains[topology.start[domains].argsort(kind="stable")].tolist()):
        region[topology.start[domain] : topology.stop[domain]] = at
    return PartsInRegions(frozen(size, np.int32), frozen(region, np.int32))


def _level(need: Need) -> int:
    """The level that all parts require that have one of their own; NONE if slots do not say whether they fit."""
    level, inside = NONE, np.zeros(len(need.parts), bool)
    if need.plain:
        return NONE
    for p, part in enumerate(need.parts):
        if part.subgroup == NONE:
            if part.preferred_level != NONE:
                return NONE
            continue
        inside[p] = part.parent != NONE and inside[part.parent]
        if part.required_level == part.preferred_level == NONE:
            continue
        if inside[p] or part.preferred_level != NONE or level not in (NONE, part.required_level):
            return NONE
        level, inside[p] = part.required_level, True
    return level


def _sizes(need: Need) -> Rows:
    """Of each part with a level of its own how many tasks of the minimum it has, with the parts inside it."""
    own = np.bincount(need.part[: need.minimum], minlength=len(need.parts))
    many = summed_upwards(np.array([part.parent for part in need.parts], np.int32), own)
    return many[[NONE not in (part.subgroup, part.required_level) for part in need.parts]]


# -- slots by region -----------------------------------------------------------------------------------------------


@linked
def region_slots(parts: PartsInRegions, begin: int, end: int, slots: Longs) -> RegionSlots:
    """Count the ``slots`` int64[n] of the nodes from ``begin`` up to ``end`` by region."""
    size, low, high = parts.size, NONE, NONE
    for node in range(begin, end if len(size) > 0 else begin):
        if parts.region[node] != NONE:
            low, high = parts.region[node] if low == NONE else low, parts.region[node]
    if low == high and low != NONE and parts.region[begin] == low and parts.region[end - 1] == low:
        size = size[:0]
    there = RegionSlots(size, parts.region, low, np.zeros(high - low + 1, np.int64), np.zeros(1, np.int64))
    for n in range(len(slots) if len(size) > 0 else 0):
        add_slots(there, begin + n, slots[n])
    return there


@kernel
def slots_by_region(parts: PartsInRegions, begin: int, end: int, slots: Longs) -> tuple[bool, int, Longs, Longs]:
    """The same for Python: whether parts must be told apart in the slice, and the last three columns."""
    there = region_slots(parts, begin, end, slots)
    return len(there.size) > 0, there.base, there.slots, there.whole


@inlined
def add_slots(there: RegionSlots, node: int, more: int) -> None:
    """Count that a node has some ``more`` slots, or fewer."""
    region = there.region[node]
    if region != NONE:
        least, at = np.int64(there.size[-1]), region - there.base
        there.whole[0] -= there.slots[at] // least
        there.slots[at] += more
        there.whole[0] += there.slots[at] // least


@linked
def parts_fit(there: RegionSlots) -> bool:
    """Whether every part finds a region; the other tasks find room if there are slots for all tasks together."""
    size = there.size
    if len(size) == 0:
        return True
    if there.whole[0] < len(size):
        return False
    return size[0] == size[-1] or len(chosen_regions(size, there.slots)[0]) > 0


@linked
def chosen_regions(size: Counts, slots: Longs) -> tuple[Rows, Rows]:
    """The order in which parts are placed, and the region of each in ``slots`` (int64[Q]); no rows if one finds none.

    The tightest region that takes a part is chosen, the first of several.
    """
    many = len(size)
    order, region, moved = np.arange(many), np.empty(many, np.int64), np.zeros(many, np.bool_)
    trials = TRIALS_A_PART * (many + 1)
    while True:
        left, failed = slots.copy(), NONE
        for at in range(many):
            part, best = order[at], NONE
            for r in range(len(left)):
                if left[r] >= size[part] and (best == NONE or left[r] < left[best]):
                    best = r
            if best == NONE or trials <= 0:
                failed = at
                break
            trials -= 1
            left[best] -= size[part]
            region[part] = best
        if failed == NONE:
            return order, region
        if failed == 0 or moved[order[failed]] or trials <= 0:
            return order[:0], region[:0]
        part = order[failed]
        moved[part] = True
        for at in range(failed, 0, -1):
            order[at] = order[at - 1]
        order[0] = part


# -- a node for every task -----------------------------------------------------------------------------------------


def alike(groups: list[Group]) -> bool:
    """Whether slots say where the groups of one shape go: all but the first require one level, and none runs."""
    inner = groups[1:]
    return all(
        one.parent == 0 and one.preferred == NONE and one.required == inner[0].required and len(one.fixed) == 0
        for one in inner
    )


@kernel
def placed_in_regions(
    request: Longs, allowed: Bools, room: Longs, size: Counts, rest: int, first: Rows, last: Rows
) -> Longs:
    """How many tasks of each part go to each node, and of the ``rest``, int64[P + 1, n]; no rows if one does not fit.

    Parameters
    ----------
    request: int64[1, R]
    allowed: bool[1, n]
    room: int64[n, R]
    size: int32[P]
        The biggest first.
    rest
        How many tasks are in no part.
    first, last: int64[Q]
        Each region from its first node up to its last.
    """
    slots, sums = np.zeros(len(room), np.int64), np.zeros(len(first), np.int64)
    for n in range(len(room)):
        if allowed[0, n]:
            slots[n] = slots_at(request, 0, room, n, _ANY)
    for r in range(len(first)):
        sums[r] = slots[first[r] : last[r]].sum()
    order, region = chosen_regions(size, sums)
    taken = np.zeros((len(size) + 1, len(room)), np.int64)
    if len(order) < len(size):
        return taken[:0]
    for part in order:
        _fill(slots, size[part], first[region[part]], last[region[part]], taken[part])
    _fill(slots, rest, 0, len(room), taken[len(size)])
    return taken if taken.sum() == size.sum() + rest else taken[:0]


@linked
def _fill(slots: Longs, wanted: int, first: int, last: int, taken: Longs) -> None:
    """Place tasks on the nodes ``first:last``, the fullest first, as ``place_classes`` does; reduces ``slots``."""
    order = np.argsort(np.minimum(slots[first:last], min(wanted, _BUCKETS)), kind="mergesort")
    for n in order:
        here = min(slots[first + n], wanted)
        taken[first + n] += here
        slots[first + n] -= here
        wanted -= here
