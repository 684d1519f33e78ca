"""Recreating a set of victims: nodes are cleared, the cheapest slot first, until the gang places."""

import numpy as np

from pipeline.cluster.arrays import NONE, Floats, Rows
from pipeline.kernels import kernel
from pipeline.placement.layout.packing import _fits, slots_at
from pipeline.solvers.bundles.bundling.records import Ground
from pipeline.solvers.bundles.covering.cover import enough, leave
from pipeline.solvers.bundles.covering.pool import State, VictimPool, break_up, may_take, take

#: A linear congruential sequence of 31 bits.
NEXT, TIMES, PLUS = 1 << 31, 1103515245, 12345


@kernel
def fit(pool: VictimPool, ground: Ground) -> bool:
    """Whether the gang places on what is free: slots, and for several shapes a placement."""
    if not enough(ground.wanted, ground.total):
        return False
    return len(ground.wanted) == 1 or bool(_fits(ground.request, ground.wanted, pool.here, ground.room))


@kernel
def _plan(n: int, pool: VictimPool, state: State, ground: Ground, rows: Rows, price: Floats) -> tuple[int, float]:
    """Which entries of a node leave, cheapest first, so that a slot costs least: how many of ``rows``; its price."""
    # Columns by name: passing the tuple on would cost more than the work done here.
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
    room, request, wanted, slots, held, form = (
        ground.room, ground.request, ground.wanted, ground.slots, ground.held, ground.shape,
    )  # fmt: skip
    here, entry = pool.here, pool.entry
    spent, best, count = 0.0, np.inf, 0
    for k in range(many):
        shape = form[entry[rows[k]]]
        spent += price[k] * size[rows[k]]
        for r in range(room.shape[1]):
            room[n, r] += held[shape, r]
        gain = 0.0
        for s in range(len(wanted)):
            if here[s, n]:
                gain += (slots_at(request, s, room, n, wanted[s]) - slots[s, n]) / wanted[s]
        if gain > 0 and spent / gain < best:
            best, count = spent / gain, k + 1
    for k in range(many):
        shape = form[entry[rows[k]]]
        for r in range(room.shape[1]):
            room[n, r] -= held[shape, r]
    return count, best


@kernel
def _cheapest(
    noise: float, seed: int, pool: VictimPool, state: State, ground: Ground, rows: Rows, price: Floats
) -> tuple[int, int]:
    """The node whose next slot costs least, its price blurred by some ``noise``; NONE if there is none; the seed."""
    found, least = NONE, np.inf
    ratio, closed = state.ratio, state.closed
    for n in range(len(ratio)):
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
    return found, seed


@kernel
def recreate(
    noise: float, seed: int, pool: VictimPool, state: State, ground: Ground, rows: Rows, price: Floats
) -> tuple[bool, int]:
    """Clear nodes, the cheapest slot first, until the gang places; whether it does, and the seed."""
    while not fit(pool, ground):
        found, seed = _cheapest(noise, seed, pool, state, ground, rows, price)
        if found == NONE:
            return False, seed
        count, _ = _plan(found, pool, state, ground, rows, price)
        moved = False
        for k in range(count):
            i = rows[k]
            g = pool.seat[i]
            if state.gone[i]:
                continue
            if may_take(i, pool, state, ground):
                leave(pool.entry[i : i + 1], ground)
                take(i, 1, pool, state, ground)
                moved = True
            elif state.may[g] and not state.tabu[g]:
                moved |= break_up(g, pool, state, ground)
        if not moved:
            state.closed[found] = True
    return True, seed
