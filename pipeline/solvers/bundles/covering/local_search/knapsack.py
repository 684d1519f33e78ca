"""Podgroups that break together for the least, as if each brought the slots that it brings alone.

That is a knapsack, solved by dynamic programming over slots (Bellman 1957). It is exact where podgroups hold whole
nodes of their own, as wide training jobs do; elsewhere it is one more set to begin a search with.
"""

import numpy as np

from pipeline.cluster.arrays import NONE, Floats, Rows
from pipeline.kernels import inlined, linked
from pipeline.placement.room.ground import Ground, come_back, leave
from pipeline.solvers.bundles.covering.local_search.pool import State, VictimPool, break_up, weight_of

#: The most podgroups times slots for which this is done.
_LARGEST = 2_000_000
#: The least fixed cost of an item, in parts of what items cost on average, and how often it is bisected.
_LEAST_EACH, _BISECTIONS = 1e-4, 7


@inlined
def _gain(g: int, pool: VictimPool, ground: Ground) -> int:
    """How many slots a podgroup brings alone."""
    before, mine = ground.total[0], pool.entry[pool.start[g] : pool.start[g + 1]]
    leave(mine, ground)
    gain = ground.total[0] - before
    come_back(mine, ground)
    return int(gain)


@linked
def _chosen(lacking: int, gain: Rows, cost: Floats) -> Rows:
    """The positions of the items that bring what is ``lacking`` for the least cost; none if all are too few."""
    many = len(gain)
    least, before, takes = np.full(lacking + 1, np.inf), np.empty(lacking + 1), np.empty((many, lacking + 1), np.bool_)
    least[0] = 0.0
    for k in range(many):
        # What was least before is kept apart: so these loops run over several amounts at once.
        least, before, alone = before, least, min(gain[k], lacking)
        for wanted in range(alone + 1):
            takes[k, wanted] = cost[k] < before[wanted]
            least[wanted] = min(before[wanted], cost[k])
        for wanted in range(alone + 1, lacking + 1):
            total = before[wanted - alone] + cost[k]
            takes[k, wanted] = total < before[wanted]
            least[wanted] = min(before[wanted], total)
    some, out, left = np.empty(many, np.int64), 0, lacking if least[lacking] < np.inf else 0
    for k in range(many - 1, -1, -1):
        if takes[k, left]:
            some[out], left = k, max(left - gain[k], 0)
            out += 1
    return some[:out]


@inlined
def _few(most: float, lacking: int, gain: Rows, cost: Floats) -> Rows:
    """Few items that cost at most ``most``: the greater a fixed cost of each, the fewer; that cost is bisected."""
    found, low, high = np.empty(0, np.int64), _LEAST_EACH, 1.0
    for _ in range(_BISECTIONS):
        each = np.sqrt(low * high)
        chosen = _chosen(lacking, gain, cost + each * cost.mean())
        if len(chosen) > 0 and cost[chosen].sum() <= most:
            found, low = chosen, each
        else:
            high = each
    return found


@linked
def slots_alone(alone: Rows, pool: VictimPool, ground: Ground) -> Rows:
    """int64[P]: how many slots each podgroup that may break brings alone, with nothing gone before; the others 0.

    ``alone`` int64[P]: the same as far as it was counted before, NONE for the others; written.
    """
    gain = np.zeros(len(pool.owner), np.int64)
    for g in range(len(gain)):
        if pool.may[g]:
            if alone[g] == NONE:
                alone[g] = _gain(g, pool, ground)
            gain[g] = alone[g]
    return gain


@linked
def break_cheapest(most: float, gain: Rows, cost: Floats, pool: VictimPool, state: State, ground: Ground) -> bool:
    """Let podgroups break that bring the slots that lack, with nothing gone before; False if that is not to be had.

    Quotas are asked as podgroups leave.

    Parameters
    ----------
    most
        0: those that cost least; else few that cost at most this.
    gain, cost: int64[P], float64[P]
        See ``slots_alone``; and what each podgroup costs. Those that cost nothing stay.
    """
    lacking, items = ground.wanted[0] - ground.total[0], np.flatnonzero((gain > 0) & (cost > 0.0))
    if lacking <= 0 or len(ground.wanted) > 1 or len(items) == 0 or len(items) * lacking > _LARGEST:
        return False
    chosen = _few(most, lacking, gain[items], cost[items]) if most > 0.0 else _chosen(lacking, gain[items], cost[items])
    for k in chosen:
        break_up(items[k], pool, state, ground)
    return len(chosen) > 0


@linked
def losses(pool: VictimPool) -> Floats:
    """float64[P]: what each podgroup loses if it breaks, all levels on one scale (see ``weight_of``)."""
    lost = pool.loss.copy()
    for g in range(len(lost)):
        lost[g] *= weight_of(pool.level[g])
    return lost
