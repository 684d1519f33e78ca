"""Between two steps of a local search: what is not needed returns, prices are compared, a state is put back."""

from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Floats, Longs, Rows
from pipeline.decision.price import EQUAL_WORK
from pipeline.kernels import inlined, linked
from pipeline.placement.kept_places import find_places
from pipeline.placement.room.ground import Ground, leave, try_return
from pipeline.solvers.bundles.bundling.sorting import sort_by
from pipeline.solvers.bundles.covering.local_search.lacking import fit
from pipeline.solvers.bundles.covering.local_search.pool import (
    GangPlaces,
    State,
    VictimPool,
    break_up,
    come_back_whole,
    count_back,
    return_surplus,
    shut_above,
    stale,
    take,
    write_cost,
)


class BestVictims(NamedTuple):
    """The best set of victims so far; written in place.

    Attributes
    ----------
    cost: float64[F]
        Its price, see ``write_cost``.
    gone, broken: bool[C], bool[P]
        As in ``State``.
    """

    cost: Floats
    gone: Bools
    broken: Bools


class Scratch(NamedTuple):
    """Columns that are written and read within a step.

    Attributes
    ----------
    rows: int64[3E], price: float64[E]
        Entries of one node, and the price of each, see ``recreate``.
    some: int64[C]
        Entries among which some are drawn.
    before: int64[S, C]
        Slots that a return may undo.
    podgroups, surplus: int64[P], int64[C]
        Podgroups, and entries that may be surplus, in the order in which they may return: the costliest first.
    now: float64[F]
        A price, see ``write_cost``.
    alone: int64[P]
        See ``slots_alone``.
    places
        Of the gang.
    """

    rows: Rows
    price: Floats
    some: Rows
    before: Longs
    podgroups: Rows
    surplus: Rows
    now: Floats
    alone: Rows
    places: GangPlaces


@linked
def scratch_of(pool: VictimPool, places: GangPlaces, ground: Ground, levels: int) -> Scratch:
    """Scratch for a pool whose entries are weighed."""
    podgroups, surplus = np.arange(len(pool.owner)), np.arange(len(pool.entry))
    whole, most = np.zeros(len(pool.owner)), 0
    for i in range(len(pool.entry)):
        whole[pool.seat[i]] -= pool.whole[i]
    sort_by(podgroups, whole, podgroups.copy())
    sort_by(surplus, -pool.single, surplus.copy())
    for n in range(len(ground.room)):
        most = max(most, pool.node[n + 1] - pool.node[n])
    before = np.empty((len(ground.wanted), len(pool.entry)), np.int64)
    return Scratch(
        np.empty(3 * most, np.int64), np.empty(most), np.empty(len(pool.entry), np.int64), before, podgroups,
        surplus, np.empty(2 * levels + 4), np.full(len(pool.owner), NONE, np.int64), places,
    )  # fmt: skip


@linked
def _returns(some: Rows, scratch: Scratch, pool: VictimPool, ground: Ground) -> bool:
    """Let entries return if the gang still places."""
    if not try_return(some, scratch.before, ground):
        return False
    if fit(ground.node[some].astype(np.int64) - ground.first, pool, ground, scratch.places):
        return True
    leave(some, ground)
    return False


@linked
def trim(scratch: Scratch, pool: VictimPool, state: State, ground: Ground) -> None:
    """Let every podgroup return that is not needed, then every surplus task; the costliest first."""
    for g in scratch.podgroups:
        if state.broken[g] and _returns(pool.entry[pool.start[g] : pool.start[g + 1]], scratch, pool, ground):
            count_back(g, pool, state)
    for i in scratch.surplus:
        if not state.gone[i] or state.broken[pool.seat[i]]:
            continue
        if _returns(pool.entry[i : i + 1], scratch, pool, ground):
            take(i, -1, pool, state, ground)


@linked
def _compared(now: Floats, best: Floats, limit: Floats) -> int:
    """-1, 0 or 1: how two prices compare, field by field.

    With a ``limit`` (else no rows) the work of podgroups that break counts only where it is above the limit, and fewer
    of these are better.
    """
    if len(limit) > 0:
        for field in range(len(limit)):
            if now[field] > limit[field] + EQUAL_WORK:
                return 1
        if now[-1] != best[-1]:
            return -1 if now[-1] < best[-1] else 1
    for field in range(len(now)):
        if abs(now[field] - best[field]) > EQUAL_WORK:
            return -1 if now[field] < best[field] else 1
    return 0


@inlined
def _laid_out_anew(ground: Ground, places: GangPlaces) -> bool:
    """Whether the groups of the gang have places that do not rest on those kept; true where slots decide."""
    places.kept.found[0] = 0
    return len(places.asked.tree.own) == 0 or find_places(places.asked, places.kept, ground.room)


@linked
def keep_if_better(
    limit: Floats, best: BestVictims, scratch: Scratch, pool: VictimPool, state: State, ground: Ground
) -> int:
    """Keep the state as the best unless it costs more; -1, 0 or 1, see ``_compared``.

    If the gang finds no places when it is laid out anew, that counts as more.

    Queues that are less fair to take from than those of the best are left alone from then on.
    """
    now = scratch.now
    write_cost(pool, state, now)
    compared, rank = int(_compared(now, best.cost, limit)), best.cost[0]
    if compared <= 0 and not _laid_out_anew(ground, scratch.places):
        return 1
    if compared <= 0:
        best.cost[:], best.gone[:], best.broken[:] = now, state.gone, state.broken
        if now[0] < rank:
            shut_above(now[0], pool, state)
    return compared


@linked
def restore(best: BestVictims, pool: VictimPool, state: State, ground: Ground) -> None:
    """Put everything back as it is in the best set."""
    many, some, gone, broken = 0, np.empty(len(pool.owner), np.int64), best.gone, best.broken
    for g in range(len(pool.owner)):
        same = state.broken[g] == broken[g]
        for i in range(pool.start[g], pool.start[g + 1]):
            same &= state.gone[i] == gone[i]
        if not same:
            come_back_whole(g, pool, state, ground)
            some[many] = g
            many += 1
    for g in some[:many]:
        if broken[g]:
            break_up(g, pool, state, ground)
            continue
        for i in range(pool.start[g], pool.start[g + 1]):
            if gone[i]:
                leave(pool.entry[i : i + 1], ground)
                take(i, 1, pool, state, ground)


@inlined
def open_all(pool: VictimPool, state: State) -> None:
    """Let what a step before closed take part again."""
    state.closed[:] = False
    for g in range(len(pool.owner)):
        if state.tabu[g] or state.refused[g]:
            state.tabu[g], state.refused[g] = False, False
            stale(g, pool, state)


@inlined
def return_all_surplus(pool: VictimPool, state: State, ground: Ground) -> None:
    """Let all surplus return."""
    for g in range(len(pool.owner)):
        if not state.broken[g]:
            return_surplus(g, pool, state, ground)


@linked
def return_all(pool: VictimPool, state: State, ground: Ground) -> None:
    """Let everything return, and take part again."""
    open_all(pool, state)
    for g in range(len(pool.owner)):
        come_back_whole(g, pool, state, ground)
