"""Parts of a gang that go into one region each, where all tasks are alike: they are counted and not tried out.

A region is a domain of the level that the parts require. Tasks of one shape take slots wherever they lie, so the slots
of each region say whether the parts fit: each goes into the tightest region that takes it, the biggest first. Parts of
one size fit exactly if the regions hold enough of them. For several sizes that is bin packing (best-fit decreasing,
Johnson 1973); a part that finds no region moves to the front and all are placed anew, as in ``topology_packing``. Parts
may lie in outer parts that require a wider level: these are placed in the same way, each with the parts inside it.
"""

from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import NONE, Counts, Ids, Longs, Rows, frozen
from pipeline.kernels import inlined, linked

#: Regions tried for each part, and once more, before it is given up.
TRIALS_A_PART = 16


class PartsInRegions(NamedTuple):
    """The parts of a need that go into one region each; no rows where there are none, or slots do not say if they fit.

    Attributes
    ----------
    size: int32[P]
        How many tasks each has, the biggest first; by outer part, the biggest of these first, where there are some.
    least
        The smallest size.
    equal
        Whether all are of one size.
    most
        How many parts of the smallest size a region takes at most.
    around: int32[O + 1]
        Where the parts of each outer part begin; no rows without outer parts.
    region, wide: int32[N]
        The region of each node, and the one of the level of the outer parts, in the order of the nodes; NONE for a node
        in none.
    """

    size: Counts
    least: int
    equal: bool
    most: int
    around: Ids
    region: Ids
    wide: Ids


class RegionSlots(NamedTuple):
    """The slots of a slice of nodes by region; the last two columns change in place.

    Attributes
    ----------
    parts
        No sizes where the slice lies in one region, so that all parts do; no outer parts where these all do.
    base
        The first region of the slice.
    first: int64[Q]
        The first node of each region from there on.
    slots: int64[Q]
        Slots in each.
    whole: int64[1]
        How many parts of the smallest size the regions hold together.
    """

    parts: PartsInRegions
    base: int
    first: Rows
    slots: Longs
    whole: Longs


#: More parts than any region takes.
ANY = (1 << 31) - 1
NO_PARTS = PartsInRegions(
    frozen([], np.int32), 1, True, ANY, frozen([], np.int32), frozen([], np.int32), frozen([], np.int32)
)  # fmt: skip


@inlined
def lies_in_one(region: Ids, begin: int, end: int) -> bool:
    """Whether the nodes from ``begin`` up to ``end`` lie in one region."""
    return bool(len(region) > 0 and region[begin] != NONE and region[begin] == region[end - 1])


@linked
def region_slots(parts: PartsInRegions, begin: int, end: int, slots: Longs) -> RegionSlots:
    """Count the ``slots`` int64[n] of the nodes from ``begin`` up to ``end`` by region."""
    size, around, low, high = parts.size, parts.around, NONE, NONE
    if parts.most == ANY and len(size) > 0 and lies_in_one(parts.region, begin, end):
        size, around = size[:0], around[:0]
    elif lies_in_one(parts.wide, begin, end):
        around = around[:0]
    for node in range(begin, end if len(size) > 0 else begin):
        if parts.region[node] != NONE:
            low, high = parts.region[node] if low == NONE else low, parts.region[node]
    many = high - low + 1 if low != NONE else 0
    here = PartsInRegions(size, parts.least, parts.equal, parts.most, around, parts.region, parts.wide)
    there = RegionSlots(here, low, np.full(many, NONE, np.int64), np.zeros(many, np.int64), np.zeros(1, np.int64))
    for n in range(len(slots) if many > 0 else 0):
        region = parts.region[begin + n]
        if region != NONE and there.first[region - low] == NONE:
            there.first[region - low] = begin + n
        add_slots(there, begin + n, slots[n])
    return there


@inlined
def add_slots(there: RegionSlots, node: int, more: int) -> None:
    """Count that a node has some ``more`` slots, or fewer."""
    region = there.parts.region[node]
    if region != NONE:
        at = region - there.base
        there.whole[0] -= min(there.slots[at] // there.parts.least, there.parts.most)
        there.slots[at] += more
        there.whole[0] += min(there.slots[at] // there.parts.least, there.parts.most)


@inlined
def parts_fit(there: RegionSlots) -> bool:
    """Whether every part finds a region; the other tasks find room if there are slots for all tasks together."""
    parts = there.parts
    if len(parts.size) == 0:
        return True
    if there.whole[0] < len(parts.size):
        return False
    # Passing the columns on costs more than what is counted here, which mostly decides.
    return (parts.equal and len(parts.around) == 0) or _parts_find_regions(there)


@linked
def _parts_find_regions(there: RegionSlots) -> bool:
    """Whether every part finds a region where parts are of several sizes, or lie in outer ones."""
    if len(there.parts.around) > 0:
        return _outer_parts_fit(there)
    size = there.parts.size
    return len(chosen_regions(size, there.slots, trials_of(len(size)))[0]) > 0


@inlined
def trials_of(parts: int) -> Longs:
    """int64[1]: how many regions are tried for some parts and the gang itself."""
    return np.full(1, TRIALS_A_PART * (parts + 1), np.int64)


@inlined
def to_front(order: Rows, at: int) -> None:
    """Put what is at a position before all that is ahead of it."""
    one = order[at]
    for before in range(at, 0, -1):
        order[before] = order[before - 1]
    order[0] = one


@linked
def chosen_regions(size: Counts, slots: Longs, trials: Longs) -> tuple[Rows, Rows]:
    """The order in which parts are placed, and the region of each in ``slots`` (int64[Q]); no rows if one finds none.

    The tightest region that takes a part is chosen, the first of several. ``trials`` int64[1]: how many regions may be
    tried; fewer afterwards.
    """
    many = len(size)
    order, region, moved = np.argsort(-size, kind="mergesort"), np.empty(many, np.int64), np.zeros(many, np.bool_)
    while True:
        left, failed = slots.copy(), NONE
        for at in range(many):
            part, best = order[at], NONE
            for r in range(len(left)):
                if left[r] >= size[part] and (best == NONE or left[r] < left[best]):
                    best = r
            if best == NONE or trials[0] <= 0:
                failed = at
                break
            trials[0] -= 1
            left[best] -= size[part]
            region[part] = best
        if failed == NONE:
            return order, region
        if failed == 0 or moved[order[failed]] or trials[0] <= 0:
            return order[:0], region[:0]
        moved[order[failed]] = True
        to_front(order, failed)


@linked
def _outer_parts_fit(there: RegionSlots) -> bool:
    """Whether every outer part finds a region of its level in which the parts inside it find theirs."""
    many = len(there.parts.around) - 1
    order, moved, trials = np.arange(many), np.zeros(many, np.bool_), trials_of(many + len(there.parts.size))
    edges = _edges(there)
    while True:
        left, failed = there.slots.copy(), NONE
        for at in range(many):
            if not _outer_part_fits(order[at], edges, left, trials, there.parts):
                failed = at
                break
        if failed == NONE:
            return True
        if failed == 0 or moved[order[failed]] or trials[0] <= 0:
            return False
        moved[order[failed]] = True
        to_front(order, failed)


@linked
def _edges(there: RegionSlots) -> Rows:
    """int64[B + 1]: where the regions of each wide region begin, and their end; all regions lie in one."""
    edges, many, wide = np.empty(len(there.first) + 1, np.int64), 0, NONE
    for r in range(len(there.first)):
        here = there.parts.wide[there.first[r]]
        if r == 0 or here != wide:
            edges[many] = r
            many += 1
        wide = here
    edges[many] = len(there.first)
    return edges[: many + 1]


@linked
def _outer_part_fits(outer: int, edges: Rows, left: Longs, trials: Longs, parts: PartsInRegions) -> bool:
    """Place an outer part in the tightest wide region that takes it and the parts inside; reduces ``left`` int64[Q]."""
    size = parts.size[parts.around[outer] : parts.around[outer + 1]]
    tried, total = np.zeros(len(edges) - 1, np.bool_), size.sum()
    while True:
        best, least = NONE, 0
        for wide in range(len(tried)):
            there = left[edges[wide] : edges[wide + 1]].sum()
            if not tried[wide] and there >= total and (best == NONE or there < least):
                best, least = wide, there
        if best == NONE or trials[0] <= 0:
            return False
        tried[best] = True
        trials[0] -= 1
        order, region = chosen_regions(size, left[edges[best] : edges[best + 1]], trials)
        for part in order:
            left[edges[best] + region[part]] -= size[part]
        if len(order) > 0:
            return True
