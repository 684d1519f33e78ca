"""The return of units that are not needed: of several orders, the one after which least breaks."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, NONE, Bools, Floats, Longs, Rows, distinct, is_among, sealed
from pipeline.cluster.rules.breaking import breaking
from pipeline.cluster.rules.minimum import has_minimum
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.what_if import WhatIf
from pipeline.kernels import kernel
from pipeline.policy import Purpose
from pipeline.records import replace
from pipeline.solvers.scenarios.accumulating import Reached, Scenario, accumulated
from pipeline.solvers.scenarios.budget import Budget
from pipeline.solvers.scenarios.units import VictimUnits, runs_of

#: If more podgroups than ``_FEW`` would break, scenarios longer by each of ``_LONGER`` units are looked at as well.
_FEW, _LONGER = 2, (1, 2, 4, 8, 16, 32, 64)
#: In reclaim a podgroup may go in place of ``_RATE`` less important ones.
_RATE = 4
#: Of a podgroup that would go whole though it has surplus, the tasks of at most this many nodes are tried.
_NODES = 8
#: Of at most this many podgroups each is tried as the one that goes in place of others of its priority.
_EXCHANGED = 32
#: The law may refuse this many units where the biggest are to go.
_REFUSALS = 64


class _Loss(NamedTuple):
    """What victims lose: podgroups that break, by priority, the highest first; and how much all victims hold."""

    by_priority: tuple[int, ...]
    held: float

    @property
    def broken(self) -> int:
        """How many podgroups break."""
        return sum(self.by_priority)


_Way = tuple[_Loss, Rows]


def cheapest(reached: Reached) -> Rows:
    """int64[V]: of several orders of return, the victims of the one that breaks least, priority by priority.

    Where some podgroups would break, a few units more may let most of them return, so longer scenarios are looked at
    too, in preempt without podgroups more important than those of the shortest. In reclaim priority does not say which
    may be taken: there one podgroup may go in place of many less important ones.
    """
    scenario, count = reached.scenario, reached.count
    if count == 0:
        return NO_ROWS
    ways = _ways(scenario, scenario.leading(count))
    if not scenario.law.allows(scenario.leading(count).rows):  # only some of them may be taken
        return min((way for way in ways if scenario.law.allows(way[1])), key=lambda way: way[0])[1]
    best = min(ways, key=lambda way: way[0])
    if best[0].broken > _FEW:
        scenario = _without_higher_priority(scenario, count)
        ways += _with_losses(scenario, _of_longer(scenario, count))
        best = min(ways, key=lambda way: way[0])
    if best[0].broken > _FEW:
        ways += _exchanged(scenario, count, best)
        best = min(ways, key=lambda way: way[0])
    if scenario.law.preemptor.purpose is Purpose.PREEMPT or best[0].broken < _RATE:
        return best[1]
    ways += _biggest(reached.scenario)
    fewest = min(ways, key=lambda way: (way[0].broken, way[0]))
    return fewest[1] if _RATE * fewest[0].broken <= best[0].broken else best[1]


def _of_longer(scenario: Scenario, count: int) -> list[Rows]:
    """The same of scenarios that are longer by a few units, as far as these are lawful; int64[V] each."""
    found = list[Rows]()
    for wanted in distinct(np.minimum(count + np.array(_LONGER), len(scenario.units))).tolist():
        longer = scenario.leading(wanted)
        if not scenario.law.allows(longer.rows):
            break
        found += _left_by(scenario, longer)
    return found


def _exchanged(scenario: Scenario, count: int, best: _Way) -> list[_Way]:
    """Lawful ways that lose less than the best: a podgroup that stays is the last of its priority to return.

    Where the smallest return first, one that goes may save several that do not: it takes their place. Podgroups are
    tried in turn if others of their priority go.
    """
    units, snapshot = scenario.leading(min(max(count, _EXCHANGED), len(scenario.units))), scenario.ground.snapshot
    groups = together(units)
    if len(groups) > _EXCHANGED:
        return []
    priority = snapshot.podgroups.priority[groups.podgroup]
    goes = is_among(groups.podgroup, snapshot.tasks.podgroup[best[1]])
    stays = np.flatnonzero(~goes & is_among(priority, priority[goes]))
    held = np.add.reduceat(_share(scenario)[snapshot.tasks.shape[groups.rows]], groups.start[:-1])
    last = np.where(np.arange(len(groups)) == stays[:, None], np.inf, held)
    keys = -np.arange(len(groups)), last, ~groups.whole, -priority
    orders = np.lexsort(tuple(np.broadcast_to(key, last.shape) for key in keys))
    ways = _with_losses(scenario, list(needed(scenario, groups, list(orders)))) if len(stays) else []
    return [way for way in ways if way[0] < best[0] and scenario.law.allows(way[1])]


def spares_lawfully(scenario: Scenario, count: int) -> bool:
    """Whether the leading units may be taken once those that are not needed have returned in some order."""
    return any(scenario.law.allows(rows) for _, rows in _ways(scenario, scenario.leading(count)))


def _biggest(scenario: Scenario) -> list[_Way]:
    """The same where podgroups go that hold about as much as is asked for: the biggest of them first."""
    units, snapshot = together(scenario.units), scenario.law.host.context.snapshot
    share, asked = _share(scenario), scenario.ground.need.total / np.maximum(snapshot.capacity, 1)
    held = np.add.reduceat(share[snapshot.tasks.shape[units.rows]], units.start[:-1])
    over = held > asked.max(initial=0.0)
    units = _arranged(units, np.lexsort((units.turn, np.where(over, held, -held), over)))
    found = accumulated(replace(scenario, units=units), len(snapshot.tasks), Budget(_REFUSALS))
    return _ways(found.scenario, found.scenario.leading(found.count)) if found is not None and found.count else []


def _without_higher_priority(scenario: Scenario, count: int) -> Scenario:
    """In preempt the scenario less the units more important than its leading ones."""
    if scenario.law.preemptor.purpose is not Purpose.PREEMPT:
        return scenario
    units, priority = scenario.units, scenario.law.host.context.snapshot.podgroups.priority[scenario.units.podgroup]
    return replace(scenario, units=units.only(priority <= priority[:count].max()))


def _ways(scenario: Scenario, units: VictimUnits) -> list[_Way]:
    """The victims of several orders of return, and what each loses."""
    return _with_losses(scenario, _left_by(scenario, units))


def _left_by(scenario: Scenario, units: VictimUnits) -> list[Rows]:
    """The victims that several orders of return leave, int64[V] each.

    The highest priority returns first; at equal priority the latest in the queue of victims, or the units that hold
    least, so that few break, or most, so that small ones break; in reclaim also those that hold least of any priority.
    Surplus of podgroups that go whole returns with the rest of them, or stays away while the rest returns.
    """
    groups, snapshot = together(units), scenario.law.host.context.snapshot
    late = -np.arange(len(groups))
    orders = [late + len(groups) - 1]
    if len(groups) > 1:
        held = np.add.reduceat(_share(scenario)[snapshot.tasks.shape[groups.rows]], groups.start[:-1])
        priority = -snapshot.podgroups.priority[groups.podgroup]
        stays = ~groups.whole  # surplus returns after podgroups that would break
        orders += [np.lexsort((late, some, stays, priority)) for some in (held, -held)]
        if scenario.law.preemptor.purpose is not Purpose.PREEMPT:
            orders.append(np.lexsort((late, priority, held, stays)))
    different = {order.tobytes(): order for order in orders}.values()
    found = list(needed(scenario, groups, list(different)))
    if 1 < len(groups) < len(units):
        found.append(_sparing(scenario, units))
    return found


def _with_losses(scenario: Scenario, found: Sequence[Rows]) -> list[_Way]:
    """Sets of victims, each once, with what they lose."""
    sets = list({rows.tobytes(): rows for rows in found}.values())
    return list(zip(_losses(scenario, sets), sets, strict=True)) if sets else []


def _share(scenario: Scenario) -> Floats:
    """float64[S]: by shape the largest part of the cluster that a task holds."""
    return scenario.law.host.context.snapshot.once(_shares)


def _shares(snapshot: Snapshot) -> Floats:
    return np.asarray((snapshot.shapes.request / np.maximum(snapshot.capacity, 1)).max(axis=1))


def _losses(scenario: Scenario, sets: Sequence[Rows]) -> list[_Loss]:
    snapshot, share = scenario.law.host.context.snapshot, _share(scenario)
    each = breaking(snapshot, sets, *snapshot.once(_levels))[:, ::-1].tolist()
    return [
        _Loss(tuple(broken), float(share[snapshot.tasks.shape[rows]].sum()))
        for broken, rows in zip(each, sets, strict=True)
    ]


def _levels(snapshot: Snapshot) -> tuple[Longs, int]:
    """int64[G]: the rank of each podgroup's priority among all priorities, the lowest first; and how many there are."""
    levels, level = np.unique(snapshot.podgroups.priority, return_inverse=True)
    return sealed(level.astype(np.int64)), len(levels)


def _sparing(scenario: Scenario, units: VictimUnits) -> Rows:
    """int64[V]: victims where minima return before any surplus: the highest priority and the smallest first."""
    snapshot = scenario.law.host.context.snapshot
    size, at = np.diff(units.start), np.arange(len(units))
    priority = -snapshot.podgroups.priority[units.podgroup]
    units = _arranged(units, np.lexsort((-at, size, priority, ~units.whole)))
    minima = units.only(units.whole)
    broken = minima.podgroup[~_back_in_order(scenario, minima, units.rows)]
    gone = is_among(units.podgroup, broken) | ~units.whole
    surplus = units.only(gone & ~is_among(units.podgroup, broken))
    leaving = units.rows_of(gone)
    return np.sort(_less(leaving, surplus, _back_in_order(scenario, surplus, leaving)))


def needed(scenario: Scenario, groups: VictimUnits, orders: Sequence[Rows]) -> Iterator[Rows]:
    """int64[V]: tasks of the units that must go: if any returned, the preemptor would not fit, or a gang would break.

    Podgroups that lose all tasks return whole, or in part with their minima kept; single tasks return by themselves.

    Parameters
    ----------
    orders
        Orders of return, int64[U] each; an answer for each of them that leaves others gone than those before it.
    """
    snapshot, parts, podgroups = scenario.law.host.context.snapshot, scenario.law.parts, groups.podgroup
    elastic = groups.whole & (snapshot.counts.ready[podgroups] > snapshot.podgroups.min_available[podgroups])
    some, answered = bool(elastic.any()), set[tuple[bytes, ...]]()
    for order, back in zip(orders, _back(scenario, groups, groups.rows, orders), strict=True):
        in_parts = order[(elastic & ~back)[order]] if some else order[:0]
        if (left := (back.tobytes(), in_parts.tobytes())) in answered:
            continue
        answered.add(left)
        gone = groups.rows_of(~back)
        for podgroup in podgroups[in_parts].tolist():
            asked = scenario.ground.domain, podgroup, gone.tobytes()
            if asked not in parts:
                parts[asked] = _part_of(scenario, podgroup, gone)
            gone = parts[asked]
        yield np.sort(gone)


def together(units: VictimUnits) -> VictimUnits:
    """The units, those of a podgroup that goes whole joined into one at the place of the last."""
    if units.whole.all():
        return units
    order, ends, broken = _neighbours(units.podgroup, units.whole)
    arranged = _arranged(units, order)
    start = np.append(0, arranged.start[1:][ends])
    return VictimUnits(arranged.rows, start, arranged.podgroup[ends], broken[order][ends], arranged.turn[ends])


@kernel
def _neighbours(podgroup: Rows, whole: Bools) -> tuple[Rows, Bools, Bools]:
    """The order in which the units of each podgroup that goes whole are neighbours, at the place of its last.

    Also where such a run, or another unit, ends (in that order), and which units are of podgroups that go whole.
    """
    count, groups = len(podgroup), podgroup.max() + 1
    falls, last, before = np.zeros(groups, np.bool_), np.full(groups, NONE, np.int64), np.empty(count, np.int64)
    for unit in range(count):
        group = podgroup[unit]
        falls[group] |= whole[unit]
        before[unit], last[group] = last[group], unit
    order, ends, at = np.empty(count, np.int64), np.zeros(count, np.bool_), count
    for unit in range(count - 1, -1, -1):
        group, one = podgroup[unit], unit
        if falls[group] and last[group] != unit:
            continue
        ends[at - 1] = True
        while one != NONE:
            at -= 1
            order[at] = one
            one = before[one] if falls[group] else NONE
    return order, ends, falls[podgroup]


def _arranged(units: VictimUnits, order: Rows) -> VictimUnits:
    """The units in another order."""
    rows, start = runs_of(units.rows, units.start, order)
    return VictimUnits(rows, start, units.podgroup[order], units.whole[order], units.turn[order])


def _back(scenario: Scenario, groups: VictimUnits, leaving: Rows, orders: Sequence[Rows]) -> Iterator[Bools]:
    """bool[U] for each order: units that return, in that order, while the preemptor fits."""
    within, quota, counted = scenario.law.within_limits, scenario.law.quota(leaving), None
    if scenario.ground.plain and quota is not None:
        counted = scenario.ground.spared(groups, leaving, quota, np.array(orders))
    for at, order in enumerate(orders):
        if counted is not None and (within or scenario.law.takes(_less(leaving, groups, counted[at]))):
            yield counted[at]
        else:
            yield _back_by_halves(scenario, groups, leaving, order)


def _back_in_order(scenario: Scenario, groups: VictimUnits, leaving: Rows) -> Bools:
    """bool[U]: the same for the order in which the units are."""
    return next(_back(scenario, groups, leaving, [np.arange(len(groups))]))


def _back_by_halves(scenario: Scenario, groups: VictimUnits, leaving: Rows, order: Rows) -> Bools:
    """The same where slots do not decide: the units of the first half return, or of half of those, and so on."""
    result = np.zeros(len(groups), bool)
    todo = [order]
    while todo:
        some = todo.pop()
        tried = result.copy()
        tried[some] = True
        rest = _less(leaving, groups, tried)
        if len(rest) and scenario.law.takes(rest) and scenario.ground.fits(rest):
            result = tried
        elif len(some) > 1:
            todo += [some[len(some) // 2 :], some[: len(some) // 2]]
    return result


def _less(leaving: Rows, groups: VictimUnits, back: Bools) -> Rows:
    """int64[V]: the tasks that leave, without those of the units that return."""
    return leaving[~is_among(leaving, groups.rows_of(back))]


def _part_of(scenario: Scenario, podgroup: int, gone: Rows) -> Rows:
    """``gone`` with only some tasks of a podgroup with surplus that goes whole, if it keeps its minima without those.

    Tasks return in order; if too few do, the biggest return last, and those of each node in turn: they may be enough.
    """
    snapshot = scenario.law.host.context.snapshot
    owner = snapshot.tasks.podgroup[gone]
    singles, orders = _singles(scenario, podgroup, gone[owner == podgroup])
    have = snapshot.counts
    counted = have.ready[podgroup] + have.waiting[podgroup] + have.pending_best_effort[podgroup]
    spare = counted - snapshot.podgroups.min_available[podgroup]
    for order, back in zip(orders, _back(scenario, singles, gone, orders), strict=True):
        some = singles.rows[order[~back[order]]]
        if len(some) <= spare and has_minimum(WhatIf.of(snapshot).evicting(some), podgroup):
            return np.concatenate([gone[owner != podgroup], some])
    return gone


def _singles(scenario: Scenario, podgroup: int, mine: Rows) -> tuple[VictimUnits, list[Rows]]:
    """Tasks of one podgroup as units of their own, and the orders in which they return; see ``_part_of``."""
    known, asked = scenario.law.singles, (podgroup, mine.tobytes())
    if asked not in known:
        tasks, each = scenario.law.host.context.snapshot.tasks, np.arange(len(mine))
        mine = mine[np.argsort(scenario.law.host.task_ranks(mine))]
        node, held = tasks.node[mine], _share(scenario)[tasks.shape[mine]]
        last = (NONE, *distinct(node)[:_NODES].tolist())
        singles = VictimUnits(mine, np.arange(len(mine) + 1), np.full(len(mine), podgroup), each < 0, each)
        known[asked] = singles, [each, *(np.lexsort((each, held, node == one)) for one in last)]
    return known[asked]
