"""Within what policy ranks equal, the cheapest set of victims.

Units that policy ranks equal form a class. Classes are improved from the one that policy takes last to the one that it
takes first, with all units of later classes gone. The victims that remain after the reprieve are one set that makes
room. Others are tried (from all units gone; node by node, the node with most slots for its cost first), the cheapest is
kept, and a branch and bound over the units proves it the cheapest or improves it within its budget. Slots decide, so
for needs of several shapes the set may not place the gang: then it is a lower bound, and is tried.
"""

from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Floats, Longs, Rows
from pipeline.cluster.counted.task_index import grouped
from pipeline.kernels import inlined, linked
from pipeline.placement.room.ground import Ground, enough, missing_of, move, try_return
from pipeline.solvers.bundles.bundling.records import Units
from pipeline.solvers.bundles.bundling.sorting import sort_by
from pipeline.solvers.bundles.covering.unit_class.branch_and_bound import (
    LEAST,
    UnitClass,
    branch,
    class_of,
    entries_of,
    freed_by,
    hopes,
    least_cost,
    move_to,
)


class _Nodes(NamedTuple):
    """The nodes of a class's units.

    Attributes
    ----------
    order: int64[K]
        The nodes, the one with most slots for its cost first.
    start, item: int64[K + 1], int64[J]
        Node ``k`` has the positions ``item[start[k]:start[k + 1]]`` of the class.
    """

    order: Rows
    start: Longs
    item: Rows


@inlined
def _reprieve(one: UnitClass, units: Units, gone: Bools, before: Longs, ground: Ground) -> float:
    """Let every unit return that can, the costliest first; returns the cost of the others."""
    value = 0.0
    for i in range(len(one.item)):
        unit = one.item[i]
        if gone[unit] and try_return(entries_of(units, unit), before, ground):
            gone[unit] = False
        elif gone[unit]:
            value += one.cost[i]
    return value


@inlined
def _nodes_in_order(one: UnitClass, units: Units, gone: Bools, ground: Ground, place: Longs) -> _Nodes:
    """The nodes of the class's units; all units are gone afterwards, and none may be gone before.

    A unit's cost is divided among its tasks. ``place`` int64[n] is scratch: NONE everywhere, before and after.
    """
    node = _nodes_of(one, units, ground, place)
    price = np.zeros(len(node))
    for i in range(len(one.item)):
        some = entries_of(units, one.item[i])
        for entry in some:
            price[place[ground.node[entry] - ground.first]] += one.cost[i] / len(some)
    few = _slots_on(node, ground)
    move_to(np.ones(len(one.item), np.bool_), one, units, gone, ground)
    more = _slots_on(node, ground) - few
    ratio, order = np.empty(len(node)), np.arange(len(node))
    for k in range(len(node)):
        ratio[k] = price[k] / more[k] if more[k] > 0 else np.inf
    sort_by(order, ratio, node.copy())
    start, item_at = _on_nodes(one, units, ground, place, len(node))
    for n in node:
        place[n] = NONE
    return _Nodes(order, start, item_at)


@inlined
def _clear(nodes: _Nodes, one: UnitClass, units: Units, gone: Bools, ground: Ground) -> None:
    """With no unit gone at first, clear nodes in their order until there is room."""
    for cheapest in nodes.order:
        if enough(ground):
            return
        for at in range(nodes.start[cheapest], nodes.start[cheapest + 1]):
            unit = one.item[nodes.item[at]]
            if not gone[unit]:
                move(entries_of(units, unit), 1, ground)
                gone[unit] = True


@inlined
def _nodes_of(one: UnitClass, units: Units, ground: Ground, place: Longs) -> Rows:
    """int64[K]: the nodes of the class's units, which are mostly few; notes the position of each in ``place``."""
    node, many = np.empty(len(ground.room), np.int64), 0
    for unit in one.item:
        for entry in entries_of(units, unit):
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
def _on_nodes(one: UnitClass, units: Units, ground: Ground, place: Longs, nodes: int) -> tuple[Longs, Rows]:
    """The class's units by the place of their node: offsets, and positions (a unit may occur several times)."""
    owner, at, many = np.empty(len(units.entry), np.int64), np.empty(len(units.entry), np.int64), 0
    for i in range(len(one.item)):
        for entry in entries_of(units, one.item[i]):
            owner[many], at[many] = place[ground.node[entry] - ground.first], i
            many += 1
    start, order = grouped(owner[:many], nodes)
    return start, at[order]


@linked
def improve_class(
    begin: int, end: int, units: Units, gone: Bools, cost: Floats, ground: Ground, place: Longs, tolerance: float,
    budget: int,
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
    one = class_of(begin, end, units, gone, cost)
    value, chosen, none = 0.0, np.zeros(len(one.item), np.bool_), np.zeros(len(one.item), np.bool_)
    for i in range(len(one.item)):
        chosen[i] = gone[one.item[i]]
        value += one.cost[i] if chosen[i] else 0.0
    if value <= LEAST or chosen.all():  # no unit could return, so no other set makes room
        return budget
    before = np.empty((len(ground.wanted), len(units.entry)), np.int64)
    move_to(none, one, units, gone, ground)
    asked, freed = (ground.request, ground.wanted, ground.allowed, ground.scarce), freed_by(one, units, ground)
    missing = missing_of(*asked, ground.room, ground.first)
    if least_cost(one, freed, 0, missing) >= value - LEAST:
        move_to(chosen, one, units, gone, ground)
        return budget
    nodes = _nodes_in_order(one, units, gone, ground, place)
    best, returns = value * (1.0 - tolerance), False
    for start in range(2):
        if start == 1:
            returns = not gone[one.item[0]]
            move_to(none, one, units, gone, ground)
            _clear(nodes, one, units, gone, ground)
        other = _reprieve(one, units, gone, before, ground)
        if other < best - LEAST:
            best = other
            for i in range(len(one.item)):
                chosen[i] = gone[one.item[i]]
    # A set is reached after a step for each unit, and the steps that are left are of use to later classes only.
    if budget > (len(one.item) if end == len(gone) else 0):
        if hopes(one, freed, returns, missing, best):
            better, found, budget = branch(one, freed, units, gone, ground, missing, best, budget)
            move_to(better if found else chosen, one, units, gone, ground)
            return budget
        budget -= 1
    move_to(chosen, one, units, gone, ground)
    return budget
