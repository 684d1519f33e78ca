"""Whether a queue may take sets of victims: the units of each set, and the order in which they are looked at."""

from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import Bools, Counts, Floats, Ids, Longs, Rows
from pipeline.cluster.counted.change_log import Plain
from pipeline.cluster.fairness.gate import QueueShares, Victims, may_take
from pipeline.cluster.orders import total_rank
from pipeline.cluster.resources import PODS
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import Podgroups
from pipeline.kernels import inlined, kernel, linked


class _Columns(NamedTuple):
    """In which order victims of podgroups (int64[G]) and tasks (int64[T]) are looked at, and columns of both.

    Podgroups come by queue, the least important and youngest first. ``least`` and ``part_least`` are what podgroups and
    subgroups need; the subgroups of a podgroup begin at its ``part_start``.
    """

    turn: Longs
    order: Longs
    podgroup: Ids
    subgroup: Ids
    queue_of: Ids
    shape: Ids
    request: Longs
    least: Counts
    part_start: Longs
    part_least: Counts


def _turn(groups: Podgroups) -> Longs:
    return total_rank(groups.queue, groups.priority, -groups.order)


def columns_of(snapshot: Snapshot) -> Plain:
    """The columns of ``may_take_each``."""
    groups, tasks = snapshot.podgroups, snapshot.tasks
    return tuple(
        _Columns(
            groups.once(_turn), tasks.order, tasks.podgroup, tasks.subgroup,
            groups.queue, tasks.shape, snapshot.shapes.request,
            groups.min_available, snapshot.subgroup_start, snapshot.subgroups.min_available,
        )
    )  # fmt: skip


@kernel
def may_take_each(
    shares: Plain, queue: int, preemptible: bool, request: Floats, rows: Rows, start: Longs, plain: Plain,
    multiplier: float,
) -> Bools:  # fmt: skip
    """bool[S]: whether a queue may take the victims ``rows[start[s]:start[s + 1]]``; see ``fairness.gate.may_take``.

    ``shares`` are ``QueueShares``, ``plain`` ``_Columns``.
    """
    queues, columns = QueueShares(*shares), _Columns(*plain)
    result, key = np.empty(len(start) - 1, np.bool_), np.empty(len(rows), np.int64)
    for at in range(len(rows)):
        key[at] = columns.turn[columns.podgroup[rows[at]]] * len(columns.order) + columns.order[rows[at]]
    for one in range(len(result)):
        mine = slice(start[one], start[one + 1])
        units = _units(rows[mine][np.argsort(key[mine])], columns)
        result[one] = may_take(queues, queue, request, preemptible, Victims(*units), multiplier)
    return result


@linked
def _units(rows: Rows, columns: _Columns) -> tuple[Rows, Longs, Floats]:
    """The queues, where the units of each begin, and what each unit holds; pods are not counted.

    ``rows`` are the victims by queue and podgroup: what the minima of each do not need goes first, task by task.
    """
    request, core = columns.request, np.zeros(len(rows), np.bool_)
    queues, start = np.empty(len(rows), np.int64), np.empty(len(rows) + 1, np.int64)
    held, units, found, first = np.zeros((len(rows), request.shape[1])), 0, 0, 0
    while first < len(rows):
        group, stop = columns.podgroup[rows[first]], first
        while stop < len(rows) and columns.podgroup[rows[stop]] == group:
            stop += 1
        if found == 0 or queues[found - 1] != columns.queue_of[group]:
            queues[found], start[found] = columns.queue_of[group], units
            found += 1
        needed = _needed(group, rows[first:stop], columns, core[first:stop])
        for at in range(first, stop):
            if not core[at]:
                _add(request, columns.shape[rows[at]], held, units)
                units += 1
        for at in range(first, stop):
            if core[at]:
                _add(request, columns.shape[rows[at]], held, units)
        units += needed > 0
        first = stop
    start[found] = units
    held[:, PODS] = 0.0
    return queues[:found], start[: found + 1], held[:units]


@inlined
def _add(request: Longs, shape: int, held: Floats, unit: int) -> None:
    for r in range(held.shape[1]):
        held[unit, r] += request[shape, r]


@linked
def _needed(group: int, rows: Rows, columns: _Columns, core: Bools) -> int:
    """How many victims make up the minima of a podgroup: the first of each subgroup, then of all. Fills ``core``."""
    begin, end, count = columns.part_start[group], columns.part_start[group + 1], 0
    if begin < end:
        lacks = columns.part_least[begin:end].copy()
        for at in range(len(rows)):
            part = columns.subgroup[rows[at]] - begin
            if part >= 0 and lacks[part] > 0:
                lacks[part] -= 1
                core[at] = True
                count += 1
    for at in range(len(rows)):
        if count >= columns.least[group]:
            break
        if not core[at]:
            core[at] = True
            count += 1
    return count
