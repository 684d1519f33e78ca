"""Nodes that are closed to a preemptor: a snapshot in which they take no new tasks and keep those they have."""

from pipeline.cluster.arrays import Rows
from pipeline.cluster.snapshot import Snapshot
from pipeline.records import replace


def without(snapshot: Snapshot, nodes: Rows) -> Snapshot:
    """The snapshot with ``nodes`` (int64[M]) cordoned; a task that tolerates the cordon may still use them."""
    if len(nodes) == 0:
        return snapshot
    return replace(snapshot, nodes=snapshot.nodes.shut(nodes))
