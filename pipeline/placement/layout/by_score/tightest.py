"""Domains in the order in which packing tries them: the tightest first, compared level by level from the top.

A domain is as tight as the part of its free room that the tasks would take, of the resource where that is largest.
After KAI Scheduler's plugin `topology` (notes on KAI, 3).
"""

import numpy as np

from pipeline.cluster.arrays import NONE, Longs, Rows, running_sums
from pipeline.cluster.resources import PODS
from pipeline.cluster.topology import Topology

#: How tight a domain counts that has nothing left of something that is asked for.
_NOTHING_LEFT = 1000.0


def places_in_tiers(topology: Topology, free: Longs, asked: Longs, start: int, stop: int) -> Longs:
    """int64[D]: the place of each domain of the slice ``start:stop`` among those of its tier; NONE outside of it.

    Parameters
    ----------
    free: int64[N, R]
        What each node has left.
    asked: int64[R]
        What the tasks ask for together.
    """
    counts = asked > 0
    counts[PODS] = False
    upto = running_sums(free[start:stop, counts])
    inside = (topology.start >= start) & (topology.stop <= stop) & (topology.start < topology.stop)
    place = np.full(len(topology), NONE, np.int64)
    for tier in range(topology.levels + 1, 0, -1):
        rows = np.flatnonzero(inside & (topology.tier == tier))
        above, left = topology.parent[rows], upto[topology.stop[rows] - start] - upto[topology.start[rows] - start]
        part = np.where(left > 0, asked[counts] / np.maximum(left, 1), _NOTHING_LEFT).max(axis=1, initial=0.0)
        rows = rows[np.lexsort((rows, -part, np.where(above == NONE, NONE, place[above])))]
        place[rows] = np.arange(len(rows))
    return place


def tried_regions(topology: Topology, place: Longs, required: int, preferred: int, held: Rows) -> list[tuple[int, int]]:
    """Slices of nodes to try, from the preferred level up to the required one; up to all of the slice without one.

    Parameters
    ----------
    place: int64[D]
        As `places_in_tiers` gives it; domains without a place (NONE) are not tried.
    required, preferred
        Level rows, NONE without; one of them is given.
    held: int64[K]
        Nodes that the slice must contain.
    """
    widest = topology.levels + 1 if required == NONE else topology.levels - required
    narrowest = widest if preferred == NONE else min(widest, topology.levels - preferred)
    fits = (place != NONE) & (topology.tier >= narrowest) & (topology.tier <= widest)
    rows = topology.holding(np.flatnonzero(fits), held)
    rows = rows[np.lexsort((place[rows], topology.tier[rows]))]
    return topology.slices_of(rows)


def closeness(topology: Topology, place: Longs, preferred: int, nodes: int) -> Longs:
    """int64[nodes]: which nodes go first where the tasks spread over several domains of the preferred level.

    The larger the earlier: domains are filled the last first, so that the emptiest takes as much as it can; of equally
    tight domains the later one goes first.
    """
    result = np.full(nodes, NONE, np.int64)
    rows = topology.at_level(preferred)
    for row in rows[place[rows] != NONE].tolist():
        result[topology.start[row] : topology.stop[row]] = place[row]
    return result
