"""What nodes can offer: tasks that leave together for more slots, and the cheapest offers that are enough.

One offer of each node, or none, is chosen so that together they bring the slots that lack at the least price: the
multiple-choice knapsack (Sinha and Zoltners, "The Multiple-Choice Knapsack Problem", 1979), by dynamic programming over
slots. It is exact for one shape, as far as what podgroups and queues can spare is in the prices. Where a need has
several shapes, slots for the smallest count, and larger tasks for several of them.
"""

from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import NONE, Floats, Longs
from pipeline.kernels import inlined, linked
from pipeline.placement.layout.packing import slots_at
from pipeline.placement.room.ground import Ground
from pipeline.solvers.bundles.covering.local_search.pool import State, VictimPool

#: Of how many tasks of a node offers are made: those that lose least for their size.
TASKS = 10
#: The most slots times nodes for which offers are chosen; for more the tables would take too long.
_LARGEST = 40_000
#: More slots than a node has.
_MANY = 1 << 30


class NodeOffers(NamedTuple):
    """What can leave on each node.

    Attributes
    ----------
    task: int64[n, 10]
        Positions of tasks in the pool; NONE fills the row.
    gain: int64[n, 1024]
        How many more slots there are without some of these tasks, which are given as bits.
    chosen: int64[n]
        The tasks that are chosen, as bits.
    """

    task: Longs
    gain: Longs
    chosen: Longs


@linked
def no_offers(nodes: int) -> NodeOffers:
    """Room for the offers of some nodes."""
    task = np.full((nodes, TASKS), NONE, np.int64)
    return NodeOffers(task, np.zeros((nodes, 1 << TASKS), np.int64), np.zeros(nodes, np.int64))


@linked
def lacking_slots(pool: VictimPool, ground: Ground) -> tuple[int, int]:
    """The smallest shape of the need, and how many slots for it lack; -1 if these are too many to choose offers for."""
    small, lacking = 0, 0
    for s in range(1, len(ground.wanted)):
        if ground.request[s, ground.scarce] < ground.request[small, ground.scarce]:
            small = s
    least = max(ground.request[small, ground.scarce], 1)
    for s in range(len(ground.wanted)):
        lacking += ground.wanted[s] * max(ground.request[s, ground.scarce] // least, 1)
    for n in range(len(ground.room)):
        if pool.here[small, n] and lacking > 0:
            lacking -= slots_at(ground.request, small, ground.room, n, lacking)
    if len(ground.wanted) > 1:
        lacking = max(lacking, 1)
    return small, lacking if lacking * len(ground.room) <= _LARGEST else -1


@inlined
def _cheapest_tasks(n: int, pool: VictimPool, state: State, row: Longs) -> int:
    """The tasks of a node that may leave as surplus and lose least for their size, into an empty ``row``; how many."""
    many = 0
    for at in range(pool.node[n], pool.node[n + 1]):
        i = pool.on[at]
        if not pool.free[i] or state.gone[i] or pool.spare[pool.seat[i]] == 0:
            continue
        value, k = pool.work[i] / pool.size[i], many
        while k > 0 and pool.work[row[k - 1]] / pool.size[row[k - 1]] > value:
            if k < TASKS:
                row[k] = row[k - 1]
            k -= 1
        if k < TASKS:
            row[k] = i
            many = min(many + 1, TASKS)
    return many


@inlined
def _flipped(step: int) -> int:
    """Which bit a Gray code changes at a step, counted from 1."""
    bit = 0
    while step >> bit & 1 == 0:
        bit += 1
    return bit


@linked
def offer(small: int, lacking: int, pool: VictimPool, state: State, ground: Ground, offers: NodeOffers) -> None:
    """Work out the offers of all nodes; no gain counts for more than what is ``lacking``."""
    room, held, request = ground.room, ground.held, ground.request
    for n in range(len(offers.chosen)):
        row, gain = offers.task[n], offers.gain[n]
        row[:] = NONE
        many = _cheapest_tasks(n, pool, state, row) if pool.here[small, n] else 0
        before, gone = slots_at(request, small, room, n, _MANY), 0
        for step in range(1, 1 << many):
            bit = _flipped(step)
            gone ^= 1 << bit
            shape, sign = ground.shape[pool.entry[row[bit]]], 1 if gone >> bit & 1 else -1
            for r in range(room.shape[1]):
                room[n, r] += sign * held[shape, r]
            gain[gone] = min(slots_at(request, small, room, n, _MANY) - before, lacking)
        for bit in range(many):
            if gone >> bit & 1:
                for r in range(room.shape[1]):
                    room[n, r] -= held[ground.shape[pool.entry[row[bit]]], r]


@inlined
def _menu(n: int, price: Floats, offers: NodeOffers, cost: Floats, gone: Longs, gains: Longs) -> int:
    """The cheapest offer of a node for each gain, without those that gain no more than a cheaper one.

    Into ``cost``, ``gone`` (both by gain) and ``gains``, the greatest first; returns how many.
    """
    tasks, most, some, value, row = 0, 0, 0, 0.0, offers.task[n]
    while tasks < TASKS and row[tasks] != NONE:
        tasks += 1
    cost[:] = np.inf
    for step in range(1, 1 << tasks):
        bit = _flipped(step)
        some ^= 1 << bit
        value += price[row[bit]] if some >> bit & 1 else -price[row[bit]]
        gain = offers.gain[n, some]
        if gain > 0 and value < cost[gain]:
            cost[gain], gone[gain], most = value, some, max(most, gain)
    many, least = 0, np.inf
    for gain in range(most, 0, -1):
        if cost[gain] < least:
            least, gains[many] = cost[gain], gain
            many += 1
    return many


@linked
def choose(lacking: int, price: Floats, offers: NodeOffers) -> float:
    """Choose offers that bring what is ``lacking`` for the least sum of prices float64[C] of tasks.

    Returns that sum, infinite if all offers together are too little.
    """
    nodes = len(offers.chosen)
    least, pick = np.full(lacking + 1, np.inf), np.zeros((nodes, lacking + 1), np.int64)
    cost, gone, gains = np.empty(lacking + 1), np.empty(lacking + 1, np.int64), np.empty(lacking, np.int64)
    least[0] = 0.0
    for n in range(nodes):
        many = _menu(n, price, offers, cost, gone, gains)
        for wanted in range(lacking if many > 0 else 0, 0, -1):
            for k in range(many):
                total = least[max(wanted - gains[k], 0)] + cost[gains[k]]
                if total < least[wanted]:
                    least[wanted], pick[n, wanted] = total, gone[gains[k]]
    left = lacking
    for n in range(nodes - 1, -1, -1):
        offers.chosen[n] = pick[n, left]
        if offers.chosen[n] != 0:
            left = max(left - offers.gain[n, offers.chosen[n]], 0)
    return float(least[lacking])
