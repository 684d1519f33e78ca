"""``fold``: the only way in which state changes. The same news, however batched or repeated, gives the same state.

News is folded one after the other, so that the history of a podgroup does not depend on how messages were cut into
batches. That is a loop with a few cache misses for each message; it is compiled.
"""

from typing import Any

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, NONE, Bytes, Ids, Rows, distinct, with_rows
from pipeline.cluster.counted.recent_evictions import with_evictions
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import BOUND, GONE, PHASE_INQUEUE, RUNNING, TERMINATING, Podgroups
from pipeline.cluster.updates import renumber as epoch
from pipeline.cluster.updates.append import with_new_rows
from pipeline.cluster.updates.copy_on_write import WritableTable
from pipeline.cluster.updates.events import (
    Changes,
    Decided,
    Departures,
    Listed,
    News,
    NodeNews,
    NodesRelaid,
    QueuesRelaid,
    TaskNews,
)
from pipeline.cluster.updates.gang_history import with_gang_history
from pipeline.cluster.updates.task_changes import by_decision, by_news, once_gone
from pipeline.errors import StateRefused
from pipeline.kernels import kernel
from pipeline.records import replace


def fold(snapshot: Snapshot, news: News) -> Snapshot:
    """The state after ``news``.

    ``revision`` grows by the number of messages that changed something, so it does not depend on the batches;
    ``decided`` becomes the number of the last decision. News that changes nothing returns ``snapshot`` itself.

    Raises
    ------
    StateRefused
        For a row that does not exist, or a started task without a node. Then nothing is folded.
    """
    if isinstance(news, Listed):
        return epoch.relisted(snapshot, news)
    if isinstance(news, NodesRelaid):
        return epoch.with_nodes(snapshot, news)
    if isinstance(news, QueuesRelaid):
        return epoch.with_queues(snapshot, news)
    return _folded(snapshot, news)


def _folded(snapshot: Snapshot, changes: Changes) -> Snapshot:
    if changes.new_rows is not None:
        snapshot = with_new_rows(snapshot, changes.new_rows)
    if changes.budgets is not None:
        snapshot = _next(snapshot, changes.budgets.news, NO_ROWS, budgets=changes.budgets.budgets)
    if changes.nodes is not None:
        snapshot = _with_node_news(snapshot, changes.nodes)
    if changes.tasks is not None:
        snapshot = _with_task_news(snapshot, changes.tasks)
    if changes.left is not None:
        snapshot = _without_nodes(snapshot, changes.left)
    if changes.removed is not None:
        snapshot = _without_podgroups(snapshot, changes.removed)
    if changes.decided is not None:
        snapshot = _with_decision(snapshot, changes.decided)
    return snapshot


# -- what became of tasks ----------------------------------------------------------------------------------------------


def _with_task_news(snapshot: Snapshot, news: TaskNews) -> Snapshot:
    tasks, nodes = snapshot.tasks, snapshot.nodes
    if not _is_sound(news.row, news.node, news.card, news.status, (len(tasks), *nodes.cards.shape)):
        _refuse(news, len(tasks), *nodes.cards.shape)
    became = by_news(tasks, news, snapshot.podgroups.alive)
    if len(became.at) == 0:
        return snapshot
    groups = with_gang_history(snapshot, became.counted, became.at, at_once=False)
    return _next(snapshot, len(became.at), became.recounted, tasks=became.written(tasks), podgroups=groups)


@kernel
def _is_sound(row: Rows, node: Ids, card: Ids, status: Bytes, counts: tuple[int, int, int]) -> bool:
    """Whether news is about tasks, nodes and cards that there are (their ``counts``), and started tasks have a node."""
    (tasks, nodes, cards), sound = counts, True
    for k in range(len(row)):
        sound &= (0 <= row[k] < tasks) & (NONE <= node[k] < nodes) & (NONE <= card[k] < cards)
        sound &= (node[k] != NONE) | ((status[k] != BOUND) & (status[k] != RUNNING))
    return sound


def _refuse(news: TaskNews, tasks: int, nodes: int, cards: int) -> None:
    """Say what is wrong with news that is not sound."""
    _within(news.row, tasks, "task")
    _within(news.node, nodes, "node", or_none=True)
    _within(news.card, cards, "card", or_none=True)
    placeless = news.row[np.isin(news.status, (BOUND, RUNNING)) & (news.node == NONE)]
    raise StateRefused(f"expected a node for every started task, found none for row {placeless[0]}")


def _within(rows: Any, count: int, what: str, *, or_none: bool = False) -> None:
    if len(rows) and not _are_within(rows, NONE if or_none else 0, count):
        some = rows[rows != NONE] if or_none else rows
        raise StateRefused(f"expected {what} rows in [0, {count}), found {some.min()} to {some.max()}")


@kernel
def _are_within(rows: Rows | Ids, least: int, stop: int) -> bool:
    within = True
    for row in rows:
        within &= least <= row < stop
    return within


def _next(snapshot: Snapshot, counted: int, rows: Rows, **tables: Any) -> Snapshot:
    """The next snapshot, brought up to date for the tasks ``rows`` (see ``following``)."""
    return replace(snapshot, revision=snapshot.revision + counted, **tables).following(snapshot, rows)


# -- nodes and podgroups -----------------------------------------------------------------------------------------------


def _with_node_news(snapshot: Snapshot, news: NodeNews) -> Snapshot:
    nodes = snapshot.nodes
    _within(news.row, len(nodes), "node")
    newer = np.flatnonzero(news.revision > nodes.revision[news.row])
    if len(newer) == 0:
        return snapshot
    # By revision, so that of several for one node the newest is written last.
    newer = newer[np.argsort(news.revision[newer], kind="stable")]
    writable, rows = WritableTable(nodes), news.row[newer]
    writable["allocatable"][rows] = news.allocatable[newer]
    writable["schedulable"][rows] = news.schedulable[newer]
    writable["revision"][rows] = news.revision[newer]
    return _next(snapshot, len(newer), NO_ROWS, nodes=writable.done())


def _without_nodes(snapshot: Snapshot, left: Departures) -> Snapshot:
    """Nodes leave: their tasks are gone, and promises on them end."""
    _within(left.row, len(snapshot.nodes), "node")
    newer = left.revision > snapshot.nodes.revision[left.row]
    if not newer.any():
        return snapshot
    rows, gone = left.row[newer], np.zeros(len(snapshot.nodes) + 1, bool)  # the last one is what NONE indexes
    gone[rows] = True
    nodes, tasks = WritableTable(snapshot.nodes), WritableTable(snapshot.tasks)
    nodes["allocatable"][rows] = 0
    nodes["cards"][rows] = 0
    nodes["schedulable"][rows] = False
    nodes["revision"][rows] = left.revision[newer]
    old = snapshot.tasks
    turn = np.zeros(len(gone), np.int64)
    turn[rows] = np.arange(len(rows))
    held = np.flatnonzero(np.isin(old.status, (BOUND, RUNNING, TERMINATING)) & gone[old.node])
    held = held[np.argsort(turn[old.node[held]], kind="stable")]  # as if one node left after the other
    promised = np.flatnonzero(gone[old.nominated])
    tasks["nominated"][promised] = NONE
    tasks["nominated_card"][promised] = NONE
    tasks["status"][held] = GONE
    tasks["nominated"][held] = tasks["nominated_card"][held] = NONE
    groups = with_gang_history(snapshot, once_gone(old, held), left.at[newer][turn[old.node[held]]], at_once=False)
    changed = distinct(np.concatenate([held, promised]))
    return _next(snapshot, len(rows), changed, nodes=nodes.done(), tasks=tasks.done(), podgroups=groups)


def _without_podgroups(snapshot: Snapshot, removed: Departures) -> Snapshot:
    """Podgroups go, and their tasks with them."""
    _within(removed.row, len(snapshot.podgroups), "podgroup")
    groups = snapshot.podgroups
    newer = groups.alive[removed.row] & (removed.revision > groups.revision[removed.row])
    if not newer.any():
        return snapshot
    rows = removed.row[newer]
    writable, tasks = WritableTable(groups), WritableTable(snapshot.tasks)
    writable["alive"][rows] = False
    writable["stale_since"][rows] = np.nan
    writable["revision"][rows] = removed.revision[newer]
    gone = np.flatnonzero(~writable["alive"][snapshot.tasks.podgroup] & (snapshot.tasks.status != GONE))
    tasks["status"][gone] = GONE
    tasks["nominated"][gone] = tasks["nominated_card"][gone] = NONE
    return _next(snapshot, len(rows), gone, tasks=tasks.done(), podgroups=writable.done())


# -- our own decisions -------------------------------------------------------------------------------------------------


def _with_decision(snapshot: Snapshot, made: Decided) -> Snapshot:
    """Carry out a decision in the state: room that is promised does not count as free."""
    if made.seq <= snapshot.decided:
        return snapshot
    tasks, nodes = snapshot.tasks, snapshot.nodes
    _within(made.admitted, len(snapshot.podgroups), "podgroup")
    parts = made.evicted, made.spared, made.nominated, made.bound
    for rows in parts:
        _within(rows, len(tasks), "task")
    _within(made.nominated_node, len(nodes), "node", or_none=True)
    _within(made.bound_node, len(nodes), "node")
    for on in (made.nominated_card, made.bound_card):
        _within(on, nodes.cards.shape[1], "card", or_none=True)
    recent = with_evictions(snapshot.recent, made.counted, made.counted_at)
    own = {"revision": snapshot.revision + 1, "decided": made.seq, "recent": recent}
    if not any(map(len, parts)):
        after = replace(snapshot, podgroups=_admitting(snapshot.podgroups, made.admitted), **own)
        return after.following_decision(snapshot, NO_ROWS)
    became = by_decision(tasks, made, nodes.allocatable, carded=nodes.cards.shape[1] > 0)
    spared = tasks.podgroup[made.spared]
    groups = with_gang_history(snapshot, became.counted, became.at, at_once=True, spared=spared)
    groups = _admitting(groups, made.admitted)
    after = replace(snapshot, tasks=became.written(tasks), podgroups=groups, **own)
    return after.following_decision(snapshot, became.recounted)


def _admitting(groups: Podgroups, rows: Rows) -> Podgroups:
    return replace(groups, phase=with_rows(groups.phase, rows, PHASE_INQUEUE)) if len(rows) else groups
