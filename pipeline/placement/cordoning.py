"""Nodes that are closed to a preemptor: a snapshot in which they take no new tasks and keep those they have."""

import numpy as np

from pipeline.cluster.arrays import Rows, with_rows
from pipeline.cluster.snapshot import Snapshot
from pipeline.records import replace


def without(snapshot: Snapshot, nodes: Rows) -> Snapshot:
    """The snapshot with ``nodes`` (int64[M]) cordoned; a task that tolerates the cordon may still use them."""
    if len(nodes) == 0:
        return snapshot
    schedulable = with_rows(snapshot.nodes.schedulable, nodes, np.False_)
    return replace(snapshot, nodes=replace(snapshot.nodes, schedulable=schedulable))
