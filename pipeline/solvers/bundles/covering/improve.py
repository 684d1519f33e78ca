"""Within what policy ranks equal, the cheapest set of victims.

Units that policy ranks equal form a class. Classes are improved from the one that policy takes last to the one that it
takes first, with all units of later classes gone. The victims that remain after the reprieve are one set that makes
room. Others are tried (from all units gone; node by node, the node with most slots for its cost first), the cheapest is
kept, and a branch and bound over the units proves it the cheapest or improves it within its budget. Slots decide, so
for needs of several shapes the set may not place the gang: then it is a lower bound, and is tried.

The lower bound of the branch and bound is a fractional knapsack (Dantzig 1957) in the scarce resource.
"""

from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Floats, Longs, Rows
from pipeline.kernels import inlined, linked
from pipeline.solvers.bundles.bundling.records import Bundles, Ground, Terms, Units
from pipeline.solvers.bundles.bundling.sorting import sort_by
from pipeline.solvers.bundles.covering.cover import enough, move, try_return

#: The cost of one more victim compared with lost work, which is rounded to 1e-6.
_VICTIM = 1e-9
_LEAST = 1e-10


class _Class(NamedTuple):
    """Units of one class that are free to stay or to go.

    Attributes
    ----------
    item: int64[I]
        The units, the costliest first.
    cost, amount: float64[I]
        The cost of each, and what it holds of the scarce resource.
    by_ratio: int64[I]
        Positions by cost per amount, cheapest first.
    """

    item: Rows
    cost: Floats
    amount: Floats
    by_ratio: Rows


@inlined
def _entries(units: Units, unit: int) -> Rows:
    return units.entry[units.stop[unit - 1] if unit > 0 else 0 : units.stop[unit]]


@linked
def costs_of(bundles: Bundles, units: Units, terms: Terms) -> Floats:
    """float64[U]: the work that each unit loses, plus a little for each of its victims."""
    cost, begin = np.empty(len(units.stop)), 0
    for unit in range(len(cost)):
        b = units.bundle[unit]
        group, victims = bundles.podgroup[b], units.stop[unit] - begin
        work = 0.0
        if not bundles.safe[b]:
            victims += bundles.elsewhere[b]
            work = bundles.cost[b] * terms.groups.lost_work[group]
        elif terms.surplus.gang[group] >= 0:
            work = terms.worth.unit[terms.entries.shape[units.entry[begin]]] * terms.groups.lost_work[group]
        cost[unit] = work + _VICTIM * victims
        begin = units.stop[unit]
    return cost


@inlined
def _class_of(begin: int, end: int, units: Units, gone: Bools, cost: Floats, ground: Ground, scarce: int) -> _Class:
    """The free units among ``begin:end``; surplus of a gang that breaks goes with it and is not free."""
    item, many = np.empty(end - begin, np.int64), 0
    for unit in range(begin, end):
        if units.after[unit] == NONE or not gone[units.after[unit]]:
            item[many] = unit
            many += 1
    item = item[:many]
    sort_by(item, -cost[item], item.copy())
    amount, ratio = np.zeros(many), np.empty(many)
    for i in range(many):
        for entry in _entries(units, item[i]):
            amount[i] += ground.held[ground.shape[entry], scarce]
        ratio[i] = cost[item[i]] / max(amount[i], 1e-3)
    by_ratio = np.arange(many)
    sort_by(by_ratio, ratio, by_ratio.copy())
    return _Class(item, cost[item], amount, by_ratio)


@inlined
def _move_to(target: Bools, one: _Class, units: Units, gone: Bools, ground: Ground) -> None:
    """Let the class's units leave or return until those of ``target`` bool[I] are gone."""
    for i in range(len(one.item)):
        unit = one.item[i]
        if target[i] != gone[unit]:
            move(_entries(units, unit), 1 if target[i] else -1, ground)
            gone[unit] = target[i]


@inlined
def _reprieve(one: _Class, units: Units, gone: Bools, before: Longs, ground: Ground) -> float:
    """Let every unit return that can, the costliest first; returns the cost of the others."""
    value = 0.0
    for i in range(len(one.item)):
        unit = one.item[i]
        if gone[unit] and try_return(_entries(units, unit), before, ground):
            gone[unit] = False
        elif gone[unit]:
            value += one.cost[i]
    return value


@inlined
def _by_node(one: _Class, units: Units, gone: Bools, ground: Ground, place: Longs) -> None:
    """With no unit gone at first, clear nodes until there is room, the node with most slots for its cost first.

    A unit's cost is divided among its tasks. ``place`` int64[n] is scratch: NONE everywhere, before and after.
    """
    node = _nodes_of(one, units, ground, place)
    price, alone = np.zeros(len(node)), np.zeros(len(one.item), np.bool_)
    for i in range(len(one.item)):
        some = _entries(units, one.item[i])
        for entry in some:
            price[place[ground.node[entry] - ground.first]] += one.cost[i] / len(some)
    _move_to(alone, one, units, gone, ground)
    few = _slots_on(node, ground)
    _move_to(~alone, one, units, gone, ground)
    more = _slots_on(node, ground) - few
    ratio, order = np.empty(len(node)), np.arange(len(node))
    for k in range(len(node)):
        ratio[k] = price[k] / more[k] if more[k] > 0 else np.inf
    sort_by(order, ratio, node.copy())
    _move_to(alone, one, units, gone, ground)
    start, item_at = _on_nodes(one, units, ground, place, len(node))
    for n in node:
        place[n] = NONE
    for cheapest in order:
        if enough(ground.wanted, ground.total):
            return
        for at in range(start[cheapest], start[cheapest + 1]):
            unit = one.item[item_at[at]]
            if not gone[unit]:
                move(_entries(units, unit), 1, ground)
                gone[unit] = True


@inlined
def _nodes_of(one: _Class, units: Units, ground: Ground, place: Longs) -> Rows:
    """int64[K]: the nodes of the class's units, which are mostly few; notes the position of each in ``place``."""
    node, many = np.empty(len(ground.room), np.int64), 0
    for unit in one.item:
        for entry in _entries(units, unit):
            n = ground.node[entry] - ground.first
            if place[n] == NONE:
                place[n], node[many] = many, n
                many += 1
    return node[:many]


@inlined
def _slots_on(node: Rows, ground: Ground) -> Longs:
    """int64[K]: slots on some nodes, of all shapes."""
    slots = np.zeros(len(node), np.int64)
    for k in range(len(node)):
        for s in range(len(ground.wanted)):
            slots[k] += ground.slots[s, node[k]]
    return slots


@inlined
def _on_nodes(one: _Class, units: Units, ground: Ground, place: Longs, nodes: int) -> tuple[Longs, Rows]:
    """The class's units by the place of their node: offsets, and positions (a unit may occur several times)."""
    start, many = np.zeros(nodes + 1, np.int64), 0
    for i in range(len(one.item)):
        for entry in _entries(units, one.item[i]):
            start[place[ground.node[entry] - ground.first] + 1] += 1
            many += 1
    for k in range(nodes):
        start[k + 1] += start[k]
    fill, at = start.copy(), np.empty(many, np.int64)
    for i in range(len(one.item)):
        for entry in _entries(units, one.item[i]):
            k = place[ground.node[entry] - ground.first]
            at[fill[k]] = i
            fill[k] += 1
    return start, at


@inlined
def _bound(one: _Class, decided: int, missing: float) -> float:
    """A lower bound of the cost of freeing ``missing`` by units from position ``decided`` on."""
    cost = 0.0
    for i in one.by_ratio:
        if missing <= 0:
            break
        if i >= decided and one.amount[i] > 0:
            part = min(missing / one.amount[i], 1.0)
            cost += part * one.cost[i]
            missing -= one.amount[i]
    return cost if missing <= _LEAST else np.inf


@inlined
def _branch(
    one: _Class, units: Units, gone: Bools, ground: Ground, missing: float, best: float, budget: int
) -> tuple[Bools, bool, int]:
    """Branch and bound, with all units gone at first: each, the costliest first, returns or stays gone.

    Parameters
    ----------
    missing
        What must be freed of the scarce resource, when no unit of the class is gone.
    best
        Only cheaper sets count.
    budget
        How many steps may be made.

    Returns
    -------
    The cheapest set, bool[I]; whether one was found; the steps left.
    """
    many = len(one.item)
    chosen, state = np.ones(many, np.bool_), np.zeros(many + 1, np.int8)
    found, kept, freed, depth = False, 0.0, 0.0, 0
    _move_to(np.ones(many, np.bool_), one, units, gone, ground)
    while depth >= 0 and budget > 0:
        budget -= 1
        if depth == many:
            if kept < best - _LEAST:
                best, found = kept, True
                for i in range(many):
                    chosen[i] = gone[one.item[i]]
            depth -= 1
            continue
        some = _entries(units, one.item[depth])
        if state[depth] == 0:
            state[depth] = 1
            move(some, -1, ground)
            gone[one.item[depth]] = False
            if enough(ground.wanted, ground.total) and kept + _bound(one, depth + 1, missing - freed) < best - _LEAST:
                depth += 1
                state[depth] = 0
                continue
        if state[depth] == 1:
            state[depth] = 2
            move(some, 1, ground)
            gone[one.item[depth]] = True
            kept, freed = kept + one.cost[depth], freed + one.amount[depth]
            if kept + _bound(one, depth + 1, missing - freed) < best - _LEAST:
                depth += 1
                state[depth] = 0
                continue
        kept, freed = kept - one.cost[depth], freed - one.amount[depth]
        depth -= 1
    return chosen, found, budget


@linked
def improve_class(
    begin: int, end: int, units: Units, gone: Bools, cost: Floats, ground: Ground, scarce: int, place: Longs,
    tolerance: float, budget: int,
) -> int:  # fmt: skip
    """Make the victims among the units ``begin:end`` as cheap as the budget allows; returns the steps left.

    Parameters
    ----------
    gone: bool[U]
        Which units go; changed for the class, and the ground with it.
    place: int64[n]
        Scratch: NONE everywhere, before and after.
    tolerance
        The relative saving for which a set replaces the one in policy's order.
    """
    one = _class_of(begin, end, units, gone, cost, ground, scarce)
    value, chosen = 0.0, np.zeros(len(one.item), np.bool_)
    for i in range(len(one.item)):
        chosen[i] = gone[one.item[i]]
        value += one.cost[i] if chosen[i] else 0.0
    if value <= _LEAST:
        return budget
    before = np.empty((len(ground.wanted), len(units.entry)), np.int64)
    best = value * (1.0 - tolerance)
    for start in range(2):
        if start == 0:
            _move_to(np.ones(len(one.item), np.bool_), one, units, gone, ground)
        else:
            _by_node(one, units, gone, ground, place)
        other = _reprieve(one, units, gone, before, ground)
        if other < best - _LEAST:
            best = other
            for i in range(len(one.item)):
                chosen[i] = gone[one.item[i]]
    _move_to(np.zeros(len(one.item), np.bool_), one, units, gone, ground)
    missing = 0.0
    for s in range(len(ground.wanted)):
        missing += ground.wanted[s] * ground.request[s, scarce]
    for n in range(len(ground.room)):
        for s in range(len(ground.wanted)):
            if ground.allowed[s, ground.first + n]:
                missing -= max(ground.room[n, scarce], 0)
                break
    better, found, budget = _branch(one, units, gone, ground, missing, best, budget)
    _move_to(better if found else chosen, one, units, gone, ground)
    return budget
