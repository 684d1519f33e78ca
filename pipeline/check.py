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

    What is bound must fit what is idle and promised to nobody else; what is nominated must fit what will be free.
    """
    status = snapshot.tasks.status
    if not np.isin(status[made.evictions], (BOUND, RUNNING)).all():
        return False
    if (status[made.nominated] != PENDING).any() or (status[made.bound] != PENDING).any():
        return False
    future, idle = _room_after(snapshot, made)
    touched = np.unique(np.concatenate([made.nominated_node[made.nominated_node >= 0], made.bound_node]))
    asked = _asked_of(snapshot, made, touched)
    return bool(((future[touched] >= 0) | ~asked).all() and ((idle[touched] >= 0) | ~asked).all())


def _asked_of(snapshot: Snapshot, made: Statement, touched: Rows) -> Longs:
    """bool[M, R]: resources of which the statement takes something on the touched nodes."""
    total = np.zeros_like(snapshot.nodes.allocatable)
    placed = made.nominated_node >= 0
    np.add.at(total, made.nominated_node[placed], _request(snapshot, made.nominated[placed]))
    np.add.at(total, made.bound_node, _request(snapshot, made.bound))
    return np.asarray(total[touched] > 0)


def _room_after(snapshot: Snapshot, made: Statement) -> tuple[Longs, Longs]:
    """int64[N, R] twice: future room and idle room once the statement has been carried out."""
    future, idle = snapshot.room.future.copy(), snapshot.room.idle.copy()
    tasks = snapshot.tasks
    np.add.at(future, tasks.node[made.evictions], _request(snapshot, made.evictions))
    for rows in (made.nominated, made.bound):  # old promises of the same tasks fall away
        promised = rows[tasks.nominated[rows] >= 0]
        np.add.at(future, tasks.nominated[promised], _request(snapshot, promised))
    placed = made.nominated_node >= 0
    np.subtract.at(future, made.nominated_node[placed], _request(snapshot, made.nominated[placed]))
    np.subtract.at(future, made.bound_node, _request(snapshot, made.bound))
    np.subtract.at(idle, made.bound_node, _request(snapshot, made.bound))
    return future, idle


def _request(snapshot: Snapshot, rows: Rows) -> Longs:
    return snapshot.shapes.request[snapshot.tasks.shape[rows]]
