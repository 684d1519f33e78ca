"""The frozen cluster at one revision: tables, and what follows from them.

A snapshot never changes. Its totals and its index of tasks follow from the tables; the fold carries them
from one snapshot to the next, and they travel with it. The cluster without some victims is a ``WhatIf``.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Bytes, Ids, Longs, Rows, sealed
from pipeline.cluster.carried import CarriedTables
from pipeline.cluster.counted.budgets import Budgets
from pipeline.cluster.counted.counting import add_requests
from pipeline.cluster.counted.task_index import Occupancy, Placed, TaskIndex, joined_runs
from pipeline.cluster.counted.totals import Room, TaskCounts, Totals
from pipeline.cluster.queue_tree import with_descendants
from pipeline.cluster.tables import PENDING
from pipeline.keeping import Derived, Keeping, cached_property
from pipeline.kernels import kernel
from pipeline.records import replace


@dataclass(frozen=True)
class Snapshot(CarriedTables, Keeping):
    """Everything that a decision may depend on, except the policy and the clock."""

    def __reduce__(self) -> tuple[Any, ...]:
        """A snapshot is pickled with its totals and its index, and nothing else derived from it."""
        columns = tuple(getattr(self, one.name) for one in fields(self))
        return _arrived, (*columns, self.totals, self.index)

    def packed(self) -> "Packed":
        """This snapshot with what travels with it, as one record."""
        return Packed(self, self.totals, self.index)

    @cached_property
    def room(self) -> Room:
        """Idle, terminating and nominated resources per node."""
        return self.totals.nodes.room(self.nodes.allocatable)

    @cached_property
    def card_room(self) -> Room:
        """The same for the cards of each node: columns int64[N, D]."""
        return self.totals.cards.room(self.nodes.cards)

    @property
    def occupancy(self) -> Occupancy:
        """Tasks by the node they hold."""
        return self.index.by_node

    @property
    def placed(self) -> Placed:
        """Columns of the tasks that hold a node, by node."""
        return self.index.placed

    @property
    def counts(self) -> TaskCounts:
        """Task counts per podgroup."""
        return self.totals.podgroups

    @property
    def role_counts(self) -> TaskCounts:
        """Task counts per role."""
        return self.totals.roles

    @property
    def subgroup_counts(self) -> TaskCounts:
        """Task counts per leaf subgroup; inner ones count nothing."""
        return self.totals.subgroups

    def held_of(self, podgroups: Rows | Ids) -> Longs:
        """int64[M, R]: what the tasks of some podgroups hold or are promised."""
        sums = self.totals.podgroup_sums
        return sums.running[podgroups] + sums.waiting[podgroups]

    def nominated_of(self, rows: Rows) -> Ids:
        """int32[K]: the nodes that some tasks are promised."""
        return self.tasks.nominated[rows]

    def place_of(self, rows: Rows) -> Ids:
        """int32[K]: the nodes on which some tasks run or are bound, or else are promised; NONE for neither."""
        return np.where(self.tasks.runs(rows), self.tasks.node[rows], self.tasks.nominated[rows])

    def budgets_on(self, rows: Rows) -> Bools:
        """bool[P, V]: which disruption budgets cover which of some tasks."""
        return self.budgets.covering(self.podgroups.namespace[self.tasks.podgroup[rows]], self.tasks.label_set[rows])

    def how_many_on(self, rows: Rows, budgets: Budgets | None = None) -> Longs:
        """int64[P]: how many of some tasks each disruption budget covers, the snapshot's or others."""
        of = self.budgets if budgets is None else budgets
        return of.how_many(self.podgroups.namespace[self.tasks.podgroup[rows]], self.tasks.label_set[rows])

    def queue_of(self, rows: Rows) -> Ids:
        """int32[K]: the queue of each of some tasks."""
        return self.podgroups.queue[self.tasks.podgroup[rows]]

    def request_of(self, rows: Rows) -> Longs:
        """int64[K, R]: what each of some tasks asks for."""
        return self.shapes.request.take(self.tasks.shape[rows], axis=0)

    @cached_property
    def allocated_here(self) -> Longs:
        """int64[Q, R]: what the tasks of each queue hold or are promised, without its descendants."""
        return sealed(self.totals.queue_sums.running + self.totals.queue_sums.waiting)

    @cached_property
    def allocated(self) -> Longs:
        """int64[Q, R]: the same with descendants."""
        return sealed(with_descendants(self.queues.parent, self.allocated_here))

    @cached_property
    def requested_here(self) -> Longs:
        """int64[Q, R]: what the tasks of each queue hold, are promised or wait for, without descendants."""
        return sealed(self.allocated_here + self.totals.queue_sums.pending)

    @cached_property
    def capacity(self) -> Longs:
        """int64[R]: allocatable of all nodes together."""
        return self.nodes.capacity

    @property
    def podgroup_held(self) -> Longs:
        """int64[G, R]: what the running and bound tasks of each podgroup hold."""
        return self.totals.podgroup_sums.running

    @cached_property
    def by_podgroup(self) -> tuple[Longs, Rows]:
        """Task rows sorted by podgroup: int64[G + 1] where each podgroup's begin, int64[T] the rows."""
        members = self.members
        return members.start, members.task

    def tasks_of(self, podgroup: int) -> Rows:
        """int64[K]: rows of all tasks of one podgroup, ascending, whatever their status."""
        start, rows = self.by_podgroup
        return rows[start[podgroup] : start[podgroup + 1]]

    def closing(self, nodes: Rows) -> "Snapshot":
        """The snapshot with ``nodes`` (int64[M]) closed to a preemptor: they keep their tasks, and take no others.

        A task that tolerates a cordon may still use them.
        """
        return replace(self, nodes=self.nodes.closing(nodes)) if len(nodes) else self

    def add_requests(self, rows: Rows, to: Longs, at: Rows | Ids, sign: int = 1) -> None:
        """Add what the tasks ``rows`` int64[K] ask for to the rows ``at`` int[K] of ``to`` int64[M, R].

        ``sign`` -1 takes it off instead.
        """
        add_requests(to, at.astype(np.int64, copy=False), self.tasks.shape[rows], self.shapes.request, sign)

    @cached_property
    def request(self) -> Longs:
        """int64[T, R]: what each task asks for; for small tables and slices of them only."""
        return self.shapes.request[self.tasks.shape]

    def pending(self, podgroup: int) -> Rows:
        """int64[K]: rows of the podgroup's tasks that wait without a nomination and are not gated."""
        known = self.answers_about((podgroup,), Snapshot.pending)
        if podgroup not in known:
            known[podgroup] = self.waiting_of(np.array([podgroup]))[0]
        return known[podgroup]

    def answers_about(self, podgroups: Iterable[int], of: Callable[..., Derived]) -> dict[Any, Derived]:
        """The same as ``answers``, of a function that looks at some podgroups and their tasks alone.

        It does not look at the phase of a podgroup, and since when it is as it is. So its answers stay until a decision
        changes one of these tasks, also for another cycle of decisions that begins with the same news.
        """
        known, changed = self.since_news
        return self.answers(of) if any(map(changed.__getitem__, podgroups)) else known.setdefault(of, {})

    def tasks_of_all(self, podgroups: Rows) -> tuple[Rows, Longs]:
        """All tasks of several podgroups (int64[M]): int64[K] rows, and int64[M + 1] where those of each begin."""
        start, rows = self.by_podgroup
        return joined_runs(rows, start, podgroups)

    def waiting_of(self, podgroups: Rows) -> tuple[Rows, Longs]:
        """The same of those that ``pending`` says."""
        tasks = self.tasks
        rows, first = _waiting_of(*self.by_podgroup, podgroups, tasks.status, tasks.nominated, tasks.gated)
        return sealed(rows), first


@kernel
def _waiting_of(
    start: Longs, rows: Rows, podgroups: Rows, status: Bytes, nominated: Ids, gated: Bools
) -> tuple[Rows, Longs]:
    """See ``waiting_of``."""
    found, first = joined_runs(rows, start, podgroups)
    begin = many = 0
    for at in range(len(podgroups)):
        stop = first[at + 1]
        for task in found[begin:stop]:
            if status[task] == PENDING and nominated[task] == NONE and not gated[task]:
                found[many] = task
                many += 1
        begin, first[at + 1] = stop, many
    return found[:many].copy(), first


@dataclass(frozen=True)
class Packed:
    """A snapshot with its totals and its index, for sending to another process."""

    snapshot: Snapshot
    totals: Totals
    index: TaskIndex

    def opened(self) -> Snapshot:
        """The snapshot, which has them."""
        return self.snapshot.carrying(self.totals, self.index)


def _arrived(*parts: Any) -> Snapshot:
    """The snapshot that was pickled, with what it was pickled with."""
    return Snapshot(*parts[:-2]).carrying(*parts[-2:])
