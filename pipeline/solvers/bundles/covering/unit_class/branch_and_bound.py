"""Units that policy ranks equal, a class, and branch and bound over it: each unit returns or stays gone.

The lower bound is a fractional knapsack (Dantzig 1957) in the scarce resource.
"""

from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Floats, Rows
from pipeline.kernels import inlined, linked
from pipeline.placement.room.ground import Ground, enough, move
from pipeline.solvers.bundles.bundling.records import Bundles, Terms, Units
from pipeline.solvers.bundles.bundling.sorting import sort_by

#: A set must be cheaper by more than this.
LEAST = 1e-10
#: The cost of one more victim compared with lost work, which is rounded to 1e-6.
_VICTIM = 1e-9


class UnitClass(NamedTuple):
    """Units of one class that are free to stay or to go.

    Attributes
    ----------
    item: int64[I]
        The units, the costliest first.
    cost: float64[I]
        The cost of each.
    """

    item: Rows
    cost: Floats


@inlined
def entries_of(units: Units, unit: int) -> Rows:
    """int64[K]: the entries of a unit."""
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
def class_of(begin: int, end: int, units: Units, gone: Bools, cost: Floats) -> UnitClass:
    """The free units among ``begin:end``; surplus of a gang that breaks goes with it and is not free."""
    item, many = np.empty(end - begin, np.int64), 0
    for unit in range(begin, end):
        if units.after[unit] == NONE or not gone[units.after[unit]]:
            item[many] = unit
            many += 1
    item = item[:many]
    sort_by(item, -cost[item], item.copy())
    return UnitClass(item, cost[item])


@inlined
def move_to(target: Bools, one: UnitClass, units: Units, gone: Bools, ground: Ground) -> None:
    """Let the class's units leave or return until those of ``target`` bool[I] are gone."""
    for i in range(len(one.item)):
        unit = one.item[i]
        if target[i] != gone[unit]:
            move(entries_of(units, unit), 1 if target[i] else -1, ground)
            gone[unit] = target[i]


class Freed(NamedTuple):
    """What the units of a class free of the scarce resource.

    Attributes
    ----------
    amount: float64[I]
        What each unit frees.
    by_ratio: int64[I]
        Positions by cost per amount, cheapest first.
    """

    amount: Floats
    by_ratio: Rows


@inlined
def freed_by(one: UnitClass, units: Units, ground: Ground) -> Freed:
    """What a class frees."""
    amount, ratio = np.zeros(len(one.item)), np.empty(len(one.item))
    for i in range(len(one.item)):
        for entry in entries_of(units, one.item[i]):
            amount[i] += ground.held[ground.shape[entry], ground.scarce]
        ratio[i] = one.cost[i] / max(amount[i], 1e-3)
    by_ratio = np.arange(len(one.item))
    sort_by(by_ratio, ratio, by_ratio.copy())
    return Freed(amount, by_ratio)


@inlined
def least_cost(one: UnitClass, freed: Freed, decided: int, missing: float) -> float:
    """A lower bound of the cost of freeing ``missing`` by units from position ``decided`` on."""
    cost = 0.0
    for i in freed.by_ratio:
        if missing <= 0:
            break
        if i >= decided and freed.amount[i] > 0:
            part = min(missing / freed.amount[i], 1.0)
            cost += part * one.cost[i]
            missing -= freed.amount[i]
    return cost if missing <= LEAST else np.inf


@inlined
def hopes(one: UnitClass, freed: Freed, returns: bool, missing: float, best: float) -> bool:
    """Whether branch and bound has a second step: the costliest unit ``returns`` or stays gone, and it may be cheaper.

    ``returns``: whether there is room without it if all others are gone.
    """
    if returns and least_cost(one, freed, 1, missing) < best - LEAST:
        return True
    return bool(one.cost[0] + least_cost(one, freed, 1, missing - freed.amount[0]) < best - LEAST)


@inlined
def branch(
    one: UnitClass, freed: Freed, units: Units, gone: Bools, ground: Ground, missing: float, best: float, budget: int
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
    found, kept, amount, depth = False, 0.0, 0.0, 0
    move_to(np.ones(many, np.bool_), one, units, gone, ground)
    while depth >= 0 and budget > 0:
        budget -= 1
        if depth == many:
            if kept < best - LEAST:
                best, found = kept, True
                for i in range(many):
                    chosen[i] = gone[one.item[i]]
            depth -= 1
            continue
        some = entries_of(units, one.item[depth])
        if state[depth] == 0:
            state[depth] = 1
            move(some, -1, ground)
            gone[one.item[depth]] = False
            roomy = enough(ground)
            if roomy and kept + least_cost(one, freed, depth + 1, missing - amount) < best - LEAST:
                depth += 1
                state[depth] = 0
                continue
        if state[depth] == 1:
            state[depth] = 2
            move(some, 1, ground)
            gone[one.item[depth]] = True
            kept, amount = kept + one.cost[depth], amount + freed.amount[depth]
            if kept + least_cost(one, freed, depth + 1, missing - amount) < best - LEAST:
                depth += 1
                state[depth] = 0
                continue
        kept, amount = kept - one.cost[depth], amount - freed.amount[depth]
        depth -= 1
    return chosen, found, budget
