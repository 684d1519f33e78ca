"""The priorities that podgroups have, as ranks without gaps."""

import numpy as np

from pipeline.cluster.arrays import Ids, Rows, sealed
from pipeline.cluster.orders import unique_inverse
from pipeline.cluster.tables import Podgroups
from pipeline.kernels import kernel

#: Priorities are counted if they lie among this many numbers.
_CLOSE = 4_096


def priority_ranks(groups: Podgroups) -> tuple[Ids, Rows]:
    """The priorities that podgroups have, int32[P], the lowest first; and which of them each has, int64[G]."""
    priorities, rank = _counted(groups.priority)
    if len(rank) < len(groups):
        priorities, rank = unique_inverse(groups.priority)
    return sealed(priorities), sealed(rank)


@kernel
def _counted(priority: Ids) -> tuple[Ids, Rows]:
    """The same of priorities that are close together; no rows for others."""
    low, high = priority.min() if len(priority) > 0 else 0, priority.max() if len(priority) > 0 else 0
    if high - low >= _CLOSE:
        return priority[:0].copy(), np.empty(0, np.int64)
    rank_of, many = np.zeros(high - low + 1, np.int64), 0
    for one in priority:
        rank_of[one - low] = 1
    priorities, rank = np.empty(len(rank_of), np.int32), np.empty(len(priority), np.int64)
    for at in range(len(rank_of)):
        if rank_of[at] == 1:
            priorities[many] = low + at
            rank_of[at] = many
            many += 1
    for at in range(len(priority)):
        rank[at] = rank_of[priority[at] - low]
    return priorities[:many].copy(), rank
