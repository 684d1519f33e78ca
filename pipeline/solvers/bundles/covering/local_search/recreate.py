"""Recreating a set of victims: nodes are cleared, the cheapest slot first, until the gang places."""

from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Floats, Longs, Rows
from pipeline.kernels import inlined, linked
from pipeline.placement.layout.packing import most_on_cards, slots_more
from pipeline.placement.room.ground import Ground, leave
from pipeline.solvers.bundles.covering.local_search.lacking import close_full, lacks
from pipeline.solvers.bundles.covering.local_search.pool import (
    BLOCK_BITS,
    GangPlaces,
    State,
    VictimPool,
    break_up,
    may_go_as_surplus,
    take,
)

#: Entries are left alone whose price would by itself be this much higher than that of the best slot.
_DEAR = 2.0
#: Levels after this one are equal in the price of a node.
_LAST = 3
#: A linear congruential sequence of 31 bits.
NEXT, TIMES, PLUS = 1 << 31, 1103515245, 12345


class Scale(NamedTuple):
    """How all levels are put on one scale for the prices of nodes.

    Attributes
    ----------
    level, surplus_level
        The weight of work of a level relative to the level above: of podgroups that break, and of surplus.
    surplus
        The weight of surplus of the highest level relative to podgroups of that level that break.
    rare
        The weight of surplus for being rare, see ``VictimPool``, whatever it loses.
    part
        A podgroup that breaks is charged to its tasks by their share in it, to this power: 1: its work once; less: more
        than once, so that wide podgroups are not cheap on each of their nodes.
    """

    level: float
    surplus: float
    surplus_level: float
    rare: float
    part: float


@linked
def weigh(scale: Scale, each: float, pool: VictimPool, state: State) -> None:
    """Put all levels on one scale for the prices of nodes.

    ``each``: a fixed amount for every podgroup that breaks, whatever it loses.
    """
    for g in range(len(pool.owner)):
        level, held = min(pool.level[g], _LAST), 0.0
        for i in range(pool.start[g], pool.start[g + 1]):
            held += pool.size[i]
        whole = (pool.loss[g] + each) * scale.level**level + 1e-12
        single = scale.surplus * scale.surplus_level**level
        for i in range(pool.start[g], pool.start[g + 1]):
            pool.whole[i] = whole * (pool.size[i] / held) ** scale.part
            pool.single[i] = pool.work[i] * single + pool.rare[i] * scale.rare + 1e-30
    state.ratio[:] = -1.0


@inlined
def _gain(
    n: int, lacks: Bools, here: Bools, request: Longs, wanted: Longs, slots: Longs, room: Longs, now: Longs
) -> float:
    """How many slots a node has more than before, for shapes that lack room, in parts of all that are wanted.

    ``now`` int64[S]: its slots before the last entry left; updated.
    """
    gain = 0.0
    for s in range(len(wanted)):
        if here[s, n] and lacks[s]:
            now[s] = slots_more(request, s, room, n, wanted[s], now[s])
            gain += (now[s] - slots[s, n]) / wanted[s]
    return gain


@inlined
def _suffices(n: int, lacks: Bools, here: Bools, request: Longs, room: Longs, now: Longs) -> bool:
    """Whether a node still has ``now`` int64[S] slots for shapes that lack room."""
    for s in range(len(now)):
        if here[s, n] and lacks[s] and now[s] > 0:
            if most_on_cards(request, s, room, n, now[s]) < now[s]:
                return False
            for r in range(request.shape[1] - 1, -1, -1):
                if request[s, r] > 0 and room[n, r] < now[s] * request[s, r]:
                    return False
    return True


@inlined
def _offer(n: int, pool: VictimPool, state: State, rows: Rows, price: Floats) -> int:
    """Entries of a node that may leave, the cheapest for its size first: how many of ``rows``, and their prices."""
    many, on, seat, size, gone, may, tabu = 0, pool.on, pool.seat, pool.size, state.gone, state.may, state.tabu
    single, whole, free, spare, taken = pool.single, pool.whole, pool.free, pool.spare, state.taken
    role, left, refused = pool.role, state.role, state.refused
    for at in range(pool.node[n], pool.node[n + 1]):
        i = on[at]
        g = seat[i]
        if gone[i]:
            continue
        takes = free[i] and not refused[g]
        if takes and (spare[g] < 0 or (taken[g] < spare[g] and (role[i] < 0 or left[role[i]] > 0))):
            worth = single[i]
        elif may[g] and not tabu[g]:
            worth = whole[i]
        else:
            continue
        value, k = worth / size[i], many
        while k > 0 and price[k - 1] > value:
            price[k], rows[k] = price[k - 1], rows[k - 1]
            k -= 1
        price[k], rows[k] = value, i
        many += 1
    return many


@inlined
def _least_size(lacks: Bools, scarce: int, request: Longs, wanted: Longs) -> float:
    """The least that has to be free of the scarce resource for a gain of 1, see ``_gain``."""
    least, many = np.inf, 0
    for s in range(len(wanted)):
        if lacks[s]:
            least, many = min(least, max(float(request[s, scarce]), 1e-3) * wanted[s]), many + 1
    return least / max(many, 1)


@inlined
def _shift(n: int, shape: int, sign: int, held: Longs, room: Longs) -> None:
    """Add what a task of a shape holds to the room of a node, or subtract it; its slots stay as they were."""
    for r in range(room.shape[1]):
        room[n, r] += sign * held[shape, r]


@linked
def _plan(n: int, pool: VictimPool, state: State, ground: Ground, rows: Rows, price: Floats) -> tuple[int, float]:
    """Which entries of a node leave so that a slot costs least: how many of ``rows``, and its price.

    Entries leave, the cheapest first. Where one that won nothing alone is among them when a slot is won, those that it
    does not need are left out, the dearest first. ``rows`` has three times the length of ``price``: the entries in
    order, the best so far, and those of a slot.
    """
    # Columns by name: passing the tuples on would cost more than the work done here.
    here, lacks, size, entry, now, most = pool.here, state.lacks, pool.size, pool.entry, state.slots, len(price)
    room, request, wanted, slots, held, form = (
        ground.room, ground.request, ground.wanted, ground.slots, ground.held, ground.shape,
    )  # fmt: skip
    many = _offer(n, pool, state, rows, price)
    least = _least_size(lacks, ground.scarce, request, wanted)
    spent, best, count, won, wins, gone = 0.0, np.inf, 0, 0.0, 0, 0
    for s in range(len(now)):
        now[s] = slots[s, n]
    for k in range(many):
        if price[k] * least > _DEAR * best:
            break
        gone += 1
        spent += price[k] * size[rows[k]]
        _shift(n, form[entry[rows[k]]], 1, held, room)
        gain = _gain(n, lacks, here, request, wanted, slots, room, now)
        if gain <= won:
            continue
        won, wins = gain, wins + 1
        needed, cost, out = 2 * most, spent, k
        for j in range(k, -1, -1):
            i = rows[j]
            if wins <= k:
                _shift(n, form[entry[i]], -1, held, room)
                if _suffices(n, lacks, here, request, room, now):
                    cost -= price[j] * size[i]
                    rows[2 * most + out] = i
                    out -= 1
                    continue
                _shift(n, form[entry[i]], 1, held, room)
            rows[needed] = i
            needed += 1
        for j in range(needed, 2 * most + k + 1):
            _shift(n, form[entry[rows[j]]], 1, held, room)
        if cost / gain < best:
            best, count = cost / gain, needed - 2 * most
            rows[most : most + count] = rows[2 * most : needed]
    for k in range(gone):
        _shift(n, form[entry[rows[k]]], -1, held, room)
    rows[:count] = rows[most : most + count]
    return count, best


@linked
def _look(
    block: int, noise: float, seed: int, pool: VictimPool, state: State, ground: Ground, rows: Rows, price: Floats
) -> int:
    """Work out the prices of a block of nodes that are out of date, and which node is the cheapest; the seed."""
    found, least, ratio, closed = NONE, np.inf, state.ratio, state.closed
    for n in range(block << BLOCK_BITS, min((block + 1) << BLOCK_BITS, len(ratio))):
        if closed[n]:
            continue
        if ratio[n] < 0.0:
            ratio[n] = _plan(n, pool, state, ground, rows, price)[1]
        value = ratio[n]
        if value < np.inf and noise > 0.0:
            seed = (seed * TIMES + PLUS) % NEXT
            value *= 1.0 + noise * (seed / NEXT)
        if value < least:
            found, least = n, value
    state.lowest[block], state.cheapest[block] = least, found
    return seed


@linked
def _cheapest(
    noise: float, seed: int, pool: VictimPool, state: State, ground: Ground, rows: Rows, price: Floats
) -> tuple[int, int]:
    """The node whose next slot costs least, its price blurred by some ``noise``; NONE if there is none; the seed."""
    found, least, lowest, cheapest = NONE, np.inf, state.lowest, state.cheapest
    for block in range(len(lowest)):
        if lowest[block] < 0.0:
            seed = _look(block, noise, seed, pool, state, ground, rows, price)
        if lowest[block] < least:
            found, least = cheapest[block], lowest[block]
    return int(found), seed


@linked
def clear_cheapest(
    noise: float, seed: int, pool: VictimPool, state: State, ground: Ground, rows: Rows, price: Floats
) -> tuple[int, int]:
    """Let victims leave whose slot is the cheapest: which node, NONE if there is none; and the seed."""
    if noise > 0.0:  # all prices are blurred anew
        state.lowest[:] = -1.0
    found, seed = _cheapest(noise, seed, pool, state, ground, rows, price)
    if found == NONE:
        return NONE, seed
    count, _ = _plan(found, pool, state, ground, rows, price)
    moved = False
    for k in range(count):
        i = rows[k]
        g = pool.seat[i]
        if state.gone[i]:
            continue
        if may_go_as_surplus(i, pool, state, ground):
            leave(pool.entry[i : i + 1], ground)
            take(i, 1, pool, state, ground)
            moved = True
        elif state.may[g] and not state.tabu[g]:
            moved |= break_up(g, pool, state, ground)
    if not moved:
        state.closed[found] = True
        state.lowest[found >> BLOCK_BITS] = -1.0
    return int(found), seed


@linked
def recreate(
    noise: float, seed: int, pool: VictimPool, state: State, ground: Ground, rows: Rows, price: Floats,
    places: GangPlaces,
) -> tuple[bool, int]:  # fmt: skip
    """Clear nodes, the cheapest slot first, until the gang places; whether it does, and the seed."""
    state.lowest[:] = -1.0
    while lacks(pool, state, ground, places):
        close_full(state, ground)
        found, seed = clear_cheapest(noise, seed, pool, state, ground, rows, price)
        if found == NONE:
            return False, seed
    return True, seed
