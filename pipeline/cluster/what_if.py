"""What if: a snapshot with some victims evicted, some promises made or withdrawn, some tasks bound or moved.

It is a value: ``evicting`` and the other steps return a new one, and the earlier one still answers as before. A step
logs how tasks and totals change; an answer is the snapshot's own, corrected by the last entry about what is asked. So
the cost of a step grows with the tasks that it takes, the cost of an answer with what is asked, and neither with what
was taken before. The answers are those of the snapshot once the fold has carried out the same decision. The room of
nodes is not among them: solvers count it themselves.
"""

from dataclasses import dataclass

import numpy as np

from pipeline.cluster.arrays import NONE, Bytes, Ids, Longs, Rows, with_rows
from pipeline.cluster.counted.change_log import (
    BIND,
    CARD,
    EVICT,
    HELD_OFF,
    NOMINATE,
    NOMINATED,
    NOMINATED_CARD,
    PODGROUP,
    QUEUE,
    STATUS,
    TASK_NODE,
    Log,
    Plain,
    changed_tasks,
    copied_log,
    correct,
    empty_log,
    note,
    overwrite,
)
from pipeline.cluster.counted.totals import task_columns_of
from pipeline.cluster.queue_tree import with_descendants
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import BOUND, RUNNING
from pipeline.keeping import cached_property
from pipeline.records import replace

#: What a task's entry says, and the column of ``Tasks`` for it.
_COLUMNS = {STATUS: "status", TASK_NODE: "node", NOMINATED: "nominated", CARD: "card", NOMINATED_CARD: "nominated_card"}


@dataclass(eq=False)
class WhatIf:
    """A snapshot, and what would be different. Its fields are never assigned to (freezing it would double its cost).

    Attributes
    ----------
    snapshot
        As it is.
    log
        Of changes: the first ``count`` entries are this one's. See ``change_log``.
    """

    snapshot: Snapshot
    log: Log
    count: int

    @classmethod
    def of(cls, snapshot: Snapshot) -> "WhatIf":
        """The snapshot as it is."""
        return cls(snapshot, empty_log(snapshot.shapes.request.shape[1]), 0)

    # -- steps -------------------------------------------------------------------------------------------------

    def evicting(self, rows: Rows) -> "WhatIf":
        """With running or bound tasks on their way out: Terminating."""
        return self._with(EVICT, rows, rows, rows)

    def nominating(self, rows: Rows, nodes: Rows, on: Rows | None = None) -> "WhatIf":
        """With tasks that wait, or that are on their way out (they move), promised ``nodes``; NONE withdraws it.

        ``on`` are the cards there, None: none needs one.
        """
        return self._with(NOMINATE, rows, nodes, _none_for(rows) if on is None else np.asarray(on, np.int64))

    def withdrawing(self, rows: Rows) -> "WhatIf":
        """With the promises to some tasks withdrawn."""
        return self.nominating(rows, _none_for(rows))

    def binding(self, rows: Rows, nodes: Rows) -> "WhatIf":
        """With waiting tasks Bound to ``nodes``, without taking cards there; their nominations are used up."""
        return self._with(BIND, rows, nodes, _none_for(rows))

    def _with(self, kind: int, rows: Rows, nodes: Rows, cards: Rows) -> "WhatIf":
        log, columns, nodes = self.log, self.snapshot.once(task_columns), np.asarray(nodes, np.int64)
        count = note(*log, self.count, kind, rows, nodes, cards, columns)
        if count == NONE:
            log = copied_log(log, self.count, len(rows))
            count = note(*log, self.count, kind, rows, nodes, cards, columns)
        return WhatIf(self.snapshot, log, count)

    # -- answers -----------------------------------------------------------------------------------------------

    @property
    def entries(self) -> tuple[Longs, Longs, int]:
        """The changes as kernels take them: see ``change_log.last_entry``."""
        return self.log.heads, self.log.entries, self.count

    @property
    def changed(self) -> Rows:
        """int64[K]: tasks that are not as they are, each once, ascending."""
        return changed_tasks(self.log.entries[: self.count])

    def nominated_of(self, rows: Rows) -> Ids:
        """int32[K]: the nodes that some tasks are promised."""
        return self._now(rows, NOMINATED, self.snapshot.tasks.nominated)

    def place_of(self, rows: Rows) -> Ids:
        """int32[K]: the nodes on which some tasks run or are bound, or else are promised; NONE for neither."""
        tasks, status = self.snapshot.tasks, self._now(rows, STATUS, self.snapshot.tasks.status)
        holds = (status == BOUND) | (status == RUNNING)
        return np.where(holds, self._now(rows, TASK_NODE, tasks.node), self.nominated_of(rows))

    def _now(self, rows: Rows, field: int, column: Bytes | Ids) -> Ids:
        result = column[rows].astype(np.int32)
        overwrite(*self.entries, field, rows, result)
        return result

    def held_of(self, podgroups: Rows | Ids) -> Longs:
        """int64[M, R]: what the tasks of some podgroups hold or are promised."""
        held = self.snapshot.held_of(podgroups)
        correct(*self.entries, PODGROUP, podgroups, HELD_OFF, held)
        return held

    @property
    def allocated_here(self) -> Longs:
        """int64[Q, R]: what the tasks of each queue hold or are promised, without its descendants."""
        return self._in_queues(HELD_OFF, self.snapshot.allocated_here)

    @property
    def requested_here(self) -> Longs:
        """int64[Q, R]: what the tasks of each queue hold, are promised or wait for, without descendants."""
        return self._in_queues(HELD_OFF + self.snapshot.shapes.request.shape[1], self.snapshot.requested_here)

    def _in_queues(self, first: int, known: Longs) -> Longs:
        total = known.copy()
        correct(*self.entries, QUEUE, self.snapshot.once(_every_queue), first, total)
        return total

    @cached_property
    def allocated(self) -> Longs:
        """int64[Q, R]: the same with descendants."""
        return with_descendants(self.snapshot.queues.parent, self.allocated_here)

    @cached_property
    def whole(self) -> Snapshot:
        """As a snapshot of its own, for questions about all tasks at once: the columns that change are copied."""
        rows, tasks = self.changed, self.snapshot.tasks
        columns = {}
        for field, name in _COLUMNS.items():
            column = getattr(tasks, name)
            values = self._now(rows, field, column)
            if (values != column[rows]).any():
                columns[name] = with_rows(column, rows, values)
        changed = replace(tasks, **columns)
        return replace(self.snapshot, tasks=changed).following(self.snapshot, rows)


def _none_for(rows: Rows) -> Rows:
    """int64[K]: no card or node for any of them."""
    return np.full(len(rows), NONE, np.int64)


def task_columns(snapshot: Snapshot) -> Plain:
    """What the log looks up of tasks: ``TaskColumns``."""
    return task_columns_of(snapshot.counted)


def _every_queue(snapshot: Snapshot) -> Rows:
    return np.arange(len(snapshot.queues))
