"""Whether slots decide if a need fits in a slice of nodes, and in which regions its parts are counted there."""

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, frozen
from pipeline.placement.layout.parts import groups_of, in_one_region_each, regions_at
from pipeline.placement.layout.region_slots import ANY, NO_PARTS, PartsInRegions
from pipeline.placement.room.counted_need import CountedNeed


def part_slots(counted: CountedNeed, start: int, stop: int) -> PartsInRegions | None:
    """The parts in the slice ``start:stop`` if slots decide whether the need fits; None if they do not.

    They do for tasks of one shape, where parts are of equal size and lie in one region each.
    """
    need, snapshot = counted.need, counted.snapshot
    if len(need.shapes) > 1 or not counted.counts_all:
        return None
    if need.plain:
        return NO_PARTS
    grouping = groups_of(need, snapshot, NO_ROWS, (start, stop))
    if grouping is None:
        return None
    groups, of = grouping
    each = in_one_region_each(groups)
    if each is None or len(each.around):
        return None
    if len(groups) == 1:
        return NO_PARTS
    count = np.bincount(of[need.part[: need.minimum]], minlength=len(groups))
    if count[0] or (count[1:] != count[1]).any():
        return None
    size, none = frozen(count[1:], np.int32), frozen([], np.int32)
    region = frozen(regions_at(snapshot, groups[1].required), np.int32)
    return PartsInRegions(size, int(count[1]), True, ANY, none, region, none)
