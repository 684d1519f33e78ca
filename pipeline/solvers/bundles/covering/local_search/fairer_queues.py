"""Victims of fairer queues than those found so far: a price of a reclaim compares them before work.

A queue can lose no more than what it holds above what it deserves. The order of bundles spends that on whole podgroups
and on surplus as policy ranks them, and little of it may be where it frees slots. Here nodes are cleared where a slot
takes the least from a queue, whatever it loses; the search for cheaper victims comes afterwards.
"""

from pipeline.kernels import inlined, linked
from pipeline.placement.room.ground import Ground
from pipeline.solvers.bundles.covering.local_search.any_set import any_set, may_suffice
from pipeline.solvers.bundles.covering.local_search.pool import State, VictimPool, shut_above, stale
from pipeline.solvers.bundles.covering.local_search.recreate import recreate
from pipeline.solvers.bundles.covering.local_search.returning import (
    BestVictims,
    Scratch,
    keep_if_better,
    open_all,
    restore,
    return_all,
    trim,
)

#: How far the price of a node is blurred after the first try.
_NOISE = 0.2
#: How much dearer a task is with its podgroup than as surplus: more goes with it.
_WITH_PODGROUP = 1.5
#: Steps of a search by quota for each try; none is made where there is one try.
_STEPS = 5


@inlined
def _weigh_by_size(pool: VictimPool, state: State) -> None:
    """Let what a task holds be its price."""
    pool.single[:] = pool.size
    pool.whole[:] = pool.size * _WITH_PODGROUP
    state.ratio[:] = -1.0


@inlined
def _next_below(rank: float, pool: VictimPool) -> int:
    """The highest rank of queues below one; -1 if there is none."""
    below = -1
    for g in range(len(pool.owner)):
        if below < pool.queue_rank[g] < rank:
            below = pool.queue_rank[g]
    return below


@inlined
def _hold_above(rank: int, pool: VictimPool, state: State) -> None:
    """Nothing of queues above a rank may leave until all may take part again."""
    for g in range(len(pool.owner)):
        if pool.queue_rank[g] > rank:
            state.tabu[g] = state.refused[g] = True
            stale(g, pool, state)


@linked
def _found(
    rank: int, tries: int, best: BestVictims, pool: VictimPool, state: State, ground: Ground, scratch: Scratch
) -> bool:
    """Whether victims of queues up to a rank are found; they are the best set then, and gone."""
    seed = 1
    for turn in range(tries):
        return_all(pool, state, ground)
        _hold_above(rank, pool, state)
        noise = _NOISE if turn > 0 else 0.0
        done, seed = recreate(noise, seed, pool, state, ground, scratch.rows, scratch.price, scratch.places)
        if done:
            trim(scratch, pool, state, ground)
            return bool(keep_if_better(best.cost[:0], best, scratch, pool, state, ground) < 0)
    return False


@linked
def _found_by_quota(
    rank: int, steps: int, best: BestVictims, pool: VictimPool, state: State, ground: Ground, scratch: Scratch
) -> bool:
    """The same with what queues can lose in mind, in some ``steps``."""
    may, free, before = pool.may.copy(), pool.free.copy(), (best.cost.copy(), best.gone.copy(), best.broken.copy())
    return_all(pool, state, ground)
    shut_above(rank, pool, state)
    state.may[:] = pool.may
    if any_set(steps, (before[1].copy(), before[2].copy()), best, pool, state, ground, scratch):
        return True
    pool.may[:], pool.free[:], state.may[:] = may, free, may
    best.cost[:], best.gone[:], best.broken[:] = before
    return False


@linked
def _least_rank(below: float, pool: VictimPool, state: State, ground: Ground) -> int:
    """The lowest rank below a given one up to which queues may suffice; -1 if there is none. Everything returns."""
    return_all(pool, state, ground)
    least, rank = -1, _next_below(below, pool)
    while rank >= 0 and may_suffice(rank, pool, state, ground):
        least, rank = rank, _next_below(rank, pool)
    return int(least)


@linked
def _took(
    rank: int, tries: int, best: BestVictims, pool: VictimPool, state: State, ground: Ground, scratch: Scratch
) -> bool:
    """Whether the best set is of queues up to a rank now; ``tries``: how often each rank is tried."""
    return _found(rank, tries, best, pool, state, ground, scratch) or (
        tries > 1 and _found_by_quota(rank, tries * _STEPS, best, pool, state, ground, scratch)
    )


@linked
def take_from_fairer(
    tries: int, best: BestVictims, pool: VictimPool, state: State, ground: Ground, scratch: Scratch
) -> bool:
    """Let the best set be one of the fairest queues that are found to do; True if it was not before.

    The fairest that may suffice are tried first; if nothing is found there, fairer ones than those of the best set, as
    long as there is a set. The best set is gone before and afterwards. ``tries``: see ``_took``.
    """
    found, least = False, _least_rank(best.cost[0], pool, state, ground)
    _weigh_by_size(pool, state)
    if least >= 0:
        found = _took(least, tries, best, pool, state, ground, scratch)
        rank = least if found else _next_below(best.cost[0], pool)
        while rank > least and _took(rank, tries, best, pool, state, ground, scratch):
            found, rank = True, _next_below(best.cost[0], pool)
    open_all(pool, state)
    restore(best, pool, state, ground)
    return found
