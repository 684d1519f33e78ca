"""All surplus chosen anew beside podgroups that break, by offers of nodes and multipliers of limits.

Ruin and recreate comes close to the cheapest surplus and stops there: to get closer, many nodes would have to change at
once, because what a podgroup spares on one node it cannot spare on another. Multipliers price that, and they
price it for later steps of the local search as well.
"""

import numpy as np

from pipeline.cluster.arrays import Floats
from pipeline.kernels import inlined, linked
from pipeline.placement.room.ground import Ground, leave
from pipeline.solvers.bundles.covering.local_search.multipliers import adjust, limits_of, write_dear
from pipeline.solvers.bundles.covering.local_search.node_offers import TASKS, NodeOffers, choose, lacking_slots, offer
from pipeline.solvers.bundles.covering.local_search.pool import State, VictimPool, may_go_as_surplus, take, weight_of
from pipeline.solvers.bundles.covering.local_search.recreate import recreate
from pipeline.solvers.bundles.covering.local_search.returning import (
    BestVictims,
    Scratch,
    keep_if_better,
    open_all,
    restore,
    return_all_surplus,
    trim,
)

#: How often multipliers are adjusted, and after how many times without a higher bound steps are halved.
_TURNS, _PATIENCE = 24, 3
#: The price of a victim.
_VICTIM = 1e-7
#: How far below a price its proof may be.
_PROVED = 1e-6


@inlined
def _write_work(pool: VictimPool, work: Floats) -> None:
    """The work that each task loses as surplus, all levels on one scale, and a little for being a victim."""
    for i in range(len(work)):
        work[i] = pool.work[i] * weight_of(pool.level[pool.seat[i]]) + _VICTIM


@inlined
def _lost(work: Floats, best: BestVictims, pool: VictimPool) -> float:
    """The work of surplus in the best set."""
    value = 0.0
    for i in range(len(work)):
        if best.gone[i] and not best.broken[pool.seat[i]]:
            value += work[i]
    return value


@inlined
def _leave_chosen(pool: VictimPool, state: State, ground: Ground, offers: NodeOffers) -> None:
    """Let the tasks of chosen offers leave, as far as they may."""
    for n in range(len(offers.chosen)):
        for bit in range(TASKS):
            i = offers.task[n, bit]
            if offers.chosen[n] >> bit & 1 and may_go_as_surplus(i, pool, state, ground):
                leave(pool.entry[i : i + 1], ground)
                take(i, 1, pool, state, ground)


@linked
def surplus_anew(
    best: BestVictims, pool: VictimPool, state: State, ground: Ground, scratch: Scratch, offers: NodeOffers
) -> bool:
    """Choose surplus anew beside podgroups that break; True if the price has fallen.

    The best set is gone before and afterwards. ``VictimPool.rare`` is what tasks cost by multipliers in the end.
    """
    found, work, may, no_limit = False, np.empty(len(pool.entry)), state.may.copy(), best.cost[:0]
    _write_work(pool, work)
    lost, part, highest, idle, proves = _lost(work, best, pool), 1.0, -np.inf, 0, len(ground.wanted) == 1
    state.may[:], pool.rare[:] = False, 0.0
    open_all(pool, state)
    return_all_surplus(pool, state, ground)
    small, lacking = lacking_slots(pool, ground)
    if lacking > 0:
        limits = limits_of(pool, state, ground)
        offer(small, lacking, pool, state, ground, offers)
        for _ in range(_TURNS):
            write_dear(limits, pool, state, ground, pool.rare)
            price = choose(lacking, work + pool.rare, offers)
            if price == np.inf:
                break
            _leave_chosen(pool, state, ground, offers)
            done, _ = recreate(0.0, 0, pool, state, ground, scratch.rows, scratch.price, scratch.places)
            if done:
                trim(scratch, pool, state, ground)
                if keep_if_better(no_limit, best, scratch, pool, state, ground) < 0:
                    found, lost = True, _lost(work, best, pool)
            open_all(pool, state)
            return_all_surplus(pool, state, ground)
            bound = adjust(price, lost, part, limits, pool, state, ground, offers)
            if proves and bound >= lost * (1.0 - _PROVED):
                break
            idle += 1
            if bound > highest:
                highest, idle = bound, 0
            elif idle % _PATIENCE == 0:
                part *= 0.5
    state.may[:] = may & pool.may
    open_all(pool, state)
    restore(best, pool, state, ground)
    return found
