"""Victims where parts of the gang go into one region each: room for a part is made in few regions, not everywhere.

A slot costs the least on some node of some region, and a part needs many slots in one. So a search that clears the
cheapest nodes first clears some in many regions. Here each region is priced for each size of parts, regions are drawn
by these prices, and only these are cleared.
"""

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Floats, Longs
from pipeline.kernels import linked
from pipeline.placement.room.ground import Ground
from pipeline.solvers.bundles.covering.local_search.pool import GangPlaces, PartRegions, State, VictimPool
from pipeline.solvers.bundles.covering.local_search.recreate import NEXT, PLUS, TIMES, clear_cheapest, recreate
from pipeline.solvers.bundles.covering.local_search.returning import (
    BestVictims,
    Scratch,
    keep_if_better,
    restore,
    return_all,
    trim,
)

#: Regions times nodes up to which regions are priced.
_LARGEST = 1 << 14
#: How far prices of regions are blurred, and those of nodes, after the first try.
_NOISE, _NODE_NOISE = 1.0, 0.2
#: Every how many draws the last part gets no region of its own, on average.
_TOGETHER = 6


@linked
def _price(pool: VictimPool, state: State) -> float:
    """The price of what is gone, all levels on one scale."""
    price = 0.0
    for i in range(len(pool.entry)):
        g = pool.seat[i]
        if state.broken[g]:
            price += pool.whole[i]
        elif state.gone[i]:
            price += pool.single[i]
    return price


@linked
def _takes(part: Longs, q: int, ground: Ground, places: GangPlaces) -> bool:
    """Whether a region has enough for a part int64[S] at present: slots of each shape, and for all together."""
    begin, end, asked = places.regions.begin[q], places.regions.end[q], 0
    for s in range(len(part)):
        if part[s] > ground.slots[s, begin:end].sum():
            return False
        asked += part[s] * ground.request[s, ground.scarce]
    return len(ground.usable) == 0 or asked <= ground.usable[begin:end].sum()


@linked
def region_prices(pool: VictimPool, state: State, ground: Ground, scratch: Scratch) -> Floats:
    """float64[P, Q]: what room for each part costs in each region, infinite: it cannot be made; nothing is gone then.

    Entries are weighed before. No rows where the gang has no such parts, or the fleet is large.
    """
    regions, many = scratch.places.regions, len(scratch.places.regions.begin)
    part = regions.part if many * len(ground.room) <= _LARGEST else regions.part[:0]
    prices = np.full((len(part), many), np.inf)
    for q in range(many if len(part) > 0 else 0):
        return_all(pool, state, ground)
        state.lacks[:] = True
        state.ratio[:] = -1.0
        state.lowest[:] = -1.0
        state.closed[:] = regions.node != q
        for at in range(len(part) - 1, -1, -1):  # the smallest first
            done = True
            while done and not _takes(part[at], q, ground, scratch.places):
                done = clear_cheapest(0.0, 0, pool, state, ground, scratch.rows, scratch.price)[0] != NONE
            if not done:
                break
            prices[at, q] = _price(pool, state)
    return_all(pool, state, ground)
    return prices


@linked
def draw_regions(noise: float, seed: int, prices: Floats, state: State, regions: PartRegions) -> int:
    """Draw a region for each part, those of low prices first, and close the others; returns the seed."""
    node, parts = regions.node, len(prices)
    drawn = np.zeros(prices.shape[1], np.bool_)
    if noise > 0.0:
        seed = (seed * TIMES + PLUS) % NEXT
        parts -= (seed >> 8) % _TOGETHER == 0 and regions.most > 1
    blur = np.ones(prices.shape[1])
    for q in range(len(blur)):
        seed = (seed * TIMES + PLUS) % NEXT
        blur[q] += noise * (seed / NEXT)
    for part in range(parts):
        best = NONE
        for q in range(len(blur)):
            price = prices[part, q] * blur[q]
            if not drawn[q] and price < np.inf and (best == NONE or price < prices[part, best] * blur[best]):
                best = q
        if best != NONE:
            drawn[best] = True
    for n in range(len(node)):
        state.closed[n] |= node[n] == NONE or not drawn[node[n]]
    return seed


@linked
def unused_regions(ground: Ground, places: GangPlaces) -> Bools:
    """bool[n]: nodes of regions without room for a part at present; no rows where the gang has no such parts."""
    regions = places.regions
    unused = np.ones(len(ground.room) if len(regions.part) > 0 else 0, np.bool_)
    for q in range(len(regions.begin)):
        for at in range(len(regions.part) - 1, -1, -1):
            if _takes(regions.part[at], q, ground, places):
                unused[regions.begin[q] : regions.end[q]] = False
                break
    return unused


@linked
def make_room_in_regions(
    tries: int, best: BestVictims, pool: VictimPool, state: State, ground: Ground, scratch: Scratch
) -> bool:
    """Try sets of regions for the parts of the gang; True if the best set is better now, which is gone then."""
    seed, found = 1, False
    prices = region_prices(pool, state, ground, scratch)
    for turn in range(tries if len(prices) > 0 else 0):
        return_all(pool, state, ground)
        seed = draw_regions(_NOISE if turn > 0 else 0.0, seed, prices, state, scratch.places.regions)
        noise = _NODE_NOISE if turn % 2 > 0 else 0.0
        done, seed = recreate(noise, seed, pool, state, ground, scratch.rows, scratch.price, scratch.places)
        if done:
            trim(scratch, pool, state, ground)
            found |= keep_if_better(best.cost[:0], best, scratch, pool, state, ground) < 0
    restore(best, pool, state, ground)
    return found
