"""A fleet that answers at once; its news of tasks is folded like any other news."""

from __future__ import annotations

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Ids, Longs, Rows, frozen
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import RUNNING, TERMINATING
from pipeline.cluster.updates.events import CURRENT, EVICTED, Changes, TaskNews
from pipeline.cluster.updates.fold import fold


def started(snapshot: Snapshot, rows: Rows, now: float) -> Snapshot:
    """The state after bound tasks (rows, int64[K]) have started."""
    tasks = snapshot.tasks
    return _told(snapshot, rows, RUNNING, tasks.node[rows], tasks.card[rows], now)


def victims_gone(snapshot: Snapshot, now: float, due: Bools | None = None) -> Snapshot:
    """The state after evicted tasks have ended; they wait again under the same name unless ``gone_when_evicted``.

    Parameters
    ----------
    due: bool[T]
        Tasks whose grace is over; None: all.
    """
    ends = snapshot.tasks.status == TERMINATING
    rows = np.flatnonzero(ends if due is None else ends & due)
    nowhere = np.full(len(rows), NONE)
    return _told(snapshot, rows, EVICTED, nowhere, nowhere, now)


def _told(snapshot: Snapshot, rows: Rows, status: int, node: Ids | Longs, card: Ids | Longs, now: float) -> Snapshot:
    if len(rows) == 0:
        return snapshot
    news = TaskNews(
        row=frozen(rows, np.int64),
        status=frozen(np.full(len(rows), status), np.uint8),
        node=frozen(node, np.int32),
        card=frozen(card, np.int32),
        incarnation=frozen(np.full(len(rows), CURRENT), np.int64),
        revision=frozen(snapshot.tasks.revision[rows] + 1, np.int64),
        at=frozen(np.full(len(rows), now), np.float64),
    )
    return fold(snapshot, Changes(tasks=news))
