"""What the gang lacks while victims are chosen: slots, regions for its parts, and places."""

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Rows
from pipeline.kernels import linked
from pipeline.placement.kept_places import may_have_places, moved_or_anew, stay
from pipeline.placement.layout.packing import placed_in_slots
from pipeline.placement.layout.region_slots import ANY
from pipeline.placement.room.ground import Ground, enough
from pipeline.solvers.bundles.covering.local_search.pool import BLOCK_BITS, GangPlaces, State, VictimPool


@linked
def fit(nodes: Rows, pool: VictimPool, ground: Ground, places: GangPlaces) -> bool:
    """Whether the gang places on what is free: slots, and a placement where slots leave a doubt.

    ``nodes`` int64[K]: those that lost room since places were last found, counted from the start of the slice.
    """
    if not enough(ground) or (len(ground.wanted) > 1 and _short(pool, ground, places).any()):
        return False
    return _placed(nodes, ground, places)


@linked
def _placed(nodes: Rows, ground: Ground, places: GangPlaces) -> bool:
    """Whether the groups of the gang have places; true where it has none, or slots decide.

    They are not laid out anew as long as regions have too little, or slots leave a part without one.
    """
    if len(places.asked.tree.own) == 0 or stay(nodes, places.asked, places.kept, ground.room):
        return True
    if not may_have_places(places.asked, places.kept, ground.room) or parts_without_region(ground, places) > 0:
        return False
    return moved_or_anew(nodes, places.asked, places.kept, ground.room)


@linked
def parts_without_region(ground: Ground, places: GangPlaces) -> int:
    """How many parts find no region at present, each going into the one with the least left that is enough."""
    regions, shapes, without = places.regions, len(ground.wanted), 0
    left, parts = np.zeros((len(regions.begin), shapes), np.int64), np.zeros(len(regions.begin), np.int64)
    for q in range(len(left)):
        for s in range(shapes):
            left[q, s] = ground.slots[s, regions.begin[q] : regions.end[q]].sum()
    for part in regions.part:
        best = NONE
        for q in range(len(left)):
            takes = parts[q] < regions.most
            for s in range(shapes):
                takes &= left[q, s] >= part[s]
            if takes and (best == NONE or left[q].sum() < left[best].sum()):
                best = q
        if best == NONE:
            without += 1
            continue
        left[best] -= part
        parts[best] += 1
    return without


@linked
def _short(pool: VictimPool, ground: Ground, places: GangPlaces) -> Bools:
    """bool[S]: shapes that lack slots, or else those that find no place; these are not told for one shape or groups."""
    short = ground.total < ground.wanted
    if len(short) > 1 and len(places.asked.tree.own) == 0 and not short.any():
        taken = placed_in_slots(ground.request, ground.wanted, pool.here, ground.room, ground.slots)
        short = taken.sum(axis=1) < ground.wanted
    return short


@linked
def lacks(pool: VictimPool, state: State, ground: Ground, places: GangPlaces) -> bool:
    """Whether the gang lacks room, and for which shapes: while large tasks fit, only slots for small ones count."""
    changed, short = False, _short(pool, ground, places)
    if not short.any():
        if enough(ground) and _placed(np.arange(len(ground.room)), ground, places):
            return False
        short[:] = True  # slots are enough, but not for each part in one region, or on each card
    for s in range(len(short)):
        changed |= state.lacks[s] != short[s]
        state.lacks[s] = short[s]
    if changed:
        state.ratio[:] = -1.0
        state.lowest[:] = -1.0
    return True


@linked
def close_full(state: State, ground: Ground) -> None:
    """Close regions that have room for as many parts as they take."""
    there = ground.by_region
    for n in range(len(ground.room) if there.parts.most < ANY else 0):
        at = there.parts.region[ground.first + n] - there.base
        if not state.closed[n] and there.slots[at] >= there.parts.most * there.parts.least:
            state.closed[n] = True
            state.lowest[n >> BLOCK_BITS] = -1.0
