"""What the tasks add up to: per node and card, podgroup, role, subgroup and queue.

There is one definition of every total (``counting.shares``): it says which tasks count. A snapshot's totals are counted
from its columns once; from then on the fold carries them, in proportion to the tasks that changed.
"""

from dataclasses import dataclass, fields
from operator import attrgetter, is_
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.cluster.arrays import Counts, Longs, Rows, sealed
from pipeline.cluster.counted.counting import COUNTS, SHARES, coming, differing, free, recount
from pipeline.cluster.growing import extended, writable_copy
from pipeline.cluster.tables import Nodes, Podgroups, Queues, Roles, Shapes, Subgroups, Tasks
from pipeline.keeping import cached_property
from pipeline.records import replace

#: What a kernel is given for a column in which it changes nothing.
_NO_AMOUNTS, _NO_COUNTS = np.empty((0, 0), np.int64), np.empty(0, np.int32)


@dataclass(frozen=True)
class Room:
    """Resources of each node: ``idle + used = allocatable``, and what is promised or coming free.

    Attributes
    ----------
    capacity, used, terminating, nominated: int64[N, R]
        ``used`` is held by all tasks; ``terminating`` is held by tasks on their way out; ``nominated`` is promised to
        waiting tasks, and to those on their way out that start again there (moved).
    """

    capacity: Longs
    used: Longs
    terminating: Longs
    nominated: Longs

    @cached_property
    def idle(self) -> Longs:
        """int64[N, R], read-only: what no task holds."""
        return sealed(self.capacity - self.used)

    @cached_property
    def future(self) -> Longs:
        """int64[N, R], read-only: idle + terminating - nominated; negative where more was promised than comes free."""
        return sealed(coming(self.capacity, self.used, self.terminating, self.nominated))

    @cached_property
    def free(self) -> Longs:
        """int64[R], read-only: what will be there on all nodes together."""
        return sealed(free(self.future))

    def idle_of(self, nodes: Rows) -> Longs:
        """int64[M, R]: what no task holds of some nodes."""
        return self.capacity.take(nodes, axis=0) - self.used.take(nodes, axis=0)

    def future_of(self, nodes: Rows) -> Longs:
        """int64[M, R]: what will be there of some nodes."""
        return self.idle_of(nodes) + self.terminating.take(nodes, axis=0) - self.nominated.take(nodes, axis=0)


@dataclass(frozen=True)
class Usage:
    """What tasks take of each node's resources, or of its cards.

    Attributes
    ----------
    used, terminating, nominated: int64[N, R] or int64[N, D]
        Held by all tasks; held by Terminating ones; promised to tasks.
    """

    used: Longs
    terminating: Longs
    nominated: Longs

    def room(self, capacity: Longs) -> Room:
        """The room that they leave of ``capacity``, of the same shape."""
        return Room(capacity, self.used, self.terminating, self.nominated)


@dataclass(frozen=True)
class TaskCounts:
    """Counts of tasks by status for each owner (podgroup, role or subgroup leaf).

    Attributes
    ----------
    ready: int32[M]
        Bound, Running or Succeeded.
    running: int32[M]
        Bound or Running: what an eviction can reduce.
    waiting: int32[M]
        Pending, or Terminating, with a nomination.
    pending: int32[M]
        Pending without one.
    pending_best_effort: int32[M]
        Those of ``pending`` that ask for nothing but a pod.
    """

    ready: Counts
    running: Counts
    waiting: Counts
    pending: Counts
    pending_best_effort: Counts

    @property
    def valid(self) -> Counts:
        """int32[M]: tasks that may still count towards a minimum."""
        result = self.ready + self.waiting
        result += self.pending
        return result


@dataclass(frozen=True)
class Sums:
    """Resources of the tasks of each podgroup, or of each queue without its descendants.

    Attributes
    ----------
    running, waiting, pending, gated: int64[M, R]
        Of tasks that are Bound or Running; that have a nomination; that are Pending without one; that are gated.
    """

    running: Longs
    waiting: Longs
    pending: Longs
    gated: Longs


@dataclass(frozen=True)
class Totals:
    """All totals of a snapshot: by node, by card of a node, by podgroup, role, subgroup and queue."""

    nodes: Usage
    cards: Usage
    podgroups: TaskCounts
    roles: TaskCounts
    subgroups: TaskCounts
    podgroup_sums: Sums
    queue_sums: Sums


#: The tables of the totals.
_KINDS: dict[str, type] = {
    "nodes": Usage, "cards": Usage, "podgroups": TaskCounts, "roles": TaskCounts, "subgroups": TaskCounts,
    "podgroup_sums": Sums, "queue_sums": Sums,
}  # fmt: skip
#: By table, the names of its columns; and the columns of some totals.
_NAMES = {table: tuple(one.name for one in fields(kind)) for table, kind in _KINDS.items()}
_COLUMNS_OF = {table: attrgetter(*(f"{table}.{name}" for name in names)) for table, names in _NAMES.items()}


#: Tables to which rows are appended, and whose rows those are.
_GROWING = {"podgroups": "podgroups", "roles": "roles", "subgroups": "subgroups", "podgroup_sums": "podgroups"}


class Counted(NamedTuple):
    """The tables that totals are counted from."""

    nodes: Nodes
    shapes: Shapes
    queues: Queues
    podgroups: Podgroups
    roles: Roles
    subgroups: Subgroups
    tasks: Tasks


def totals_of(tables: Counted) -> Totals:
    """Count the totals from the columns alone."""
    nodes, resources, cards = len(tables.nodes), tables.shapes.request.shape[1], tables.nodes.cards.shape[1]
    groups, roles, subgroups = len(tables.podgroups), len(tables.roles), len(tables.subgroups)
    nothing = Totals(
        nodes=Usage(*(_zeros(nodes, resources) for _ in fields(Usage))),
        cards=Usage(*(_zeros(nodes, cards) for _ in fields(Usage))),
        podgroups=TaskCounts(*(_zeros(groups) for _ in fields(TaskCounts))),
        roles=TaskCounts(*(_zeros(roles) for _ in fields(TaskCounts))),
        subgroups=TaskCounts(*(_zeros(subgroups) for _ in fields(TaskCounts))),
        podgroup_sums=Sums(*(_zeros(groups, resources) for _ in fields(Sums))),
        queue_sums=Sums(*(_zeros(len(tables.queues), resources) for _ in fields(Sums))),
    )
    return _recounted(nothing, tables, tables, np.arange(len(tables.tasks)), 0)


def _zeros(rows: int, columns: int | None = None) -> NDArray[Any]:
    """A column of amounts, or of counts if it has no columns of its own."""
    return sealed(np.zeros(rows, np.int32) if columns is None else np.zeros((rows, columns), np.int64))


def carried_totals(totals: Totals, before: Counted, after: Counted, rows: Rows) -> Totals:
    """``totals`` of the tables ``before``, brought up to date for the tasks that changed.

    Parameters
    ----------
    after
        Podgroups, roles, subgroups and tasks may have been appended; nodes, queues and resources are the same.
    rows: int64[K]
        Each once: every new task, and every task whose columns have changed.
    """
    tables = before.podgroups, before.roles, before.subgroups
    if not all(map(is_, tables, (after.podgroups, after.roles, after.subgroups))):
        totals = _lengthened(totals, after)
    return _recounted(totals, before, after, rows, len(before.tasks)) if len(rows) else totals


def _lengthened(totals: Totals, tables: Counted) -> Totals:
    """The totals with rows of nothing for podgroups, roles and subgroups that were appended."""
    longer = {}
    for name, owners in _GROWING.items():
        table, count = getattr(totals, name), len(getattr(tables, owners))
        if len(getattr(table, _NAMES[name][0])) < count:
            columns = [getattr(table, column) for column in _NAMES[name]]
            more = [np.zeros((count - len(column), *column.shape[1:]), column.dtype) for column in columns]
            longer[name] = type(table)(*map(extended, columns, more))
    return replace(totals, **longer) if longer else totals


def _recounted(totals: Totals, before: Counted, after: Counted, rows: Rows, known: int) -> Totals:
    """The totals with the tasks ``rows`` as they are, no longer as they were; those from ``known`` on are new.

    A column in which nothing changes stays the same array.
    """
    changes = rows, known, task_columns_of(before), task_columns_of(after), after.nodes.cards.shape[1] > 0
    which, columns, tables, written = differing(*changes), [], {}, []
    for (name, shares), bits in zip(SHARES.items(), which.tolist(), strict=True):
        nothing = _NO_COUNTS if shares is COUNTS else _NO_AMOUNTS
        changed = [nothing] * len(shares)
        if bits:
            kept, copy = list(_COLUMNS_OF[name](totals)), writable_copy if name in _GROWING else np.ndarray.copy
            for at, share in enumerate(shares):
                if bits & share:
                    kept[at] = changed[at] = copy(kept[at])
                    written.append(kept[at])
            tables[name] = _KINDS[name](*kept)
        columns.append(tuple(changed))
    recount(tuple(columns), which, *changes)
    for column in written:
        column.flags.writeable = False
    return replace(totals, **tables)


def task_columns_of(tables: Counted) -> tuple[Any, ...]:
    """What totals are counted from, and what a what-if looks up: ``TaskColumns``."""
    tasks, shapes = tables.tasks, tables.shapes
    return (
        tasks.status, tasks.node, tasks.nominated, tasks.card, tasks.nominated_card, tasks.gated, tasks.best_effort,
        tasks.shape, tasks.podgroup, tasks.role, tasks.subgroup,
        tables.podgroups.queue, shapes.request, shapes.on_card,
    )  # fmt: skip
