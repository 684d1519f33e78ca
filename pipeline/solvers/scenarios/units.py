"""The queue of victims: the candidates as units that go one after the other, the lowest priority first.

A unit is one surplus task of a podgroup, or all that is left of the podgroup. It is KAI Scheduler's queue of victims,
in which a podgroup that still has surplus goes back behind others of its priority.
"""

from dataclasses import dataclass

import numpy as np

from pipeline.cluster.arrays import Bools, Counts, Longs, Rows, all_true, running_sums
from pipeline.cluster.counted.task_index import joined_runs
from pipeline.cluster.orders import last_first
from pipeline.cluster.snapshot import Snapshot
from pipeline.kernels import kernel
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Preemptor
from pipeline.policy import Purpose
from pipeline.records import replace
from pipeline.solvers.scenarios.surplus_first import surplus_first


@dataclass(frozen=True)
class VictimUnits:
    """Units of victims in the order in which they are taken.

    Attributes
    ----------
    rows: int64[V]
        Task rows, unit after unit.
    start: int64[U + 1]
        Unit ``u`` has ``rows[start[u]:start[u + 1]]``.
    podgroup: int64[U]
    whole: bool[U]
        Whether it is all that is left of its podgroup, which then breaks; else it is one surplus task.
    turn: int64[U]
        The position of the unit among all units.
    """

    rows: Rows
    start: Longs
    podgroup: Rows
    whole: Bools
    turn: Longs

    def __len__(self) -> int:
        return len(self.podgroup)

    def only(self, kept: Bools) -> "VictimUnits":
        """The units where ``kept`` (bool[U])."""
        return self if all_true(kept) else self.arranged(kept.nonzero()[0])

    def first(self, count: int) -> "VictimUnits":
        """The first ``count`` units."""
        rows, start = self.rows[: self.start[min(count, len(self))]], self.start[: count + 1]
        return VictimUnits(rows, start, self.podgroup[:count], self.whole[:count], self.turn[:count])

    def split(self) -> "VictimUnits":
        """Every task as a unit of its own; none breaks its podgroup."""
        size, each = np.diff(self.start), np.arange(len(self.rows) + 1)
        return VictimUnits(self.rows, each, np.repeat(self.podgroup, size), each[1:] < 0, np.repeat(self.turn, size))

    def without(self, some: Bools) -> "VictimUnits":
        """The units without some of their tasks (bool[V]); a unit that loses all is not there."""
        left = running_sums(~some)[self.start]
        kept = np.diff(left) > 0
        start = np.append(left[:-1][kept], left[-1])
        return VictimUnits(self.rows[~some], start, self.podgroup[kept], self.whole[kept], self.turn[kept])

    def arranged(self, order: Rows) -> "VictimUnits":
        """The units in another order (int64[U])."""
        rows, start = joined_runs(self.rows, self.start, order)
        return VictimUnits(rows, start, self.podgroup[order], self.whole[order], self.turn[order])

    def rows_of(self, chosen: Bools) -> Rows:
        """int64[K]: the tasks of the units where ``chosen`` (bool[U])."""
        return joined_runs(self.rows, self.start, chosen.nonzero()[0])[0]


def victim_units(host: Host, preemptor: Preemptor) -> VictimUnits:
    """The units that may be taken as far as each can be judged alone, in order."""
    snapshot = host.context.snapshot
    rows, owner = _by_owner(host.candidates(preemptor), *snapshot.by_podgroup)
    if len(rows) == 0:
        return VictimUnits(rows, np.zeros(1, np.int64), rows, np.zeros(0, bool), rows)
    units = _by_podgroup(snapshot, last_first(rows, owner, *host.task_keys(rows)), owner)
    mine, whole = units.podgroup, units.whole
    rank = host.job_rank[mine]  # and with what is whole as it will be once none has surplus
    if not all_true(whole):
        rank = np.where(whole, host.job_rank_after(units.rows_of(~whole))[mine], rank)
    keys = -rank, whole, snapshot.podgroups.priority[mine]
    queue = snapshot.podgroups.queue[mine]
    if all_true(queue == queue[:1]):
        return replace(units.arranged(np.lexsort(keys)), turn=units.turn)
    order = np.lexsort((*keys, _queue_order(host, preemptor)[queue]))
    return _interleaved(host, replace(units.arranged(order), turn=units.turn))


def _interleaved(host: Host, units: VictimUnits) -> VictimUnits:
    """The units of several queues in the order of the plugin that lets these take turns, if there is one."""
    snapshot = host.context.snapshot
    queue = snapshot.podgroups.queue[units.podgroup].astype(np.int64)
    held = np.add.reduceat(snapshot.request_of(units.rows), units.start[:-1], axis=0)
    at = np.argsort(units.podgroup, kind="stable")
    owner, upto = units.podgroup[at], np.cumsum(held[at], axis=0) - held[at]
    before = np.empty_like(held)
    before[at] = upto - upto[np.searchsorted(owner, owner)]
    rest = snapshot.podgroup_held[units.podgroup] - before
    order = host.across_queues(queue, held.astype(np.float64), rest.astype(np.float64))
    if order is None:
        return units
    return replace(units.arranged(order), turn=units.turn)


def _queue_order(host: Host, preemptor: Preemptor) -> Longs:
    """int64[Q]: from which queue to take first."""
    if preemptor.purpose is Purpose.RECLAIM:
        return host.victim_queue_rank(int(host.context.snapshot.podgroups.queue[preemptor.podgroups[0]]))
    return -host.queue_rank


def _by_podgroup(snapshot: Snapshot, rows: Rows, owner: Rows) -> VictimUnits:
    """The units of each podgroup, surplus first, given its tasks in the order in which they go."""
    rows, spare = surplus_first(snapshot, rows, owner)
    columns = _units_within(rows, owner, spare, snapshot.counts.running)
    return VictimUnits(*columns, np.arange(len(columns[-1])))


@kernel
def _by_owner(may: Bools, start: Longs, task: Rows) -> tuple[Rows, Rows]:
    """The tasks ``may`` (bool[T]) by podgroup, of each the last row first; and the podgroup of each; int64[C] both.

    ``start`` and ``task`` are those of ``Occupancy``.
    """
    rows, owner, many = np.empty(len(task), np.int64), np.empty(len(task), np.int64), 0
    for group in range(len(start) - 1):
        for row in task[start[group] : start[group + 1]][::-1]:
            if may[row]:
                rows[many], owner[many] = row, group
                many += 1
    return rows[:many].copy(), owner[:many].copy()


@kernel
def _units_within(rows: Rows, owner: Rows, spare: Bools, running: Counts) -> tuple[Rows, Longs, Rows, Bools]:
    """The columns of `VictimUnits` but for the turns; a unit is a surplus task, or all others of a podgroup.

    ``rows`` int64[C] are sorted by podgroup (``owner``), surplus first. Where not all that runs of a podgroup is there,
    it loses surplus only.
    """
    kept, start = np.empty(len(rows), np.int64), np.empty(len(rows) + 1, np.int64)
    podgroup, whole = np.empty(len(rows), np.int64), np.empty(len(rows), np.bool_)
    tasks = units = at = 0
    while at < len(rows):
        first, group, begun = at, owner[at], False
        while at < len(rows) and owner[at] == group:
            at += 1
        for one in range(first, at):
            if not spare[one] and at - first != running[group]:
                break
            if spare[one] or not begun:
                start[units], podgroup[units], whole[units], begun = tasks, group, not spare[one], not spare[one]
                units += 1
            kept[tasks] = rows[one]
            tasks += 1
    start[units] = tasks
    return kept[:tasks], start[: units + 1], podgroup[:units], whole[:units]
