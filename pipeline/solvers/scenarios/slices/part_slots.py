"""Whether slots decide if a need fits in a slice of nodes, and in which regions its parts are counted there."""

from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, NONE, Longs
from pipeline.placement.layout.parts import groups_of, in_one_region_each, regions_at
from pipeline.placement.room.counted_need import CountedNeed


class PartSlots(NamedTuple):
    """The region of each node, int64[n], and how many tasks each part has; see ``CountedSlice``."""

    region: Longs
    each: int


NO_PART_SLOTS = PartSlots(np.zeros(0, np.int64), 0)


def part_slots(counted: CountedNeed, start: int, stop: int) -> PartSlots | None:
    """The parts in the slice ``start:stop`` if slots decide whether the need fits; None if they do not.

    They do for tasks of one shape, where parts are of equal size and lie in one region each.
    """
    need, snapshot = counted.need, counted.snapshot
    if len(need.shapes) > 1 or not counted.counts_all:
        return None
    if need.plain:
        return NO_PART_SLOTS
    grouping = groups_of(need, snapshot, NO_ROWS, (start, stop))
    if grouping is None:
        return None
    groups, of = grouping
    each = in_one_region_each(groups)
    if each is None or len(each.around):
        return None
    if len(groups) == 1:
        return NO_PART_SLOTS
    count = np.bincount(of[need.part[: need.minimum]], minlength=len(groups))
    if count[0] or (count[1:] != count[1]).any():
        return None
    region = regions_at(snapshot, groups[1].required)[start:stop]
    first = region[region != NONE].min(initial=len(snapshot.nodes))
    return PartSlots(np.where(region == NONE, NONE, region - first).astype(np.int64), int(count[1]))
