"""The independent check: does a statement make the room that it promises? Plain NumPy, no kernel, no shared code.

Every plan passes it before it leaves ``propose`` and again when it is judged. A wrong kernel may cost a plan, never a
wrong eviction.
"""

import numpy as np

from pipeline.cluster.arrays import Longs, Rows
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import BOUND, PENDING, RUNNING
from pipeline.statement import Statement


def feasible(snapshot: Snapshot, made: Statement) -> bool:
    """Whether victims run, tasks wait, and no touched node is promised more than it will have.

    What is bound must fit what is idle now; bound and nominated together must fit what will be free.
    """
    tasks = snapshot.tasks
    if not np.isin(tasks.status[made.evictions], (BOUND, RUNNING)).all():
        return False
    if (tasks.status[made.nominated] != PENDING).any() or (tasks.status[made.bound] != PENDING).any():
        return False
    touched, left = leftover(snapshot, made)
    now = summed(snapshot, touched, made.bound, made.bound_node)
    placed = made.nominated_node >= 0
    later = now + summed(snapshot, touched, made.nominated[placed], made.nominated_node[placed])
    idle = snapshot.room.idle[touched]
    return bool(((left >= 0) | (later == 0)).all() and ((now <= idle) | (now == 0)).all())


def leftover(snapshot: Snapshot, made: Statement) -> tuple[Rows, Longs]:
    """What the statement leaves on the nodes on which it places somebody.

    Returns
    -------
    int64[M] node rows, ascending; int64[M, R]: future room once the victims have gone and everybody placed has come.
    """
    tasks = snapshot.tasks
    placed = made.nominated_node >= 0
    touched = np.unique(np.concatenate([made.nominated_node[placed], made.bound_node]))
    left = snapshot.room.future_of(touched)
    left += summed(snapshot, touched, made.evictions, tasks.node[made.evictions].astype(np.int64))
    moved = np.concatenate([made.nominated, made.bound])  # their old promises fall away
    left += summed(snapshot, touched, moved, tasks.nominated[moved].astype(np.int64))
    left -= summed(snapshot, touched, made.nominated[placed], made.nominated_node[placed])
    left -= summed(snapshot, touched, made.bound, made.bound_node)
    return touched, left


def summed(snapshot: Snapshot, touched: Rows, rows: Rows, nodes: Rows) -> Longs:
    """int64[M, R]: requests of ``rows`` summed per touched node; what lies on other nodes does not count."""
    total = np.zeros((len(touched), len(snapshot.vocabulary.resources)), np.int64)
    if len(touched) == 0 or len(rows) == 0:
        return total
    at = np.minimum(np.searchsorted(touched, nodes), len(touched) - 1)
    here = touched[at] == nodes
    np.add.at(total, at[here], snapshot.shapes.request[snapshot.tasks.shape[rows[here]]])
    return total
