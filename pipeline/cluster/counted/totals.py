"""What the tasks add up to: per node and card, podgroup, role, subgroup and queue.

There is one definition of every total (``counting.shares``): it says which tasks count. A snapshot's totals are counted
from its columns once; from then on the fold carries them, in proportion to the tasks that changed.
"""

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.cluster.arrays import NONE, Bools, Counts, Ids, Longs, Rows, sealed
from pipeline.cluster.counted.counting import SHARES, coming, count, free, shares_of
from pipeline.cluster.growing import copied, extended
from pipeline.cluster.tables import (
    PENDING,
    TERMINATING,
    Nodes,
    Podgroups,
    Queues,
    Roles,
    Shapes,
    Subgroups,
    Tasks,
)
from pipeline.records import replace

#: By how much a task counts where tasks are counted.
_ONE = sealed(np.ones((1, 1), np.int32))


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
        return self.capacity[nodes] - self.used[nodes]

    def future_of(self, nodes: Rows) -> Longs:
        """int64[M, R]: what will be there of some nodes."""
        return self.idle_of(nodes) + self.terminating[nodes] - self.nominated[nodes]


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


#: By table of the totals, the names of its columns.
_NAMES = {
    table: tuple(one.name for one in fields(kind))
    for table, kind in (
        ("nodes", Usage), ("cards", Usage), ("podgroups", TaskCounts), ("roles", TaskCounts),
        ("subgroups", TaskCounts), ("podgroup_sums", Sums), ("queue_sums", Sums),
    )
}  # fmt: skip


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
    writable = _WritableTotals(nothing)
    rows = np.arange(len(tables.tasks))
    writable.add(tables, rows, _Belonging.of(tables, rows), 1)
    return writable.done()


def _zeros(rows: int, columns: int | None = None) -> NDArray[Any]:
    """A column of amounts, or of counts if it has no columns of its own."""
    return sealed(np.zeros(rows, np.int32) if columns is None else np.zeros((rows, columns), np.int64))


def carried(totals: Totals, before: Counted, after: Counted, rows: Rows) -> Totals:
    """``totals`` of the tables ``before``, brought up to date for the tasks that changed.

    Parameters
    ----------
    after
        Podgroups, roles, subgroups and tasks may have been appended; nodes, queues and resources are the same.
    rows
        int64[K], each once: every new task, and every task whose columns have changed.
    """
    owners = "podgroups", "roles", "subgroups"
    if len(rows) == 0 and all(len(getattr(before, name)) == len(getattr(after, name)) for name in owners):
        return totals
    writable = _WritableTotals(totals)
    for name in ("podgroups", "roles", "subgroups", "podgroup_sums"):
        writable.lengthen(name, len(getattr(after, "podgroups" if name == "podgroup_sums" else name)))
    known, belong = rows[rows < len(before.tasks)], _Belonging.of(after, rows)
    writable.add(before, known, belong if _belong_alike(before, after) else _Belonging.of(before, known), -1)
    writable.add(after, rows, belong, 1)
    return writable.done()


class _Belonging(NamedTuple):
    """Of some tasks what news leaves alone: what they ask for (int64[K, R]; int64[K] of a card), and whose they are."""

    request: Longs
    on_card: Longs
    podgroup: Ids
    queue: Ids
    role: Ids
    subgroup: Ids

    @classmethod
    def of(cls, tables: Counted, rows: Rows) -> "_Belonging":
        """That of the tasks ``rows``."""
        tasks, shapes = tables.tasks, tables.shapes
        shape, podgroup = tasks.shape[rows], tasks.podgroup[rows]
        return cls(
            shapes.request[shape], shapes.on_card[shape],
            podgroup, tables.podgroups.queue[podgroup], tasks.role[rows], tasks.subgroup[rows],
        )  # fmt: skip


def _belong_alike(before: Counted, after: Counted) -> bool:
    """Whether the same tasks belong to the same owners in both: then the columns that say so are the same arrays."""
    mine, others = (
        (one.shapes, one.podgroups.queue, one.tasks.shape, one.tasks.podgroup, one.tasks.role, one.tasks.subgroup)
        for one in (before, after)
    )
    return all(one is other for one, other in zip(mine, others, strict=True))


class _WritableTotals:
    """Totals that are being changed: a column is copied when known rows of it are first written."""

    def __init__(self, totals: Totals) -> None:
        self._totals = totals
        self._columns: dict[tuple[str, str], NDArray[Any]] = {}

    def lengthen(self, table: str, count: int) -> None:
        """Append rows of nothing to a table's columns, up to ``count``."""
        for name in _NAMES[table]:
            column = getattr(getattr(self._totals, table), name)
            if len(column) < count:
                more = np.zeros((count - len(column), *column.shape[1:]), column.dtype)
                self._columns[table, name] = extended(column, more)

    def add(self, tables: Counted, rows: Rows, belong: _Belonging, sign: int) -> None:
        """Add some tasks, as ``tables`` have them, to the totals (``sign`` 1), or take them out (-1)."""
        tasks, podgroup = tables.tasks, belong.podgroup
        cards = tables.nodes.cards.shape[1]
        columns = (tasks.status, tasks.nominated, tasks.gated, tasks.best_effort, tasks.card)
        shares = shares_of(rows, columns, cards > 0)
        held, promised = tasks.node[rows], tasks.nominated[rows]
        self._count("nodes", (held, held, promised), shares, belong.request, sign)
        if cards:
            card, part = tasks.card[rows].astype(np.int64), belong.on_card[:, None]
            self._count(
                "cards", (held * cards + card, held * cards + card, promised * cards + card), shares, part, sign
            )
        for table, owner in (("podgroup_sums", podgroup), ("queue_sums", belong.queue)):
            self._count(table, (owner,) * len(_NAMES[table]), shares, belong.request, sign)
        self._count("podgroups", (podgroup,) * len(_NAMES["podgroups"]), shares, _ONE, sign)
        for table, owner in (("roles", belong.role), ("subgroups", belong.subgroup)):
            if (owner != NONE).any():
                self._count(table, (owner,) * len(_NAMES[table]), shares, _ONE, sign)

    def _count(
        self, table: str, owners: tuple[Ids | Rows, ...], shares: Longs, asks: Longs | Counts, sign: int
    ) -> None:
        """The same in one table; ``owners`` are those of each of its columns."""
        touched = int(np.bitwise_or.reduce(shares, initial=0))
        for name, owner, share in zip(_NAMES[table], owners, SHARES[table], strict=True):
            if touched & share:
                count(self._column(table, name).reshape(-1, asks.shape[1]), owner, shares, share, asks, sign)

    def _column(self, table: str, name: str) -> NDArray[Any]:
        column = self._columns.get((table, name))
        if column is None or not column.flags.writeable:
            column = copied(getattr(getattr(self._totals, table), name) if column is None else column)
            self._columns[table, name] = column
        return column

    def done(self) -> Totals:
        """The totals, read-only."""
        changed: dict[str, dict[str, NDArray[Any]]] = {}
        for (table, name), column in self._columns.items():
            changed.setdefault(table, {})[name] = sealed(column)
        return replace(
            self._totals, **{table: replace(getattr(self._totals, table), **new) for table, new in changed.items()}
        )


def promised(tasks: Tasks) -> Bools:
    """bool[T]: tasks that are promised a node: pending ones, and those that move to another node."""
    return np.asarray(((tasks.status == PENDING) | (tasks.status == TERMINATING)) & (tasks.nominated != NONE))
