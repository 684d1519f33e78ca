"""The worth of resources and tasks to one need ("Gang-Aware Preemption and Reclaim", section 3.4.3)."""

import numpy as np

from pipeline.cluster.arrays import Longs, frozen
from pipeline.cluster.orders import dense_rank
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.price import in_units, needed_by
from pipeline.kernels import linked
from pipeline.placement.need import Need
from pipeline.placement.room.room_columns import RoomColumns
from pipeline.solvers.bundles.bundling.records import Worth

#: Bits of a rank of shapes in a sort key; shapes beyond that share the last rank.
RANK_BITS = 15


def worth_of(snapshot: Snapshot, need: Need, columns: RoomColumns) -> Worth:
    """The worth to one need of all that tasks hold; anti-affinity that is counted as a resource is worth nothing."""
    needed, request = needed_by(need.total), snapshot.shapes.request
    covered, size = in_units(np.minimum(request, needed), needed), in_units(request, needed)
    unasked = np.where(needed == 0, request / np.maximum(snapshot.capacity, 1), 0.0).sum(axis=1)
    waste = dense_rank(size, unasked)
    coverage = dense_rank(-np.round(covered, 12))
    most, of, more = (1 << RANK_BITS) - 1, columns.shape, columns.held.shape[1] - len(needed)
    return Worth(
        frozen(columns.held, np.int64),
        frozen(np.append(needed, [0] * more), np.int64),
        frozen(np.minimum(coverage, most)[of], np.int64),
        frozen(np.minimum(waste, most)[of], np.int64),
        frozen(size[of], np.float64),
    )


@linked
def gain(local: Longs, needed: Longs) -> float:
    """Local gain score: the sum of min(local, needed) / needed over the needed resources."""
    score = 0.0
    for r in range(len(needed)):
        if needed[r] > 0:
            score += min(local[r], needed[r]) / needed[r]
    return score
