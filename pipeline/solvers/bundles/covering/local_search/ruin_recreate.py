"""Cheaper victims in one domain by ruin and recreate: some victims return, and others leave in their place.

A step lets a few victims return. It clears nodes in the order of their price for a slot until there is room again, lets
victims that are not needed return, and keeps the outcome unless it costs more ("Record Breaking Optimization Results
Using the Ruin and Recreate Principle", Schrimpf et al. 2000). Steps are counted, and random choices come from one fixed
sequence.
"""

from typing import NamedTuple

from pipeline.cluster.arrays import Bools, Floats, Rows
from pipeline.kernels import inlined, linked
from pipeline.placement.room.ground import Ground, come_back
from pipeline.solvers.bundles.covering.local_search.in_regions import unused_regions
from pipeline.solvers.bundles.covering.local_search.pool import (
    State,
    VictimPool,
    come_back_whole,
    stale,
    take,
)
from pipeline.solvers.bundles.covering.local_search.recreate import NEXT, PLUS, TIMES, Scale, recreate, weigh
from pipeline.solvers.bundles.covering.local_search.returning import (
    BestVictims,
    Scratch,
    keep_if_better,
    open_all,
    restore,
    return_all,
    return_all_surplus,
    trim,
)

#: How levels and surplus are put on one scale, each in turn for some steps: surplus about as dear as what breaks, with
#: levels far apart and farther; then surplus next to nothing, as the price compares it, by its work and by how rare it
#: is, so that what podgroups can spare is not used up.
SCALES = (
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
NOISE = 0.4


class Weights(NamedTuple):
    """What a search weighs.

    Attributes
    ----------
    guided
        Whether ``VictimPool.rare`` holds multipliers.
    each
        The fixed weight of every podgroup that breaks, at first; 0: only what it loses counts.
    limit: float64[F]
        See ``keep_if_better``.
    scale
        The position of the scale with which the search begins.
    """

    guided: bool
    each: float
    limit: Floats
    scale: int


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


@linked
def ruin(focus: int, seed: int, pool: VictimPool, state: State, ground: Ground, some: Rows) -> tuple[bool, int]:
    """Let some victims return: podgroups that break, those of the level ``focus`` first, or any; or nodes.

    Where podgroups of that level return, others of it that lose as much may not break in their place; in half of these
    steps all surplus returns as well. Returns whether there were victims, and the seed. ``some``: scratch, int64[C].
    """
    open_all(pool, state)
    seed = (seed * TIMES + PLUS) % NEXT
    by_node, wanted, out = (seed >> 8) % 2 == 0, 1 + (seed >> 12) % 4, 0
    seed = (seed * TIMES + PLUS) % NEXT
    if (seed >> 8) % 10 < _PODGROUPS:
        for g in range(len(pool.owner)):
            if state.broken[g] and pool.level[g] == focus:
                some[out] = pool.start[g]
                out += 1
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


@linked
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


@linked
def improve(
    steps: int, most_idle: int, weights: Weights, best: BestVictims, pool: VictimPool, state: State, ground: Ground,
    scratch: Scratch,
) -> bool:  # fmt: skip
    """Make the best set cheaper, which is gone at first and afterwards. Returns whether it is.

    The search ends after ``most_idle`` steps without gain.
    """
    seed, found, levels, many, focus = 1, False, (len(best.cost) - 4) // 2, len(SCALES), 0
    fresh, idle = min(max(steps // _TURN, 1), many) if weights.each == 0.0 else _FRESH, 0
    for step in range(steps):
        if idle >= most_idle:
            break
        idle += 1
        if step < fresh or step % _TURN == 0:
            turn = step // _TURN
            focus, scale = _focus(turn // many, best.broken, levels, pool, state), step if step < fresh else turn
            scale += weights.scale
            weigh(
                _GUIDED[scale % many] if weights.guided else SCALES[scale % many],
                weights.each * _LESS ** min(step, _FRESH), pool, state,
            )  # fmt: skip
        if step < fresh:
            return_all(pool, state, ground)
        else:
            unused = unused_regions(ground, scratch.places)
            some, seed = ruin(focus, seed, pool, state, ground, scratch.some)
            if not some:
                break
            if len(unused) > 0 and step % 2 == 0:
                state.closed[:] |= unused
        noise = NOISE if step >= fresh and step % 3 > 0 else 0.0
        done, seed = recreate(noise, seed, pool, state, ground, scratch.rows, scratch.price, scratch.places)
        compared = 1
        if done:
            trim(scratch, pool, state, ground)
            compared = keep_if_better(weights.limit, best, scratch, pool, state, ground)
        if compared > 0:
            restore(best, pool, state, ground)
        if compared < 0:
            found, idle = True, 0
    return found
