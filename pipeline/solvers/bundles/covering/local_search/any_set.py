"""A set of victims where none is known: what lacks becomes less from step to step, until the gang places.

Bundles leave in one order, and quotas are counted off along it. Where a queue can spare little more than the gang
needs, what comes first in the order may use that up before there is room, although other podgroups would do.
"""

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Floats, Longs, Rows
from pipeline.kernels import inlined, linked
from pipeline.placement.room.ground import Ground, missing_of
from pipeline.solvers.bundles.covering.local_search.in_regions import draw_regions, region_prices
from pipeline.solvers.bundles.covering.local_search.knapsack import break_cheapest, losses, slots_alone
from pipeline.solvers.bundles.covering.local_search.lacking import parts_without_region
from pipeline.solvers.bundles.covering.local_search.pool import GangPlaces, State, VictimPool, weight_of
from pipeline.solvers.bundles.covering.local_search.recreate import recreate
from pipeline.solvers.bundles.covering.local_search.returning import (
    BestVictims,
    Scratch,
    keep_if_better,
    restore,
    return_all,
    trim,
)
from pipeline.solvers.bundles.covering.local_search.ruin_recreate import NOISE, ruin

#: The slots that a podgroup counts for at least.
_ALONE = 0.25
#: How much what queues lose weighs beside the work, in turn; and the work of surplus beside that of what breaks.
_WEIGHTS, _SURPLUS = (1e6, 6.0, 1.5, 0.4, 25.0, 0.1), 1e-3
#: Once a set is known, the search ends after this part of all steps without gain.
_IDLE = 2
#: How far prices of nodes are blurred where everything returned.
_NOISE = 4.0
#: Where parts of the gang go into one region each, every how many steps regions are drawn for them.
_IN_REGIONS = 4
#: Above the rank of every queue.
_ANY_RANK = 1 << 31


@inlined
def may_suffice(rank: int, pool: VictimPool, state: State, ground: Ground) -> bool:
    """Whether queues up to a rank hold, and can lose, what must be freed of the scarce resource; nothing is gone."""
    queues, scarce, sum_ = len(state.left) if pool.counted else 0, ground.scarce, 0.0
    held = np.zeros(queues + 1)
    for i in range(len(pool.entry)):
        g = pool.seat[i]
        if pool.queue_rank[g] <= rank and (pool.free[i] or pool.may[g]):
            held[pool.queue[g] if pool.counted else 0] += pool.size[i]
    for q in range(queues - 1, -1, -1):  # children come after their parents
        above = pool.entitled.parent[q]
        if pool.entitled.counts[q, scarce]:
            held[q] = min(held[q], max(state.left[q, scarce] - pool.entitled.deserved[q, scarce], 0))
        if 0 <= above < q:
            held[above] += held[q]
            held[q] = 0.0
    for there in held:
        sum_ += there
    asked = ground.request, ground.wanted, ground.allowed, scarce
    return bool(sum_ >= missing_of(*asked, ground.room, ground.first))


@linked
def _lacking(ground: Ground, places: GangPlaces) -> int:
    """How many slots lack, of all shapes together, and how many parts that go into one region each."""
    return int(np.maximum(ground.wanted - ground.total, 0).sum() + parts_without_region(ground, places))


@linked
def _share(held: Longs, g: int, scarce: int, pool: VictimPool, state: State) -> float:
    """The largest part that some amounts int64[R] are of what a podgroup's queue, or one that answers for it, can lose.

    Without quotas: how much they are of the scarce resource.
    """
    if not pool.counted:
        return float(held[scarce])
    share, entitled, answer = 0.0, pool.entitled, pool.asking.answer
    for at in range(answer.shape[1]):
        row = answer[pool.queue[g], at]
        if row == NONE:
            break
        for r in range(len(held)):
            kept = entitled.deserved[row, r] if entitled.counts[row, r] else 0
            share = max(share, held[r] / max(state.left[row, r] - kept, 1))
    return share


@linked
def _shares(pool: VictimPool, state: State, ground: Ground) -> tuple[Floats, Floats]:
    """float64[P], float64[C]: what podgroups that break, and entries that go, take of what their queues can lose."""
    whole, single = np.empty(len(pool.owner)), np.empty(len(pool.entry))
    for g in range(len(pool.owner)):
        whole[g] = _share(pool.amount[g], g, ground.scarce, pool, state)
        for i in range(pool.start[g], pool.start[g + 1]):
            single[i] = _share(ground.held[ground.shape[pool.entry[i]]], g, ground.scarce, pool, state)
    return whole, single


@linked
def _weigh_by_quota(weight: float, gain: Rows, shares: tuple[Floats, Floats], pool: VictimPool, state: State) -> None:
    """Weigh entries by what their queues lose with them for the slots that this brings, beside the work that they lose.

    ``weight``: that of the queues beside that of the work. ``gain``: see ``break_cheapest``. What brings no slot alone
    may bring some beside others.
    """
    lost, asked, (taken, single) = 0.0, 0.0, shares
    for g in range(len(pool.owner)):
        held = 0.0
        for i in range(pool.start[g], pool.start[g + 1]):
            held += pool.size[i]
        for i in range(pool.start[g], pool.start[g + 1]):
            part = pool.size[i] / held
            pool.whole[i] = pool.loss[g] * weight_of(pool.level[g]) * part
            pool.single[i] = taken[g] * part * (pool.start[g + 1] - pool.start[g]) / max(gain[g], _ALONE)
            lost, asked = lost + pool.whole[i], asked + pool.single[i]
    lost, asked = 1.0 / max(lost, 1e-12), weight / max(asked, 1e-12)
    for i in range(len(pool.entry)):
        pool.whole[i] = pool.whole[i] * lost + pool.single[i] * asked
        pool.single[i] = pool.work[i] * lost * _SURPLUS + single[i] * asked
    state.ratio[:] = -1.0


@linked
def _moved(
    step: int, seed: int, levels: int, gain: Rows, lost: Floats, shares: tuple[Floats, Floats], pool: VictimPool,
    state: State, ground: Ground, some: Rows,
) -> tuple[float, int]:  # fmt: skip
    """Let podgroups return or break as a step begins: how far prices of nodes are blurred in it, and the seed.

    Every second step begins with nothing gone, and so do the first ones, in which podgroups break that bring slots
    alone, or none. What queues lose weighs more or less beside the work from then on. In the other steps some
    victims return.
    """
    many = len(_WEIGHTS)
    if step < 2 * many or step % 2 == 0:
        weight = _WEIGHTS[(step if step < 2 * many else step // 2) % many]
        _weigh_by_quota(weight, gain, shares, pool, state)
        return_all(pool, state, ground)
        if step < many:
            break_cheapest(0.0, gain, lost + weight * shares[0], pool, state, ground)
        return (0.0 if step < 2 * many else _NOISE), seed
    return NOISE, ruin(step // 2 % levels, seed, pool, state, ground, some)[1]


@linked
def any_set(
    steps: int, first: tuple[Bools, Bools], best: BestVictims, pool: VictimPool, state: State, ground: Ground,
    scratch: Scratch,
) -> bool:  # fmt: skip
    """Look for victims with which the gang places: whether there are some; the best set is gone then.

    ``first`` bool[C], bool[P]: what goes and breaks in the first set that is found, which takes little; written.

    Nothing is gone at first. Each step begins as ``_moved`` says; then nodes are cleared. As long as no set is known, a
    state that lacks more slots than the one before is given up; after that, one that costs more.
    """
    if not may_suffice(_ANY_RANK, pool, state, ground):
        return False
    gain, shares, lost = slots_alone(scratch.alone, pool, ground), _shares(pool, state, ground), losses(pool)
    lost *= shares[0].sum() / max(lost.sum(), 1e-12)
    _weigh_by_quota(_WEIGHTS[0], gain, shares, pool, state)
    prices = region_prices(pool, state, ground, scratch)
    seed, lacking, found, idle, levels = 1, _lacking(ground, scratch.places), False, 0, (len(best.cost) - 4) // 2
    best.cost[:] = np.inf
    for step in range(steps):
        if idle > max(steps // _IDLE, 2 * len(_WEIGHTS)):
            break
        noise, seed = _moved(step, seed, levels, gain, lost, shares, pool, state, ground, scratch.some)
        if len(prices) > 0 and step % _IN_REGIONS == 1:
            return_all(pool, state, ground)
            seed = draw_regions(_NOISE if step > 1 else 0.0, seed, prices, state, scratch.places.regions)
        done, seed = recreate(noise, seed, pool, state, ground, scratch.rows, scratch.price, scratch.places)
        compared, now = 1, _lacking(ground, scratch.places)
        idle += found
        if done:
            trim(scratch, pool, state, ground)
            if not found:
                first[0][:], first[1][:] = state.gone, state.broken
            compared = keep_if_better(best.cost[:0], best, scratch, pool, state, ground)
            found, idle = True, 0 if compared < 0 else idle
        elif not found and now <= lacking:
            lacking, compared, best.gone[:], best.broken[:] = now, 0, state.gone, state.broken
        if compared > 0:
            restore(best, pool, state, ground)
    return found
