"""What a podgroup asks for in its turn."""

import numpy as np

from pipeline.cluster.arrays import Longs, Rows
from pipeline.cluster.orders import none_last
from pipeline.cluster.rules.reaching import minimum_of
from pipeline.cluster.snapshot import Snapshot


def turn_of(snapshot: Snapshot, podgroup: int) -> Longs:
    """int64[R]: requests of the tasks that its minima lack; if they lack none, of one task.

    A podgroup with subgroups asks for what every one of them lacks (notes on KAI, 1.1), as far as it needs them.
    """
    rows = snapshot.pending(podgroup)
    if len(rows) == 0:
        return np.zeros(snapshot.shapes.request.shape[1], np.int64)
    tasks = snapshot.tasks
    index = none_last(tasks.index[rows])
    rows = rows[np.lexsort((tasks.order[rows], tasks.created[rows], index, -tasks.priority[rows].astype(np.int64)))]
    asked = _lacking(snapshot, podgroup, rows)
    chosen = asked if len(asked) else rows[:1]
    return np.asarray(snapshot.request_of(chosen).sum(axis=0))


def _lacking(snapshot: Snapshot, podgroup: int, rows: Rows) -> Rows:
    if snapshot.subgroup_start[podgroup] < snapshot.subgroup_start[podgroup + 1]:
        return rows[minimum_of(snapshot, podgroup, rows)[0]]
    have = snapshot.counts
    missing = int(snapshot.podgroups.min_available[podgroup] - have.ready[podgroup] - have.waiting[podgroup])
    return rows[: max(0, missing)]
