"""What if: a snapshot with some victims evicted, some promises made or withdrawn, some tasks bound or moved.

A value: ``evicting`` and the others give another one, and the one before still answers as it did. It keeps the tasks
that changed, what they were and what they would be; an answer is the snapshot's own, corrected for those. So a step and
an answer cost in proportion to what was taken, and no column of all tasks or nodes is copied. What it answers is what
the snapshot answers once the fold has carried the same decision out.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Bytes, Counts, Ids, Longs, Rows, with_rows
from pipeline.cluster.counted.totals import Parts, Room, TaskCounts
from pipeline.cluster.queue_tree import with_descendants
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import BOUND, PENDING, RUNNING, SUCCEEDED, TERMINATING
from pipeline.kernels import inlined, kernel

#: Rows of the record of changes: the task; its status, node, nomination and card before and after; what it is.
ROW, BEFORE, AFTER = 0, 1, 5
SHAPE, PODGROUP, QUEUE, ROLE, SUBGROUP, BEST_EFFORT, FIELDS = range(9, 16)
STATUS, NODE, NOMINATED, CARD = range(4)
_EVICT, _NOMINATE, _BIND = range(3)
_CAPACITY = 64


class Columns(NamedTuple):
    """Columns of all tasks, and the queue of each podgroup."""

    status: Bytes
    node: Ids
    nominated: Ids
    card: Ids
    shape: Ids
    podgroup: Ids
    role: Ids
    subgroup: Ids
    best_effort: Bools
    queue: Ids


@dataclass(frozen=True)
class WhatIf:
    """A snapshot, and what would be different.

    Attributes
    ----------
    snapshot
        As it is.
    columns
        Those of its tasks that a change is about.
    changes: int64[15, K]
        A record of changes that values which grew from one another share: each looks at its first ``count``.
    count
        How many changes are this one's.
    """

    snapshot: Snapshot
    columns: Columns
    changes: Longs
    count: int
    _used: list[int]

    @classmethod
    def of(cls, snapshot: Snapshot) -> "WhatIf":
        """The snapshot as it is."""
        tasks = snapshot.tasks
        columns = Columns(
            tasks.status, tasks.node, tasks.nominated, tasks.card, tasks.shape, tasks.podgroup, tasks.role,
            tasks.subgroup, tasks.best_effort, snapshot.podgroups.queue,
        )  # fmt: skip
        return cls(snapshot, columns, np.empty((FIELDS, _CAPACITY), np.int64), 0, [0])

    # -- steps -------------------------------------------------------------------------------------------------

    def evicting(self, rows: Rows) -> "WhatIf":
        """With running or bound tasks on their way out: Terminating, the room of their nodes coming free."""
        return self._with(_EVICT, rows, rows, rows)

    def nominating(self, rows: Rows, nodes: Rows, on: Rows | None = None) -> "WhatIf":
        """With tasks that wait, or that are on their way out (they move), promised ``nodes``; NONE withdraws it.

        ``on`` are the cards there of those that wait, None: none needs one.
        """
        return self._with(_NOMINATE, rows, nodes, on)

    def binding(self, rows: Rows, nodes: Rows, on: Rows | None = None) -> "WhatIf":
        """With waiting tasks Bound to ``nodes``; their nominations are used up. ``on``: see ``nominating``."""
        return self._with(_BIND, rows, nodes, on)

    def _with(self, kind: int, rows: Rows, nodes: Rows, on: Rows | None) -> "WhatIf":
        end = self.count + len(rows)
        changes, used = self.changes, self._used
        if used[0] != self.count or end > changes.shape[1]:  # another value has grown from this one, or it is full
            changes = np.empty((FIELDS, max(2 * end, _CAPACITY)), np.int64)
            changes[:, : self.count] = self.changes[:, : self.count]
            used = [self.count]
        cards = np.full(len(rows), NONE, np.int64) if on is None else on
        places = np.asarray(nodes, np.int64), np.asarray(cards, np.int64)
        _note(changes, self.count, kind, rows, *places, self.columns)
        used[0] = end
        return WhatIf(self.snapshot, self.columns, changes, end, used)

    # -- answers -----------------------------------------------------------------------------------------------

    @property
    def changed(self) -> Rows:
        """int64[K]: tasks that are not as they are, each once."""
        return np.unique(self.changes[ROW, : self.count])

    def status_of(self, rows: Rows) -> Bytes:
        """uint8[K]: the statuses of some tasks."""
        return self._now(rows, STATUS, self.snapshot.tasks.status).astype(np.uint8)

    def node_of(self, rows: Rows) -> Ids:
        """int32[K]: the nodes that some tasks hold."""
        return self._now(rows, NODE, self.snapshot.tasks.node)

    def nominated_of(self, rows: Rows) -> Ids:
        """int32[K]: the nodes that some tasks are promised."""
        return self._now(rows, NOMINATED, self.snapshot.tasks.nominated)

    def _now(self, rows: Rows, field: int, column: Bytes | Ids) -> Ids:
        result = column[rows].astype(np.int32)
        _overwrite(result, rows, self.changes, self.count, AFTER + field)
        return result

    def room_of(self, nodes: Rows) -> Room:
        """Room of some nodes, int64[M, R] each; ``nodes`` int64[M] ascending, each once."""
        whole, usage = self.snapshot.nodes.allocatable, self.snapshot.totals.nodes
        asks = self.snapshot.shapes.request
        used, terminating, nominated = _claimed(
            self.changes, self.count, nodes, usage.used, usage.terminating, usage.nominated, asks
        )
        return Room(whole[nodes] - used, terminating, nominated)

    def card_room_of(self, nodes: Rows) -> Room:
        """Room of the cards of some nodes, int64[M, D] each; ``nodes`` as in ``room_of``."""
        whole, usage = self.snapshot.nodes.cards, self.snapshot.totals.cards
        asks = self.snapshot.shapes.on_card
        used, terminating, nominated = _claimed_on_cards(
            self.changes, self.count, nodes, usage.used, usage.terminating, usage.nominated, asks
        )
        return Room(whole[nodes] - used, terminating, nominated)

    def counts_of(self, podgroup: int) -> Parts:
        """Counts of one podgroup, its roles and its subgroups."""
        parts = self.snapshot.counts_of(podgroup)
        starts = podgroup, int(self.snapshot.role_start[podgroup]), int(self.snapshot.subgroup_start[podgroup])
        return Parts(*(self._counted(*one) for one in zip(parts, (PODGROUP, ROLE, SUBGROUP), starts, strict=True)))

    def _counted(self, known: TaskCounts, field: int, first: int) -> TaskCounts:
        change = _tallied(self.changes, self.count, field, first, len(known.ready))
        return TaskCounts(
            known.ready + change[0], known.running + change[1], known.waiting + change[2], known.pending + change[3],
            known.pending_best_effort + change[4],
        )  # fmt: skip

    def ready_of(self, podgroups: Rows | Ids) -> Counts:
        """int32[M]: how many tasks of some podgroups are Bound, Running or Succeeded."""
        result = self.snapshot.ready_of(podgroups)
        _count_ready(result, podgroups, self.changes, self.count)
        return result

    def held_of(self, podgroups: Rows | Ids) -> Longs:
        """int64[M, R]: what the tasks of some podgroups hold or are promised."""
        result = self.snapshot.held_of(podgroups)
        _charge(result, podgroups, self.changes, self.count, self.snapshot.shapes.request)
        return result

    @cached_property
    def allocated_here(self) -> Longs:
        """int64[Q, R]: what the tasks of each queue hold or are promised, without its descendants."""
        return _charged(self.changes, self.count, self.snapshot.allocated_here, self.snapshot.shapes.request, False)

    @cached_property
    def requested_here(self) -> Longs:
        """int64[Q, R]: what the tasks of each queue hold, are promised or wait for, without descendants."""
        return _charged(self.changes, self.count, self.snapshot.requested_here, self.snapshot.shapes.request, True)

    @cached_property
    def allocated(self) -> Longs:
        """int64[Q, R]: the same with descendants."""
        return with_descendants(self.snapshot.queues.parent, self.allocated_here)

    @cached_property
    def whole(self) -> Snapshot:
        """As a snapshot of its own, for questions about all tasks at once: the columns that change are copied."""
        rows, tasks = self.changed, self.snapshot.tasks
        columns = {}
        for field, name in enumerate(("status", "node", "nominated", "card")):
            column = getattr(tasks, name)
            values = self._now(rows, field, column)
            if (values != column[rows]).any():
                columns[name] = with_rows(column, rows, values)
        changed = replace(tasks, **columns)
        return replace(self.snapshot, tasks=changed).following(self.snapshot, rows)


@kernel
def _note(changes: Longs, count: int, kind: int, rows: Rows, nodes: Rows, cards: Rows, columns: Columns) -> None:
    """Write changes of tasks behind the first ``count``: each begins where the one before it of the same task ended."""
    for i in range(len(rows)):
        row, at = rows[i], count + i
        changes[ROW, at] = row
        changes[BEFORE + STATUS, at], changes[BEFORE + NODE, at] = columns.status[row], columns.node[row]
        changes[BEFORE + NOMINATED, at], changes[BEFORE + CARD, at] = columns.nominated[row], columns.card[row]
        for earlier in range(count - 1, -1, -1):
            if changes[ROW, earlier] == row:
                changes[BEFORE : BEFORE + 4, at] = changes[AFTER : AFTER + 4, earlier]
                break
        changes[AFTER : AFTER + 4, at] = changes[BEFORE : BEFORE + 4, at]
        if kind == _EVICT:
            changes[AFTER + STATUS, at] = TERMINATING
        else:
            waits = changes[BEFORE + STATUS, at] == PENDING
            changes[AFTER + NOMINATED, at] = nodes[i]
            if waits:
                changes[AFTER + CARD, at] = cards[i]
            if kind == _BIND:
                changes[AFTER + STATUS, at], changes[AFTER + NODE, at] = BOUND, nodes[i]
                changes[AFTER + NOMINATED, at] = NONE
        group = columns.podgroup[row]
        changes[SHAPE, at], changes[PODGROUP, at], changes[QUEUE, at] = (
            columns.shape[row],
            group,
            columns.queue[group],
        )
        changes[ROLE, at], changes[SUBGROUP, at] = columns.role[row], columns.subgroup[row]
        changes[BEST_EFFORT, at] = columns.best_effort[row]


@kernel
def _overwrite(values: Ids, rows: Rows, changes: Longs, count: int, field: int) -> None:
    for i in range(len(rows)):
        for at in range(count - 1, -1, -1):
            if changes[ROW, at] == rows[i]:
                values[i] = changes[field, at]
                break


@kernel
def _holds(status: int) -> bool:
    return status in (BOUND, RUNNING, TERMINATING)


@kernel
def _promises(status: int, nominated: int) -> bool:
    return nominated != NONE and status in (PENDING, TERMINATING)


@kernel
def _place(nodes: Rows, node: int) -> int:
    """Where a node is among ``nodes``, NONE if it is not."""
    low, high = 0, len(nodes)
    while low < high:
        middle = (low + high) >> 1
        if nodes[middle] < node:
            low = middle + 1
        else:
            high = middle
    return low if low < len(nodes) and nodes[low] == node else NONE


@kernel
def _claimed(
    changes: Longs, count: int, nodes: Rows, used: Longs, terminating: Longs, nominated: Longs, request: Longs
) -> tuple[Longs, Longs, Longs]:
    holds, ends, promised = used[nodes], terminating[nodes], nominated[nodes]
    first, last = nodes[0] if len(nodes) else 0, nodes[-1] if len(nodes) else NONE
    for change in range(count):
        shape = changes[SHAPE, change]
        for side, sign in ((BEFORE, -1), (AFTER, 1)):
            # Most changes are about other nodes: that is seen before anything else is read.
            node, other = changes[side + NODE, change], changes[side + NOMINATED, change]
            if first <= node <= last:
                status = changes[side + STATUS, change]
                at = _place(nodes, node) if _holds(status) else NONE
                if at != NONE:
                    _add(holds, at, request, shape, sign)
                    if status == TERMINATING:
                        _add(ends, at, request, shape, sign)
            if first <= other <= last and _promises(changes[side + STATUS, change], other):
                at = _place(nodes, other)
                if at != NONE:
                    _add(promised, at, request, shape, sign)
    return holds, ends, promised


@inlined
def _add(total: Longs, owner: int, request: Longs, shape: int, sign: int) -> None:
    for r in range(total.shape[1]):
        total[owner, r] += sign * request[shape, r]


@kernel
def _claimed_on_cards(
    changes: Longs, count: int, nodes: Rows, used: Longs, terminating: Longs, nominated: Longs, on_card: Longs
) -> tuple[Longs, Longs, Longs]:
    holds, ends, promised = used[nodes], terminating[nodes], nominated[nodes]
    for change in range(count):
        asks = on_card[changes[SHAPE, change]]
        for side, sign in ((BEFORE, -1), (AFTER, 1)):
            status, card = changes[side + STATUS, change], changes[side + CARD, change]
            if card == NONE:
                continue
            if _holds(status):
                at = _place(nodes, changes[side + NODE, change])
                if at != NONE:
                    holds[at, card] += sign * asks
                    if status == TERMINATING:
                        ends[at, card] += sign * asks
            elif _promises(status, changes[side + NOMINATED, change]):
                at = _place(nodes, changes[side + NOMINATED, change])
                if at != NONE:
                    promised[at, card] += sign * asks
    return holds, ends, promised


@kernel
def _tallied(changes: Longs, count: int, field: int, first: int, owners: int) -> Counts:
    """int32[5, M]: by how much the counts of owners ``first:first + M`` are others, in the order of ``TaskCounts``."""
    result = np.zeros((5, owners), np.int32)
    for change in range(count):
        owner = changes[field, change] - first
        if owner < 0 or owner >= owners or changes[field, change] == NONE:
            continue
        for side, sign in ((BEFORE, -1), (AFTER, 1)):
            status, nominated = changes[side + STATUS, change], changes[side + NOMINATED, change]
            runs = status in (BOUND, RUNNING)
            if runs or status == SUCCEEDED:
                result[0, owner] += sign
            if runs:
                result[1, owner] += sign
            elif _promises(status, nominated):
                result[2, owner] += sign
            elif status == PENDING:
                result[3, owner] += sign
                result[4, owner] += sign * changes[BEST_EFFORT, change]
    return result


@kernel
def _has_charge(status: int, nominated: int, waits: bool) -> bool:
    return status in (BOUND, RUNNING) or _promises(status, nominated) or (waits and status == PENDING)


@kernel
def _charged(changes: Longs, count: int, charged: Longs, request: Longs, waits: bool) -> Longs:
    """``charged`` int64[Q, R] with the changes: what runs or is promised counts, and, if ``waits``, what waits."""
    result = charged.copy()
    for change in range(count):
        for side, sign in ((BEFORE, -1), (AFTER, 1)):
            if _has_charge(changes[side + STATUS, change], changes[side + NOMINATED, change], waits):
                _add(result, changes[QUEUE, change], request, changes[SHAPE, change], sign)
    return result


@kernel
def _charge(charged: Longs, podgroups: Rows | Ids, changes: Longs, count: int, request: Longs) -> None:
    """The same of some podgroups, in place."""
    for at in range(len(podgroups)):
        for change in range(count):
            if changes[PODGROUP, change] != podgroups[at]:
                continue
            for side, sign in ((BEFORE, -1), (AFTER, 1)):
                if _has_charge(changes[side + STATUS, change], changes[side + NOMINATED, change], False):
                    _add(charged, at, request, changes[SHAPE, change], sign)


@kernel
def _count_ready(ready: Counts, podgroups: Rows | Ids, changes: Longs, count: int) -> None:
    for at in range(len(podgroups)):
        for change in range(count):
            if changes[PODGROUP, change] == podgroups[at]:
                before, after = changes[BEFORE + STATUS, change], changes[AFTER + STATUS, change]
                ready[at] += int(after in (BOUND, RUNNING, SUCCEEDED)) - int(before in (BOUND, RUNNING, SUCCEEDED))
