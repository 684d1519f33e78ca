"""What a task costs beyond its work because what podgroups, roles and queues can spare is scarce.

These limits couple nodes. Put into the prices of tasks as multipliers they couple them no more: a multiplier rises
where a choice takes more than can be spared, and falls where something is left ("The Lagrangian Relaxation Method for
Solving Integer Programming Problems", Fisher 1981). Steps are Polyak's: the longer, the further the bound is below the
price that is known.
"""

from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import NONE, Floats, Longs, Rows
from pipeline.cluster.resources import PODS
from pipeline.kernels import inlined, linked
from pipeline.placement.room.ground import Ground
from pipeline.solvers.bundles.covering.local_search.node_offers import TASKS, NodeOffers
from pipeline.solvers.bundles.covering.local_search.pool import State, VictimPool


class SpareLimits(NamedTuple):
    """One row for each podgroup, then for each role, then for each queue and resource.

    Attributes
    ----------
    spare: float64[K]
        What is left to lose; infinite: no limit.
    unit: float64[K]
        In what a step measures it.
    price: float64[K]
        The multiplier: what it costs to take one.
    taken: float64[K]
        What a choice takes.
    """

    spare: Floats
    unit: Floats
    price: Floats
    taken: Floats


@linked
def limits_of(pool: VictimPool, state: State, ground: Ground) -> SpareLimits:
    """What is left to lose in this state; multipliers of 0."""
    podgroups, roles, (queues, resources) = len(pool.spare), len(state.role), state.left.shape
    many, first = podgroups + roles + queues * resources, podgroups + roles
    spare, unit = np.full(many, np.inf), np.ones(many)
    for g in range(podgroups):
        if pool.spare[g] >= 0:
            spare[g] = pool.spare[g] - state.taken[g]
    for role in range(roles):
        spare[podgroups + role] = state.role[role]
    for q in range(queues if pool.counted else 0):
        for r in range(resources):
            if pool.entitled.counts[q, r] and r != PODS:
                k = first + q * resources + r
                unit[k] = max(float(ground.request[0, r]), 1.0)
                spare[k] = max(state.left[q, r] - pool.entitled.deserved[q, r], 0)
    return SpareLimits(spare, unit, np.zeros(many), np.zeros(many))


@inlined
def _rows_of(i: int, pool: VictimPool, state: State, ground: Ground, rows: Rows, amounts: Longs) -> int:
    """Write the limits that bind a task, and what it takes of each, into ``rows`` and ``amounts``; how many."""
    g, role, podgroups, roles = pool.seat[i], pool.role[i], len(pool.spare), len(state.role)
    rows[0], amounts[0], many = g, 1, 1
    if role >= 0 and pool.spare[g] >= 0:
        rows[1], amounts[1], many = podgroups + role, 1, 2
    if pool.counted:
        shape, resources = ground.shape[pool.entry[i]], state.left.shape[1]
        for at in range(pool.asking.answer.shape[1]):
            row = pool.asking.answer[pool.queue[g], at]
            if row == NONE:
                break
            for r in range(resources):
                rows[many], amounts[many] = podgroups + roles + row * resources + r, ground.held[shape, r]
                many += 1
    return many


@inlined
def _scratch(pool: VictimPool, state: State) -> tuple[Rows, Longs]:
    """Two of int64: space for all limits that may bind one task."""
    most = 2 + (pool.asking.answer.shape[1] * state.left.shape[1] if pool.counted else 0)
    return np.empty(most, np.int64), np.empty(most, np.int64)


@linked
def write_dear(limits: SpareLimits, pool: VictimPool, state: State, ground: Ground, dear: Floats) -> None:
    """Write what each task costs by multipliers into ``dear`` float64[C]."""
    rows, amounts = _scratch(pool, state)
    dear[:] = 0.0
    for i in range(len(dear)):
        for k in range(_rows_of(i, pool, state, ground, rows, amounts)):
            dear[i] += limits.price[rows[k]] * amounts[k]


@linked
def _write_taken(limits: SpareLimits, pool: VictimPool, state: State, ground: Ground, offers: NodeOffers) -> None:
    """Write what the chosen offers take into ``limits.taken``."""
    rows, amounts = _scratch(pool, state)
    limits.taken[:] = 0.0
    for n in range(len(offers.chosen)):
        for bit in range(TASKS):
            if offers.chosen[n] >> bit & 1:
                for k in range(_rows_of(offers.task[n, bit], pool, state, ground, rows, amounts)):
                    limits.taken[rows[k]] += amounts[k]


@linked
def adjust(
    price: float, known: float, part: float, limits: SpareLimits, pool: VictimPool, state: State, ground: Ground,
    offers: NodeOffers,
) -> float:  # fmt: skip
    """Move the multipliers by ``part`` of a step; returns the lower bound that a choice with its ``price`` proves.

    ``known``: a price that can be had.
    """
    spare, unit, now, taken = limits
    _write_taken(limits, pool, state, ground, offers)
    bound, square = price, 0.0
    for k in range(len(spare)):
        if spare[k] < np.inf:
            bound -= now[k] * spare[k]
            if taken[k] > spare[k] or now[k] > 0.0:
                square += ((taken[k] - spare[k]) / unit[k]) ** 2
    if square > 0.0 and known > bound:
        step = part * (known - bound) / square
        for k in range(len(spare)):
            if spare[k] < np.inf:
                now[k] = max(now[k] + step * (taken[k] - spare[k]) / unit[k] ** 2, 0.0)
    return float(bound)
