"""Cheaper victims in one domain: which searches are made, with what budget, and what is kept of them."""

import numpy as np

from pipeline.cluster.arrays import Floats, Ids, Rows
from pipeline.kernels import linked, writing
from pipeline.placement.layout.settled_groups import AskedPlaces
from pipeline.placement.room.ground import Ground
from pipeline.solvers.bundles.bundling.records import Site, Terms
from pipeline.solvers.bundles.covering.local_search.any_set import any_set
from pipeline.solvers.bundles.covering.local_search.fairer_queues import take_from_fairer
from pipeline.solvers.bundles.covering.local_search.in_regions import make_room_in_regions
from pipeline.solvers.bundles.covering.local_search.knapsack import break_cheapest, losses, slots_alone
from pipeline.solvers.bundles.covering.local_search.lacking import fit
from pipeline.solvers.bundles.covering.local_search.node_offers import no_offers
from pipeline.solvers.bundles.covering.local_search.of_domain import begin, places_of, victim_pool_of
from pipeline.solvers.bundles.covering.local_search.pool import (
    State,
    VictimPool,
    weight_of,
    write_cost,
)
from pipeline.solvers.bundles.covering.local_search.recreate import recreate, weigh
from pipeline.solvers.bundles.covering.local_search.returning import (
    BestVictims,
    Scratch,
    keep_if_better,
    restore,
    return_all,
    scratch_of,
    trim,
)
from pipeline.solvers.bundles.covering.local_search.ruin_recreate import SCALES, Weights, improve
from pipeline.solvers.bundles.covering.local_search.surplus_anew import surplus_anew
from pipeline.solvers.bundles.covering.sets import Sets
from pipeline.solvers.bundles.covering.step_budget import StepBudget

#: How often regions are drawn for the parts of a gang.
_IN_REGIONS = 40
#: At most this many steps are made with each scale with which a search begins anew.
_ANEW = 4


@linked
def _begin_with_podgroups(
    most: float, limit: Floats, best: BestVictims, pool: VictimPool, state: State, ground: Ground, scratch: Scratch
) -> bool:
    """Try podgroups that break together, see ``break_cheapest``; True if the best set is better now.

    The best set is gone before and afterwards.
    """
    if len(ground.wanted) > 1:
        return False
    compared = 1
    return_all(pool, state, ground)
    state.may[:] = pool.may
    weigh(SCALES[0], 0.0, pool, state)
    if break_cheapest(most, slots_alone(scratch.alone, pool, ground), losses(pool), pool, state, ground):
        done, _ = recreate(0.0, 0, pool, state, ground, scratch.rows, scratch.price, scratch.places)
        if done:
            trim(scratch, pool, state, ground)
            compared = keep_if_better(limit, best, scratch, pool, state, ground)
    if compared > 0:
        restore(best, pool, state, ground)
    return compared < 0


@linked
def _cheapest(
    budget: StepBudget, best: BestVictims, pool: VictimPool, state: State, ground: Ground, scratch: Scratch
) -> bool:
    """Make the best set as cheap as the budget allows, see ``improve``."""
    weights = Weights(False, 0.0, best.cost[:0], 0)
    found = best.cost[0] > 0.0 and take_from_fairer(budget.fairer, best, pool, state, ground, scratch)
    if best.cost[-1] > 0.0:
        found |= _begin_with_podgroups(0.0, weights.limit, best, pool, state, ground, scratch)
    if budget.rounds > 0 and len(scratch.places.regions.part) > 0:
        state.may[:] = pool.may
        weigh(SCALES[0], 0.0, pool, state)
        found |= make_room_in_regions(_IN_REGIONS, best, pool, state, ground, scratch)
    found |= improve(budget.steps, budget.idle, weights, best, pool, state, ground, scratch)
    offers = no_offers(len(ground.room) if budget.rounds > 0 else 0)
    for _ in range(budget.rounds):
        found |= surplus_anew(best, pool, state, ground, scratch, offers)
        weights = Weights(True, 0.0, best.cost[:0], 0)
        if not improve(budget.steps, budget.long_idle, weights, best, pool, state, ground, scratch):
            break
        found = True
    return found


@linked
def _fewest(
    budget: StepBudget,
    margin: float,
    best: BestVictims,
    pool: VictimPool,
    state: State,
    ground: Ground,
    scratch: Scratch,
) -> bool:
    """Break fewer podgroups that lose at most a little more, see ``cheaper_sets``; True if there is such a set."""
    levels, together, most = (len(best.cost) - 4) // 2, 0.0, 0.0
    limit = best.cost[: levels + 1].copy()
    for field in range(1, levels + 1):
        limit[field] *= 1.0 + margin if limit[field] > 0.0 else 1.0
        most += max(limit[field], 0.0) * weight_of(field - 1)
    for g in range(len(pool.owner)):
        together += pool.loss[g] if best.broken[g] else 0.0
    found = _begin_with_podgroups(most, limit, best, pool, state, ground, scratch)
    weights = Weights(budget.rounds > 0, together / best.cost[-1], limit, 0)
    return found | bool(improve(budget.few, budget.long_idle, weights, best, pool, state, ground, scratch))


@linked
def _from_other_scales(
    budget: StepBudget, best: BestVictims, pool: VictimPool, state: State, ground: Ground, scratch: Scratch
) -> bool:
    """Begin anew with each of some other scales, see ``improve``; they differ most in what surplus counts.

    Not where no surplus goes, nor for tasks that are not alike: there each step takes long.
    """
    found, levels = False, (len(best.cost) - 4) // 2
    if len(ground.wanted) > 1 or (best.cost[1 + levels : 1 + 2 * levels] <= 0.0).all():
        return False
    for scale in range(1, 1 + budget.anew):
        weights = Weights(False, 0.0, best.cost[:0], scale)
        found |= improve(min(budget.steps, _ANEW), budget.idle, weights, best, pool, state, ground, scratch)
    return found


@writing("ground", "seats")
def cheaper_sets(
    site: Site, nodes: tuple[int, int], ground: Ground, asked: AskedPlaces, terms: Terms, seats: Ids, leaving: Rows,
    breaking: Rows, highest: tuple[int, int], budget: StepBudget, margin: float,
) -> Sets:  # fmt: skip
    """Sets of victims cheaper than the given one, and sets that break fewer podgroups at nearly its price, if found.

    Where the given one does not make room, the first one that does and takes little from queues comes first, and the
    best of those found on the way after it.

    Parameters
    ----------
    ground
        Of the nodes, without evictions; changed.
    asked
        What the gang asks of them; without groups where slots decide.
    leaving, breaking: int64[V], int64[K]
        Entries that go here, and podgroups that break.
    highest
        Podgroups of a higher priority, or of a queue of a higher rank, stay.
    margin
        By what fraction the work of podgroups that break may exceed the least found, if fewer of them break.
    """
    pool, levels = victim_pool_of(site, nodes, terms, leaving, highest, seats)
    role, left = terms.surplus.role.copy(), terms.quota.allocated.copy()
    state = begin(pool, leaving, breaking, role, left, ground, seats)
    weigh(SCALES[0], 0.0, pool, state)
    scratch = scratch_of(pool, places_of(asked, ground), ground, levels)
    gone, broken = np.zeros((5, len(pool.entry)), np.bool_), np.zeros((5, len(pool.owner)), np.bool_)
    best, kept = BestVictims(np.empty(2 * levels + 4), state.gone.copy(), state.broken.copy()), 0
    known = bool(fit(np.arange(len(ground.room)), pool, ground, scratch.places))
    if not known and any_set(budget.first, (gone[0], broken[0]), best, pool, state, ground, scratch):
        gone[1], broken[1], kept = best.gone, best.broken, 2
    write_cost(pool, state, best.cost)
    if known or kept > 0:
        if _cheapest(budget, best, pool, state, ground, scratch):
            gone[kept], broken[kept] = best.gone, best.broken
            kept += 1
        if best.cost[-1] > 1.0 and _fewest(budget, margin, best, pool, state, ground, scratch):
            gone[kept], broken[kept] = best.gone, best.broken
            kept += 1
        if _from_other_scales(budget, best, pool, state, ground, scratch):
            gone[kept], broken[kept] = best.gone, best.broken
            kept += 1
    return Sets(pool.owner, pool.start, pool.entry, gone[:kept], broken[:kept])
