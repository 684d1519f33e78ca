"""The return of units that are not needed, one after the other in an order, while the preemptor still fits."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from pipeline.cluster.arrays import (
    NO_ROWS,
    NONE,
    Bools,
    Floats,
    Longs,
    Rows,
    all_true,
    any_true,
    is_among,
    running_sums,
    sealed,
)
from pipeline.cluster.rules.minimum import has_minimum
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.what_if import WhatIf
from pipeline.kernels import kernel
from pipeline.solvers.scenarios.accumulating import Scenario
from pipeline.solvers.scenarios.slices.part_returns import Parts, orders_of_return
from pipeline.solvers.scenarios.units import VictimUnits


def share_of(snapshot: Snapshot) -> Floats:
    """float64[S]: by shape the largest part of the cluster that a task holds."""
    known, asked = snapshot.shapes.answers(share_of), snapshot.capacity.tobytes()
    if asked not in known:
        known.clear()  # what the cluster was before it grew or shrank is not asked about again
        known[asked] = sealed((snapshot.shapes.request / np.maximum(snapshot.capacity, 1)).max(axis=1))
    return known[asked]


def sparing(scenario: Scenario, units: VictimUnits) -> Rows:
    """int64[V]: victims where minima return before any surplus: the highest priority and the smallest first."""
    snapshot = scenario.ground.snapshot
    size, at = np.diff(units.start), np.arange(len(units))
    priority = -snapshot.podgroups.priority[units.podgroup]
    units = units.arranged(np.lexsort((-at, size, priority, ~units.whole)))
    minima = units.only(units.whole)
    broken = minima.podgroup[~_back_in_order(scenario, minima, units.rows)]
    gone = is_among(units.podgroup, broken) | ~units.whole
    surplus = units.only(gone & ~is_among(units.podgroup, broken))
    leaving = units.rows_of(gone)
    return np.sort(_less(leaving, surplus, _back_in_order(scenario, surplus, leaving)))


def needed(scenario: Scenario, groups: VictimUnits, orders: Longs, many: Longs | None = None) -> list[Rows]:
    """int64[V]: tasks of the units that must go: if any returned, the preemptor would not fit, or a gang would break.

    Podgroups that lose all tasks return whole, or in part with their minima kept; single tasks return by themselves.

    Parameters
    ----------
    orders: int64[O, U]
        Orders of return; an answer for each of them that leaves others gone than those before it.
    many: int64[O]
        For each of them, how many leading units go, no fewer than for the one before; all if it is not given.
    """
    snapshot, podgroups = scenario.ground.snapshot, groups.podgroup
    elastic = groups.whole & (snapshot.counts.ready[podgroups] > snapshot.podgroups.min_available[podgroups])
    back = np.array([*_back(scenario, groups, groups.rows, orders, many)])
    rows, stop, answer = _gone(groups.rows, groups.start, back)
    left = [rows[slice(*mine)] for mine in pairwise([0, *stop.tolist()])]
    if not any_true(elastic):
        return left
    found, answered = list[Rows](), set[tuple[int, bytes]]()
    for order, stays, at in zip(orders, elastic & ~back, answer.tolist(), strict=True):
        gone, in_parts = left[at], podgroups[order[stays[order]]]
        if (asks := (at, in_parts.tobytes())) in answered:
            continue
        answered.add(asks)
        found.append(np.sort(_in_parts(scenario, in_parts, gone)))
    return found


@kernel
def _gone(rows: Rows, start: Longs, back: Bools) -> tuple[Rows, Longs, Longs]:
    """The tasks of units that are not ``back`` (bool[O, U]), ascending, for each order that leaves others.

    Also where those of each end (int64[A]), and which of them are those of each order (int64[O]).
    """
    answer, first, stop = np.empty(len(back), np.int64), np.empty(len(back), np.int64), np.zeros(len(back), np.int64)
    answers = tasks = 0
    for order in range(len(back)):
        at = 0
        while at < answers and (back[first[at]] != back[order]).any():
            at += 1
        answer[order] = at
        if at == answers:
            for unit in range(len(start) - 1):
                tasks += (start[unit + 1] - start[unit]) * (not back[order, unit])
            first[at], stop[at] = order, tasks
            answers += 1
    result, at = np.empty(tasks, np.int64), 0
    for one in range(answers):
        begin = at
        for unit in range(len(start) - 1):
            if not back[first[one], unit]:
                for row in rows[start[unit] : start[unit + 1]]:
                    result[at] = row
                    at += 1
        result[begin:at].sort()
    return result, stop[:answers], answer


def joined_by_gang(units: VictimUnits) -> VictimUnits:
    """The units, those of a podgroup that goes whole joined into one at the place of the last."""
    if all_true(units.whole):
        return units
    order, ends, broken = _neighbours(units.podgroup, units.whole)
    arranged = units.arranged(order)
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


def _back(
    scenario: Scenario,
    groups: VictimUnits,
    leaving: Rows,
    orders: Longs,
    many: Longs | None = None,
    most: int | None = None,
) -> Iterator[Bools]:
    """bool[U] for each order: units that return, in that order, while the preemptor fits.

    If only some leading units go (``many``), ``leaving`` are the tasks of the units; units that stay count as returned.
    Where more than ``most`` do not return, it may be said of others too that they do not.
    """
    within, quota, counted = scenario.law.within_limits, scenario.law.quota, None
    if many is None:
        many, upto = np.full((2, len(orders)), len(groups))
        upto[:] = len(leaving)
    else:
        upto = groups.start[many]
    if scenario.ground.plain and quota is not None:
        counted = scenario.ground.spared(groups, leaving, quota, orders, many, upto)
        if within:
            yield from counted
            return
    # The quota refuses nothing that the law would not: where the law allows the outcome, the same units return.
    for at, order in enumerate(orders):
        some = leaving[: upto[at]]
        if counted is not None and scenario.law.takes(_less(some, groups, counted[at])):
            yield counted[at]
        else:
            yield _back_by_halves(scenario, groups, some, order[order < many[at]], most)


def _back_in_order(scenario: Scenario, groups: VictimUnits, leaving: Rows) -> Bools:
    """bool[U]: the same for the order in which the units are."""
    return next(_back(scenario, groups, leaving, np.arange(len(groups))[None]))


def _back_by_halves(scenario: Scenario, groups: VictimUnits, leaving: Rows, order: Rows, most: int | None) -> Bools:
    """The same where slots do not decide: the units of the first half return, or of half of those, and so on."""
    ground, law = scenario.ground, scenario.law
    walk, kept, most = ground.by_halves(groups, leaving, order), True, len(order) if most is None else most
    unit, spare = NO_ROWS, law.spare(groups, leaving)
    while ground.some_return(groups, spare, order, walk, most, kept=kept):
        unit = unit if len(unit) else _unit_of(leaving, groups)
        rest = leaving[~np.append(walk.back, False)[unit]]
        kept = law.takes(rest) and ground.fits_in(walk.ground.room, rest)
    return walk.back


def _unit_of(leaving: Rows, groups: VictimUnits) -> Rows:
    """int64[V]: the unit of each task that leaves; NONE if it is in none of them."""
    order = groups.rows.argsort(kind="stable")
    rows, unit = groups.rows[order], np.arange(len(groups)).repeat(np.diff(groups.start))[order]
    at = rows.searchsorted(leaving)
    return np.where(np.append(rows, NONE)[at] == leaving, np.append(unit, NONE)[at], NONE)


def _less(leaving: Rows, groups: VictimUnits, back: Bools) -> Rows:
    """int64[V]: the tasks that leave, without those of the units that return."""
    return leaving[~is_among(leaving, groups.rows_of(back))]


def _in_parts(scenario: Scenario, podgroups: Rows, gone: Rows) -> Rows:
    """``gone`` with only some tasks of podgroups with surplus that go whole, if these keep their minima without those.

    One podgroup after the other. Its tasks return in order; if too few do, the biggest return last, and those of each
    node in turn: they may be enough.
    """
    ground, known = scenario.ground, scenario.law.parts
    counted = ground.plain and scenario.law.within_limits
    for some in [podgroups] if counted else podgroups[:, None]:
        asked = ground.domain, ground.keeps, some.tobytes(), gone.tobytes()
        if asked not in known:
            known[asked] = _counted_parts(scenario, some, gone) if counted else _part_of(scenario, int(some[0]), gone)
        gone = known[asked]
    return gone


def _counted_parts(scenario: Scenario, podgroups: Rows, gone: Rows) -> Rows:
    """The same where slots decide."""
    snapshot, owner = scenario.ground.snapshot, scenario.ground.snapshot.tasks.podgroup[gone]
    some = is_among(owner, podgroups)
    rows, by_row = gone[some], podgroups.argsort()
    part = by_row[podgroups[by_row].searchsorted(owner[some])]
    rows = rows[np.lexsort((scenario.law.host.task_ranks(rows), part))]
    start = running_sums(np.bincount(part, minlength=len(podgroups)))
    node, share = snapshot.tasks.node[rows], share_of(snapshot)[snapshot.tasks.shape[rows]]
    goes = scenario.ground.parts_gone(Parts(podgroups, _spare(snapshot, podgroups), start, rows, node, share), gone)
    return np.concatenate([gone[~some], rows[goes]])


def _spare(snapshot: Snapshot, podgroups: Rows) -> Longs:
    """int64[P]: how many tasks podgroups can spare, by their numbers alone."""
    have = snapshot.counts
    counted = have.ready[podgroups] + have.waiting[podgroups] + have.pending_best_effort[podgroups]
    return (counted - snapshot.podgroups.min_available[podgroups]).astype(np.int64)


def _part_of(scenario: Scenario, podgroup: int, gone: Rows) -> Rows:
    """The same of one podgroup, where returns are tried."""
    snapshot = scenario.ground.snapshot
    owner = snapshot.tasks.podgroup[gone]
    singles, orders = _singles(scenario, podgroup, gone[owner == podgroup])
    spare = int(_spare(snapshot, np.array([podgroup]))[0])
    if scenario.ground.too_few_return(singles, gone, spare):
        return gone
    for order, back in zip(orders, _back(scenario, singles, gone, orders, most=spare), strict=True):
        some = singles.rows[order[~back[order]]]
        if len(some) <= spare and has_minimum(WhatIf.of(snapshot).evicting(some), podgroup):
            return np.concatenate([gone[owner != podgroup], some])
    return gone


def _singles(scenario: Scenario, podgroup: int, mine: Rows) -> tuple[VictimUnits, Longs]:
    """Tasks of one podgroup as units of their own, and the orders in which they return; see ``_in_parts``."""
    known, asked = scenario.law.singles, (podgroup, mine.tobytes())
    if asked not in known:
        snapshot, each = scenario.ground.snapshot, np.arange(len(mine))
        mine = mine[np.argsort(scenario.law.host.task_ranks(mine))]
        singles = VictimUnits(mine, np.arange(len(mine) + 1), np.full(len(mine), podgroup), each < 0, each)
        share = share_of(snapshot)[snapshot.tasks.shape[mine]]
        known[asked] = singles, orders_of_return(snapshot.tasks.node[mine], share)
    return known[asked]
