"""What a podgroup asks for in its turn."""

import numpy as np

from pipeline.cluster.arrays import Longs, Rows, none_last
from pipeline.cluster.snapshot import Snapshot


def turn_of(snapshot: Snapshot, podgroup: int) -> Longs:
    """int64[R]: requests of the tasks that its minima lack; if they lack none, of one task.

    A podgroup with subgroups asks for what every one of them lacks (notes on KAI, 1.1).
    """
    rows = snapshot.pending(podgroup)
    if len(rows) == 0:
        return np.zeros(snapshot.shapes.request.shape[1], np.int64)
    tasks = snapshot.tasks
    index = none_last(tasks.index[rows])
    rows = rows[np.lexsort((tasks.order[rows], tasks.created[rows], index, -tasks.priority[rows].astype(np.int64)))]
    asked = _lacking(snapshot, podgroup, rows)
    chosen = asked if len(asked) else rows[:1]
    return np.asarray(snapshot.shapes.request[tasks.shape[chosen]].sum(axis=0))


def _lacking(snapshot: Snapshot, podgroup: int, rows: Rows) -> Rows:
    first, stop = int(snapshot.subgroup_start[podgroup]), int(snapshot.subgroup_start[podgroup + 1])
    have = snapshot.counts
    if first == stop:
        missing = int(snapshot.podgroups.min_available[podgroup] - have.ready[podgroup] - have.waiting[podgroup])
        return rows[: max(0, missing)]
    leaf, found = snapshot.subgroup_counts, [rows[:0]]
    for part in range(first, stop):
        missing = int(snapshot.subgroups.min_available[part] - leaf.ready[part] - leaf.waiting[part])
        found.append(rows[snapshot.tasks.subgroup[rows] == part][: max(0, missing)])
    return np.concatenate(found)
