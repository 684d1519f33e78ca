"""Cheaper victims in one domain by ruin and recreate: some victims return, and others leave in their place.

A step lets a few victims return, clears nodes in the order of their price for a slot until there is room again, lets
victims that are not needed return, and keeps the outcome unless it costs more ("Record Breaking Optimization Results
Using the Ruin and Recreate Principle", Schrimpf et al. 2000). Steps are counted, and random choices come from one fixed
sequence.
"""

from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import Bools, Floats, Ids, Rows
from pipeline.kernels import inlined, kernel
from pipeline.solvers.bundles.bundling.records import Ground, Site, Terms
from pipeline.solvers.bundles.covering.cover import come_back
from pipeline.solvers.bundles.covering.local_search.knapsack import break_cheapest
from pipeline.solvers.bundles.covering.local_search.node_offers import no_offers
from pipeline.solvers.bundles.covering.local_search.pool import (
    State,
    VictimPool,
    begin,
    come_back_whole,
    pool_of,
    shut_above,
    stale,
    take,
    weight_of,
    write_cost,
)
from pipeline.solvers.bundles.covering.local_search.recreate import NEXT, PLUS, TIMES, Scale, fit, recreate, weigh
from pipeline.solvers.bundles.covering.local_search.returning import (
    BestVictims,
    Scratch,
    keep_if_better,
    open_all,
    restore,
    return_all_surplus,
    scratch_of,
    trim,
)
from pipeline.solvers.bundles.covering.local_search.surplus_anew import surplus_anew
from pipeline.solvers.bundles.covering.sets import Sets

#: How levels and surplus are put on one scale, each in turn for some steps: surplus about as dear as what breaks, with
#: levels far apart and farther; then surplus next to nothing, as the price compares it, by its work and by how rare it
#: is, so that what podgroups can spare is not used up.
_SCALES = (
    Scale(1e-3, 0.3, 1e-3, 0.0, 1.0), Scale(1e-9, 0.3, 1e-9, 0.0, 1.0), Scale(1e-3, 1e-12, 1e-3, 0.0, 0.5),
    Scale(1e-3, 1e-18, 1e-3, 1e-15, 0.7),
)  # fmt: skip
#: The same where multipliers say what surplus costs beside its work.
_GUIDED = (
    Scale(1e-3, 0.3, 1e-3, 0.3, 1.0), Scale(1e-9, 0.3, 1e-9, 0.3, 1.0), Scale(1e-3, 1e-12, 1e-3, 1e-12, 0.5),
    Scale(1e-3, 1e-12, 1e-3, 1e-12, 0.7),
)  # fmt: skip
_TURN = 5
#: In how many steps of ten only podgroups that break return.
_PODGROUPS = 3
#: How often the search for few podgroups begins anew, and the factor for the weight of a podgroup each time.
_FRESH, _LESS = 4, 0.3
#: How far the price of a node is blurred in two steps of three.
_NOISE = 0.4


class StepBudget(NamedTuple):
    """How long a search may go on.

    Attributes
    ----------
    steps, idle
        At most how many steps are made at first, and after how many without gain the search ends.
    rounds, long_idle
        How often all surplus is chosen anew, and as many steps are made again, with the multipliers that this gives;
        and after how many without gain each of these searches ends.
    few
        At most how many steps the search for few podgroups makes; it ends as those of a round do.
    """

    steps: int
    idle: int
    rounds: int
    long_idle: int
    few: int


class _Weights(NamedTuple):
    """What a search weighs.

    Attributes
    ----------
    guided
        Whether ``VictimPool.rare`` holds multipliers.
    each
        The fixed weight of every podgroup that breaks, at first; 0: only what it loses counts.
    limit: float64[F]
        See ``keep_if_better``.
    """

    guided: bool
    each: float
    limit: Floats


@inlined
def _leave_node(n: int, pool: VictimPool, state: State, ground: Ground) -> None:
    """Let the victims of a node return, podgroups that break with all their tasks."""
    for at in range(pool.node[n], pool.node[n + 1]):
        other = pool.on[at]
        if state.gone[other] and state.broken[pool.seat[other]]:
            come_back_whole(pool.seat[other], pool, state, ground)
        elif state.gone[other]:
            come_back(pool.entry[other : other + 1], ground)
            take(other, -1, pool, state, ground)


@inlined
def _hold_back(focus: int, returned: float, pool: VictimPool, state: State) -> None:
    """Keep podgroups of a level from breaking that lose no less than those that returned."""
    for g in range(len(pool.owner)):
        if not state.broken[g] and not state.tabu[g] and pool.level[g] == focus and pool.loss[g] >= returned:
            state.tabu[g] = True
            stale(g, pool, state)


@inlined
def _breaking(focus: int, pool: VictimPool, state: State, some: Rows) -> int:
    """The first entries of podgroups of a level that break, into ``some``: how many."""
    out = 0
    for g in range(len(pool.owner)):
        if state.broken[g] and pool.level[g] == focus:
            some[out] = pool.start[g]
            out += 1
    return out


@kernel
def _ruin(focus: int, seed: int, pool: VictimPool, state: State, ground: Ground, some: Rows) -> tuple[bool, int]:
    """Let some victims return: podgroups that break, those of the level ``focus`` first, or any; or nodes.

    Where podgroups of that level return, others of it that lose as much may not break in their place; in half of these
    steps all surplus returns as well. Returns whether there were victims, and the seed. ``some``: scratch, int64[C].
    """
    open_all(pool, state)
    seed = (seed * TIMES + PLUS) % NEXT
    by_node, wanted, out = (seed >> 8) % 2 == 0, 1 + (seed >> 12) % 4, 0
    seed = (seed * TIMES + PLUS) % NEXT
    if (seed >> 8) % 10 < _PODGROUPS:
        out = _breaking(focus, pool, state, some)
    whole, returned = out > 0, 0.0
    if not whole:
        for i in range(len(pool.entry)):
            if state.gone[i]:
                some[out] = i
                out += 1
    if out == 0:
        return False, seed
    for _ in range(wanted):
        seed = (seed * TIMES + PLUS) % NEXT
        i = some[(seed >> 8) % out]
        g, n, closes = pool.seat[i], pool.at[i], whole or (seed >> 4) % 4 > 0
        if by_node and not whole:
            _leave_node(n, pool, state, ground)
            state.closed[n] = closes
        elif state.gone[i]:
            if state.broken[g]:
                returned += pool.loss[g]
            state.tabu[g] = closes
            come_back_whole(g, pool, state, ground)
            stale(g, pool, state)
    if whole:
        _hold_back(focus, returned, pool, state)
        if by_node:
            return_all_surplus(pool, state, ground)
    return True, seed


@kernel
def _focus(turn: int, broken: Bools, levels: int, pool: VictimPool, state: State) -> int:
    """Leave the levels above one as they are; that level changes every turn. Returns that level.

    No podgroup breaks that is above all that do: that would cost more in any case. After the last level only surplus
    changes.
    """
    top = levels
    for g in range(len(broken)):
        if broken[g]:
            top = min(top, pool.level[g])
    focus = top + turn % (levels - top + 1)
    for g in range(len(broken)):
        state.may[g] = pool.may[g] and (broken[g] or pool.level[g] >= focus)
    return int(focus)


@kernel
def _improve(
    steps: int, most_idle: int, weights: _Weights, best: BestVictims, pool: VictimPool, state: State, ground: Ground,
    scratch: Scratch,
) -> bool:  # fmt: skip
    """Make the best set cheaper, which is gone at first and afterwards. Returns whether it is.

    The search ends after ``most_idle`` steps without gain.
    """
    seed, found, some, levels, many, focus = 1, False, True, (len(best.cost) - 4) // 2, len(_SCALES), 0
    fresh, idle = min(max(steps // _TURN, 1), many) if weights.each == 0.0 else _FRESH, 0
    for step in range(steps):
        if idle >= most_idle:
            break
        idle += 1
        if step < fresh or step % _TURN == 0:
            turn = step // _TURN
            focus, scale = _focus(turn // many, best.broken, levels, pool, state), step if step < fresh else turn
            weigh(
                _GUIDED[scale % many] if weights.guided else _SCALES[scale % many],
                weights.each * _LESS ** min(step, _FRESH), pool, state,
            )  # fmt: skip
        if step < fresh:
            open_all(pool, state)
            for g in range(len(pool.owner)):
                come_back_whole(g, pool, state, ground)
        else:
            some, seed = _ruin(focus, seed, pool, state, ground, scratch.some)
            if not some:
                break
        noise = _NOISE if step >= fresh and step % 3 > 0 else 0.0
        done, seed = recreate(noise, seed, pool, state, ground, scratch.rows, scratch.price)
        compared, rank = 1, best.cost[0]
        if done:
            trim(scratch, pool, state, ground)
            compared = keep_if_better(weights.limit, best, scratch.now, pool, state)
        if compared > 0:
            restore(best, pool, state, ground)
        elif best.cost[0] < rank:
            shut_above(best.cost[0], pool, state)
        if compared < 0:
            found, idle = True, 0
    return found


@kernel
def _begin_with_podgroups(
    most: float, limit: Floats, best: BestVictims, pool: VictimPool, state: State, ground: Ground, scratch: Scratch
) -> bool:
    """Try podgroups that break together, see ``break_cheapest``; True if the best set is better now.

    The best set is gone before and afterwards.
    """
    compared = 1
    open_all(pool, state)
    for g in range(len(pool.owner)):
        come_back_whole(g, pool, state, ground)
    state.may[:] = pool.may
    weigh(_SCALES[0], 0.0, pool, state)
    if break_cheapest(most, pool, state, ground):
        done, _ = recreate(0.0, 0, pool, state, ground, scratch.rows, scratch.price)
        if done:
            trim(scratch, pool, state, ground)
            compared = keep_if_better(limit, best, scratch.now, pool, state)
    if compared > 0:
        restore(best, pool, state, ground)
    return compared < 0


@kernel
def _cheapest(
    budget: StepBudget, best: BestVictims, pool: VictimPool, state: State, ground: Ground, scratch: Scratch
) -> bool:
    """Make the best set as cheap as the budget allows, see ``_improve``."""
    weights = _Weights(False, 0.0, best.cost[:0])
    found = best.cost[-1] > 0.0 and _begin_with_podgroups(0.0, weights.limit, best, pool, state, ground, scratch)
    found |= _improve(budget.steps, budget.idle, weights, best, pool, state, ground, scratch)
    offers = no_offers(len(ground.room) if budget.rounds > 0 else 0)
    for _ in range(budget.rounds):
        found |= surplus_anew(best, pool, state, ground, scratch, offers)
        weights = _Weights(True, 0.0, best.cost[:0])
        if not _improve(budget.steps, budget.long_idle, weights, best, pool, state, ground, scratch):
            break
        found = True
    return found


@kernel
def _fewest(
    budget: StepBudget,
    slack: float,
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
        limit[field] *= 1.0 + slack if limit[field] > 0.0 else 1.0
        most += max(limit[field], 0.0) * weight_of(field - 1)
    for g in range(len(pool.owner)):
        together += pool.loss[g] if best.broken[g] else 0.0
    found = _begin_with_podgroups(most, limit, best, pool, state, ground, scratch)
    weights = _Weights(budget.rounds > 0, together / best.cost[-1], limit)
    return found | bool(_improve(budget.few, budget.long_idle, weights, best, pool, state, ground, scratch))


@kernel
def cheaper_sets(
    site: Site, nodes: tuple[int, int], ground: Ground, here: Bools, terms: Terms, seats: Ids, leaving: Rows,
    breaking: Rows, highest: tuple[int, int], budget: StepBudget, slack: float,
) -> Sets:  # fmt: skip
    """Sets of victims cheaper than the given one, and sets that break fewer podgroups at nearly its price, if found.

    Parameters
    ----------
    ground
        Of the nodes, without evictions; changed.
    here: bool[S, n]
        Nodes of the domain that are open to each shape.
    leaving, breaking: int64[V], int64[K]
        Entries that go here, and podgroups that break.
    highest
        Podgroups of a higher priority, or of a queue of a higher rank, stay.
    slack
        By what fraction the work of podgroups that break may exceed the least found, if fewer of them break.
    """
    pool, levels = pool_of(site, nodes, here, terms, leaving, highest, seats)
    role, left = terms.surplus.role.copy(), terms.quota.allocated.copy()
    state = begin(pool, leaving, breaking, role, left, ground, seats)
    weigh(_SCALES[0], 0.0, pool, state)
    scratch = scratch_of(pool, ground, levels)
    gone, broken = np.zeros((2, len(pool.entry)), np.bool_), np.zeros((2, len(pool.owner)), np.bool_)
    best, kept = BestVictims(np.empty(2 * levels + 4), state.gone.copy(), state.broken.copy()), 0
    write_cost(pool, state, best.cost)
    if fit(pool, ground):
        if _cheapest(budget, best, pool, state, ground, scratch):
            gone[0], broken[0], kept = best.gone, best.broken, 1
        if best.cost[-1] > 1.0 and _fewest(budget, slack, best, pool, state, ground, scratch):
            gone[kept], broken[kept] = best.gone, best.broken
            kept += 1
    return Sets(pool.owner, pool.start, pool.entry, gone[:kept], broken[:kept], False)
