"""Cheaper victims in one domain by ruin and recreate: some victims return, and others leave in their place.

A step lets a few victims return, clears nodes in the order of their price for a slot until there is room again, lets
victims that are not needed return, and keeps the outcome unless it costs more ("Record Breaking Optimization Results
Using the Ruin and Recreate Principle", Schrimpf et al. 2000). Steps are counted, and random choices come from one fixed
sequence.
"""

from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import Bools, Floats, Ids, Longs, Rows
from pipeline.kernels import inlined, kernel
from pipeline.placement.layout.packing import slots_at
from pipeline.solvers.bundles.bundling.records import Ground, Site, Terms
from pipeline.solvers.bundles.bundling.sorting import sort_by
from pipeline.solvers.bundles.covering.cover import come_back, leave, try_return
from pipeline.solvers.bundles.covering.pool import (
    State,
    VictimPool,
    begin,
    break_up,
    come_back_whole,
    count_back,
    pool_of,
    return_surplus,
    shut_above,
    stale,
    take,
    write_cost,
)
from pipeline.solvers.bundles.covering.recreate import NEXT, PLUS, TIMES, Scale, fit, recreate, weigh
from pipeline.solvers.bundles.covering.sets import Sets

#: Works that differ by less are equal: they are rounded to 1e-6 in a price.
_EQUAL = 5e-7
#: How levels and surplus are put on one scale, each in turn for some steps: surplus about as dear as what breaks, with
#: levels far apart and farther; then surplus next to nothing, as the price compares it, by its work and by how rare it
#: is, so that what podgroups can spare is not used up.
_SCALES = (
    Scale(1e-3, 0.3, 1e-3, 0.0, 1.0), Scale(1e-9, 0.3, 1e-9, 0.0, 1.0), Scale(1e-3, 1e-12, 1e-3, 0.0, 0.5),
    Scale(1e-3, 1e-18, 1e-3, 1e-15, 0.7),
)  # fmt: skip
_TURN = 5
#: In how many steps of ten only podgroups that break return.
_PODGROUPS = 3
#: How often the search for few podgroups begins anew, and the factor for the weight of a podgroup each time.
_FRESH, _LESS = 4, 0.3
#: How far the price of a node is blurred in two steps of three.
_NOISE = 0.4


@kernel
def _returns(some: Rows, before: Longs, pool: VictimPool, ground: Ground) -> bool:
    """Let entries return if the gang still places."""
    if not try_return(some, before, ground):
        return False
    if fit(pool, ground):
        return True
    leave(some, ground)
    return False


@kernel
def _compared(now: Floats, best: Floats, limit: Floats) -> int:
    """-1, 0 or 1: how two prices compare, field by field.

    With a ``limit`` (else no rows) the work of podgroups that break counts only where it is above the limit, and fewer
    of these are better.
    """
    if len(limit) > 0:
        for field in range(len(limit)):
            if now[field] > limit[field] + _EQUAL:
                return 1
        if now[-1] != best[-1]:
            return -1 if now[-1] < best[-1] else 1
    for field in range(len(now)):
        if abs(now[field] - best[field]) > _EQUAL:
            return -1 if now[field] < best[field] else 1
    return 0


@inlined
def _needed(entry: int, n: int, ground: Ground) -> bool:
    """Whether slots for one shape are too few once an entry returns; asked first because most entries are needed."""
    room, held, shape = ground.room, ground.held, ground.shape[entry]
    for r in range(room.shape[1]):
        room[n, r] -= held[shape, r]
    left = ground.total[0] - ground.slots[0, n]
    if ground.allowed[0, ground.first + n]:
        left += slots_at(ground.request, 0, room, n, ground.wanted[0])
    for r in range(room.shape[1]):
        room[n, r] += held[shape, r]
    return bool(left < ground.wanted[0])


class _Scratch(NamedTuple):
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
    """

    rows: Rows
    price: Floats
    some: Rows
    before: Longs
    podgroups: Rows
    surplus: Rows
    now: Floats


@kernel
def _trim(scratch: _Scratch, pool: VictimPool, state: State, ground: Ground) -> None:
    """Let every podgroup return that is not needed, then every surplus task; the costliest first."""
    for g in scratch.podgroups:
        if state.broken[g] and _returns(pool.entry[pool.start[g] : pool.start[g + 1]], scratch.before, pool, ground):
            count_back(g, pool, state)
    gone, one = state.gone, len(ground.wanted) == 1
    for i in scratch.surplus:
        if not gone[i] or state.broken[pool.seat[i]] or (one and _needed(pool.entry[i], pool.at[i], ground)):
            continue
        if _returns(pool.entry[i : i + 1], scratch.before, pool, ground):
            take(i, -1, pool, state, ground)


@kernel
def _restore(gone: Bools, broken: Bools, pool: VictimPool, state: State, ground: Ground) -> None:
    """Put everything back as it was."""
    many, some = 0, np.empty(len(pool.owner), np.int64)
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
def _open_all(pool: VictimPool, state: State) -> None:
    """Let what a step before closed take part again."""
    state.closed[:] = False
    for g in range(len(pool.owner)):
        if state.tabu[g] or state.refused[g]:
            state.tabu[g], state.refused[g] = False, False
            stale(g, pool, state)


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
def _return_all_surplus(pool: VictimPool, state: State, ground: Ground) -> None:
    for g in range(len(pool.owner)):
        if not state.broken[g]:
            return_surplus(g, pool, state, ground)


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
    _open_all(pool, state)
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
            _return_all_surplus(pool, state, ground)
    return True, seed


@kernel
def _scratch(pool: VictimPool, ground: Ground, levels: int) -> _Scratch:
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
    return _Scratch(
        np.empty(3 * most, np.int64), np.empty(most), np.empty(len(pool.entry), np.int64), before, podgroups,
        surplus, np.empty(2 * levels + 4),
    )  # fmt: skip


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
    steps: int, most_idle: int, each: float, limit: Floats, best: Floats, gone: Bools, broken: Bools, pool: VictimPool,
    state: State, ground: Ground, scratch: _Scratch,
) -> bool:  # fmt: skip
    """Make the state cheaper; ``best``, ``gone`` and ``broken`` are its price and victims. Returns whether it is.

    The search ends after ``most_idle`` steps without gain. ``each`` is the fixed weight of every podgroup that breaks,
    at first; 0: only what it loses counts.
    """
    seed, found, some, levels, many, focus = 1, False, True, (len(best) - 4) // 2, len(_SCALES), 0
    fresh, idle = min(max(steps // _TURN, 1), many) if each == 0.0 else _FRESH, 0
    for step in range(steps):
        if idle >= most_idle:
            break
        idle += 1
        if step < fresh or step % _TURN == 0:
            turn = step // _TURN
            focus = _focus(turn // many, broken, levels, pool, state)
            scale = _SCALES[(step if step < fresh else turn) % many]
            weigh(scale, each * _LESS ** min(step, _FRESH), pool, state)
        if step < fresh:
            _open_all(pool, state)
            for g in range(len(pool.owner)):
                come_back_whole(g, pool, state, ground)
        else:
            some, seed = _ruin(focus, seed, pool, state, ground, scratch.some)
            if not some:
                break
        noise = _NOISE if step >= fresh and step % 3 > 0 else 0.0
        done, seed = recreate(noise, seed, pool, state, ground, scratch.rows, scratch.price)
        compared = 1
        if done:
            _trim(scratch, pool, state, ground)
            write_cost(pool, state, scratch.now)
            compared = _compared(scratch.now, best, limit)
        if compared > 0:
            _restore(gone, broken, pool, state, ground)
            continue
        if compared < 0:
            found, idle = True, 0
        if scratch.now[0] < best[0]:
            shut_above(scratch.now[0], pool, state)
        best[:] = scratch.now
        gone[:], broken[:] = state.gone, state.broken
    return found


@kernel
def cheaper_sets(
    site: Site, nodes: tuple[int, int], ground: Ground, here: Bools, terms: Terms, seats: Ids, leaving: Rows,
    breaking: Rows, highest: tuple[int, int], steps: tuple[int, int, int],
    slack: float,
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
    steps
        How many steps may be made for each of the two sets, and after how many steps without gain a search ends.
    slack
        By what fraction the work of podgroups that break may exceed the least found, if fewer of them break.
    """
    pool, levels = pool_of(site, nodes, here, terms, leaving, highest, seats)
    role, left = terms.surplus.role.copy(), terms.quota.allocated.copy()
    state = begin(pool, leaving, breaking, role, left, ground, seats)
    weigh(_SCALES[0], 0.0, pool, state)
    scratch = _scratch(pool, ground, levels)
    gone, broken = np.zeros((2, len(pool.entry)), np.bool_), np.zeros((2, len(pool.owner)), np.bool_)
    best, kept = np.empty(2 * levels + 4), 0
    write_cost(pool, state, best)
    gone[0], broken[0] = state.gone, state.broken
    if fit(pool, ground):
        if _improve(steps[0], steps[2], 0.0, best[:0], best, gone[0], broken[0], pool, state, ground, scratch):
            kept = 1
        gone[kept], broken[kept] = gone[0], broken[0]
        if best[-1] > 1.0:
            limit, together = best[: levels + 1].copy(), 0.0
            for field in range(1, levels + 1):
                limit[field] *= 1.0 + slack if limit[field] > 0.0 else 1.0
            for g in range(len(pool.owner)):
                together += pool.loss[g] if broken[0, g] else 0.0
            if _improve(
                steps[1],
                steps[2],
                together / best[-1],
                limit,
                best,
                gone[kept],
                broken[kept],
                pool,
                state,
                ground,
                scratch,
            ):
                kept += 1
    return Sets(pool.owner, pool.start, pool.entry, gone[:kept], broken[:kept], False)
