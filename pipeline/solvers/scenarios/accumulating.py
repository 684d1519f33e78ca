"""The smallest scenario: leading lawful units until the preemptor fits; units that are not needed then return."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, NONE, Bools, Rows
from pipeline.cluster.rules.minimum import has_minimum
from pipeline.cluster.what_if import WhatIf
from pipeline.solvers.scenarios.ground import Ground
from pipeline.solvers.scenarios.law import Law
from pipeline.solvers.scenarios.units import Units

#: A search is given up after the law has refused this many units.
_REFUSALS = 1024


@dataclass(frozen=True)
class Scenario:
    """Units that go together, on one ground."""

    ground: Ground
    law: Law
    units: Units

    def fits_without(self, count: int) -> bool:
        """Whether the preemptor fits once the leading units have gone, and its queue may take it."""
        rows = self.leading(count).rows
        return self.law.takes(rows) and self.ground.fits(rows)

    def leading(self, count: int) -> Units:
        """The leading units."""
        return self.units.only(np.arange(len(self.units)) < count)


def accumulated(scenario: Scenario, before: int) -> Units | None:
    """The fewest leading units, lawful together, after which the preemptor fits; None if there are none.

    A unit that is not lawful beside those before it is skipped. ``before``: only units with an earlier turn count.
    """
    scenario = replace(scenario, units=scenario.units.only(scenario.units.turn < before))
    for _ in range(_REFUSALS):
        count = scenario.ground.reached(scenario.units)
        if count == NONE:
            return None
        lawful = _lawful(scenario, count)
        if lawful == count:
            if scenario.ground.plain and scenario.law.takes(scenario.leading(count).rows):
                return scenario.leading(count)
            least = _least(scenario.fits_without, count, len(scenario.units))
            if least == NONE:
                return None
            lawful = _lawful(scenario, least)
            if lawful == least:
                return scenario.leading(least)
        scenario = replace(scenario, units=_without(scenario, lawful))
    return None


def _lawful(scenario: Scenario, count: int) -> int:
    """How many of the first ``count`` units are lawful together; if some are, fewer are too."""

    def wrong(many: int) -> bool:
        return not scenario.law.allows(scenario.leading(many).rows)

    if not wrong(count):
        return count
    return _least(wrong, 1, count) - 1


def _least(holds: Callable[[int], bool], first: int, last: int) -> int:
    """The least number in ``first..last`` from which on ``holds``; NONE if it does not hold at ``last``.

    Steps double from ``first`` on, since the least is mostly close to it.
    """
    fails, step = first - 1, 1
    while not holds(at := min(fails + step, last)):
        if at == last:
            return NONE
        fails, step = at, step * 2
    while at - fails > 1:
        half = (fails + at) // 2
        fails, at = (fails, half) if holds(half) else (half, at)
    return at


def _without(scenario: Scenario, refused: int) -> Units:
    """The units without the refused one, and without later ones that take at least as much from the same queue.

    A unit that is refused by itself (a protected podgroup) says nothing about others.
    """
    units, snapshot = scenario.units, scenario.law.host.context.snapshot
    kept = np.arange(len(units)) != refused
    alone = units.only(~kept)
    if scenario.law.allows(alone.rows):
        held = np.add.reduceat(snapshot.shapes.request[snapshot.tasks.shape[units.rows]], units.start[:-1])
        queue = snapshot.podgroups.queue[units.podgroup]
        behind = np.arange(len(units)) > refused
        kept &= ~(behind & (queue == queue[refused]) & (held >= held[refused]).all(axis=1))
    return units.only(kept)


# -- return of units that are not needed -------------------------------------------------------------------------------


def cheapest(scenario: Scenario, units: Units) -> Rows:
    """int64[V]: of several orders of return, the victims of the one that breaks least; see ``needed``.

    The highest priority returns first; at equal priority the latest in the queue of victims, or the units that hold
    least, so that few break, or most, so that small ones break. Orders are compared by the podgroups that break, from
    the highest priority down, then by what the victims hold.
    """
    if len(units) == 0:
        return NO_ROWS
    groups, snapshot = together(units), scenario.law.host.context.snapshot
    if len(groups) == 1:
        return needed(scenario, groups, np.zeros(1, np.int64))
    share = (snapshot.shapes.request / np.maximum(snapshot.capacity, 1)).max(axis=1)
    held = np.add.reduceat(share[snapshot.tasks.shape[groups.rows]], groups.start[:-1])
    late, priority = -np.arange(len(groups)), -snapshot.podgroups.priority[groups.podgroup]
    stays = ~groups.whole  # surplus returns after podgroups that would break
    orders = (np.argsort(late), np.lexsort((late, held, stays, priority)), np.lexsort((late, -held, stays, priority)))
    ways = [needed(scenario, groups, order) for order in orders]
    levels = np.unique(snapshot.podgroups.priority)[::-1]

    def loss(rows: Rows) -> tuple[float, ...]:
        owner = np.unique(snapshot.tasks.podgroup[rows])
        after = WhatIf.of(snapshot).evicting(rows)
        falls = [one for one in owner.tolist() if not has_minimum(after, one)]
        each = snapshot.podgroups.priority[falls]
        return (*(float((each == level).sum()) for level in levels), float(share[snapshot.tasks.shape[rows]].sum()))

    return min(ways, key=loss)


def needed(scenario: Scenario, groups: Units, order: Rows) -> Rows:
    """int64[V]: tasks of the units that must go: if any returned, the preemptor would not fit, or a gang would break.

    Podgroups that lose all tasks return whole, or in part with their minima kept; single tasks return by themselves.

    Parameters
    ----------
    order: int64[U]
        The order of return.
    """
    groups = _arranged(groups, order)
    back = _back(scenario, groups, groups.rows)
    gone, whole = groups.rows_of(~back), groups.podgroup[~back & groups.whole]
    for podgroup in whole.tolist():
        gone = _part_of(scenario, podgroup, gone)
    return np.sort(gone)


def together(units: Units) -> Units:
    """The units, those of a podgroup that goes whole joined into one at the place of the last."""
    broken = np.isin(units.podgroup, units.podgroup[units.whole])
    key = np.where(broken, units.podgroup, -1 - np.arange(len(units)))
    _, last = np.unique(key[::-1], return_index=True)
    place = dict(zip(key[::-1][last].tolist(), (len(units) - 1 - last).tolist(), strict=True))
    at = np.array([place[one] for one in key.tolist()], np.int64)
    order = np.lexsort((np.arange(len(units)), at))
    arranged = _arranged(units, order)
    ends = np.append(at[order][1:] != at[order][:-1], True)
    start = np.append(0, arranged.start[1:][ends])
    return Units(arranged.rows, start, arranged.podgroup[ends], broken[order][ends], arranged.turn[ends])


def _arranged(units: Units, order: Rows) -> Units:
    """The units in another order."""
    size = np.diff(units.start)[order]
    rows = [units.rows[units.start[at] : units.start[at + 1]] for at in order.tolist()]
    start = np.append(0, np.cumsum(size)).astype(np.int64)
    return Units(np.concatenate([NO_ROWS, *rows]), start, units.podgroup[order], units.whole[order], units.turn[order])


def _back(scenario: Scenario, groups: Units, leaving: Rows) -> Bools:
    """bool[U]: units that return, in order, while the preemptor fits."""
    quota = scenario.law.quota(leaving)
    if scenario.ground.plain and quota is not None:
        result = scenario.ground.spared(groups, leaving, quota)
        if scenario.law.takes(leaving[~np.isin(leaving, groups.rows_of(result))]):
            return result
    result = np.zeros(len(groups), bool)
    todo = [np.arange(len(groups))]
    while todo:
        some = todo.pop()
        tried = result.copy()
        tried[some] = True
        stay = groups.rows_of(tried)
        rest = leaving[~np.isin(leaving, stay)]
        if len(rest) and scenario.law.takes(rest) and scenario.ground.fits(rest):
            result = tried
        elif len(some) > 1:
            todo += [some[len(some) // 2 :], some[: len(some) // 2]]
    return result


def _part_of(scenario: Scenario, podgroup: int, gone: Rows) -> Rows:
    """``gone`` with only some tasks of a podgroup that goes whole, if it keeps its minima without those."""
    snapshot, host = scenario.law.host.context.snapshot, scenario.law.host
    mine = gone[snapshot.tasks.podgroup[gone] == podgroup]
    if snapshot.counts.ready[podgroup] <= snapshot.podgroups.min_available[podgroup]:
        return gone  # it has no surplus
    mine, each = mine[np.argsort(host.task_rank[mine])], np.arange(len(mine))
    singles = Units(mine, np.arange(len(mine) + 1), np.full(len(mine), podgroup), each < 0, each)
    some = mine[each[~_back(scenario, singles, gone)]]
    if has_minimum(WhatIf.of(snapshot).evicting(some), podgroup):
        return np.concatenate([gone[snapshot.tasks.podgroup[gone] != podgroup], some])
    return gone
