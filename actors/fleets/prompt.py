"""A fleet that answers at once; its news of tasks is folded like any other news."""

from __future__ import annotations

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Bytes, Floats, Ids, Longs, Rows, frozen
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
    return fold(snapshot, Changes(tasks=news_of(snapshot, rows, np.full(len(rows), status), node, card, now)))


def news_of(
    snapshot: Snapshot, rows: Rows, status: Longs | Bytes, node: Ids | Longs, card: Ids | Longs, at: float | Floats
) -> TaskNews:
    """News of tasks (int64[K]) at their next revision, each in the incarnation that is known; columns are of K."""
    return TaskNews(
        row=frozen(rows, np.int64),
        status=frozen(status, np.uint8),
        node=frozen(node, np.int32),
        card=frozen(card, np.int32),
        incarnation=frozen(np.full(len(rows), CURRENT), np.int64),
        revision=frozen(snapshot.tasks.revision[rows] + 1, np.int64),
        at=frozen(np.full(len(rows), at), np.float64),
    )
