"""``fold``: the only way in which state changes. The same news, however batched or repeated, gives the same state.

News is folded one after the other, so that the history of a podgroup does not depend on how messages were cut into
batches. That is a loop with a few cache misses for each message; it is compiled.
"""

from typing import Any, NamedTuple

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, NONE, Bools, Bytes, Ids, Longs, Rows, is_among, kinds_of, with_rows
from pipeline.cluster.counted.counting import counts_ready, runs
from pipeline.cluster.recent_evictions import with_evictions
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import BOUND, GONE, PENDING, PHASE_INQUEUE, RUNNING, TERMINATING, Podgroups, Tasks
from pipeline.cluster.updates import renumber as epoch
from pipeline.cluster.updates.append import with_new_rows
from pipeline.cluster.updates.copy_on_write import WritableTable
from pipeline.cluster.updates.events import (
    CURRENT,
    EVICTED,
    REPLACED,
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
from pipeline.cluster.updates.gang_history import Recounted, Signs, settle_at_once, settle_news
from pipeline.errors import StateRefused
from pipeline.kernels import kernel
from pipeline.records import replace

Columns = tuple[Any, ...]


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


class _Taken(NamedTuple):
    """The tasks that news is about, each once: what they are for good, then what news changes, in place."""

    podgroup: Ids
    gone_when_evicted: Bools
    status: Bytes
    node: Ids
    nominated: Ids
    card: Ids
    incarnation: Longs
    revision: Longs


#: Columns that no total and no index follows from.
_UNCOUNTED = ("incarnation", "revision")


@kernel
def _fold_tasks(news: Columns, place: Rows, tasks: _Taken, alive: Bools) -> tuple[Bools, Signs, Signs]:
    """Fold news into ``tasks`` in place; ``place`` int64[K] says where there the task of each message is.

    Returns which messages counted, and by how much more each task counts as ready and as running (-1, 0 or 1).
    """
    said, target, on, life, revision = news
    podgroup, gone_when_evicted, status, node, nominated, card, incarnation, known = tasks
    counted = np.zeros(len(place), np.bool_)
    ready, running = np.zeros(len(place), np.int8), np.zeros(len(place), np.int8)
    for k in range(len(place)):
        task, new = place[k], said[k]
        if revision[k] <= known[task] or not alive[podgroup[task]]:
            continue
        counted[k] = True
        known[task] = revision[k]
        current, was = incarnation[task], status[task]
        lives = current if life[k] == CURRENT else life[k]
        if lives < current:
            continue
        if new == EVICTED:
            new = GONE if gone_when_evicted[task] else REPLACED
        if new == REPLACED or (new == PENDING and life[k] == CURRENT and was != PENDING):
            lives += 1
            new = PENDING
        if new == TERMINATING and target[k] == NONE and (was == PENDING or was > TERMINATING):
            new = GONE  # it was told to end before it held anything
        if was == TERMINATING and runs(new) and lives == current:
            new = TERMINATING  # told to end, and the news was sent before the fleet knew
        moves = was == TERMINATING and nominated[task] != NONE  # it keeps its promise until it waits again
        keeps = lives == current and (new == PENDING or (new == TERMINATING and moves))
        if not keeps and not (new == PENDING and moves):
            nominated[task] = NONE
        if new == PENDING:
            node[task] = NONE
        elif target[k] != NONE:
            node[task] = target[k]
            card[task] = on[k]
        if node[task] == NONE and nominated[task] == NONE:
            card[task] = NONE
        incarnation[task] = lives
        status[task] = new
        ready[k] = int(counts_ready(new)) - int(counts_ready(was))
        running[k] = int(runs(new)) - int(runs(was))
    return counted, ready, running


def _with_task_news(snapshot: Snapshot, news: TaskNews) -> Snapshot:
    tasks = snapshot.tasks
    _within(news.row, len(tasks), "task")
    _within(news.node[news.node != NONE], len(snapshot.nodes), "node")
    _within(news.card[news.card != NONE], snapshot.nodes.cards.shape[1], "card")
    placeless = ((news.status == BOUND) | (news.status == RUNNING)) & (news.node == NONE)
    if placeless.any():
        raise StateRefused(f"expected a node for every started task, found none for row {news.row[placeless][0]}")
    if not (news.revision > tasks.revision[news.row]).any():
        return snapshot
    # On a copy of the rows concerned: they are read from all over memory once, and side by side after that.
    (rows, place), groups = kinds_of(news.row), WritableTable(snapshot.podgroups)
    known = _Taken(*(getattr(tasks, name)[rows] for name in _Taken._fields))
    taken = _Taken(*(getattr(known, name).copy() for name in _Taken._fields))
    said = news.status, news.node, news.card, news.incarnation, news.revision
    counted, ready, running = _fold_tasks(said, place, taken, snapshot.podgroups.alive)
    heard = np.flatnonzero(counted)
    of = news.row[heard]
    parts = tasks.podgroup[of], tasks.role[of], tasks.subgroup[of]
    changed = Recounted(*parts, ready[heard], running[heard], news.at[heard], counted[heard])
    settle_news(changed, snapshot, groups)
    after, recounted = _written(tasks, rows, known, taken)
    return _next(snapshot, len(heard), recounted, tasks=after, podgroups=groups.done())


def _written(tasks: Tasks, rows: Rows, known: _Taken, taken: _Taken) -> tuple[Tasks, Rows]:
    """The tasks with what became of ``rows``, which were ``known``, and those (int64[K]) that count otherwise now.

    A column in which nothing changed stays the same array. No total counts revisions or incarnations, and a task that
    starts over where it was is in the same place of the index.
    """
    writable, recounted = WritableTable(tasks), np.zeros(len(rows), bool)
    for name in _Taken._fields:
        values = getattr(taken, name)
        differs = values != getattr(known, name)
        if differs.any():
            writable[name][rows] = values
            recounted |= differs & (name not in _UNCOUNTED)
    return writable.done(), rows[recounted]


def _within(rows: Any, count: int, what: str) -> None:
    if len(rows) and (rows.min() < 0 or rows.max() >= count):
        raise StateRefused(f"expected {what} rows in [0, {count}), found {rows.min()} to {rows.max()}")


def _next(snapshot: Snapshot, counted: int, rows: Rows, **tables: Any) -> Snapshot:
    """The next snapshot, its totals brought up to date for the tasks ``rows``; the same one if nothing counted."""
    if not counted:
        return snapshot
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
    held = np.flatnonzero(np.isin(old.status, (BOUND, RUNNING, TERMINATING)) & gone[old.node])
    promised = np.flatnonzero(gone[old.nominated])
    tasks["nominated"][promised] = NONE
    tasks["card"][promised] = NONE
    tasks["status"][held] = GONE
    tasks["nominated"][held] = NONE
    groups = _settled(snapshot, tasks, held, float(left.at[newer].max()))
    changed = np.concatenate([held, promised])
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
    tasks["card"][gone[tasks["nominated"][gone] != NONE]] = NONE
    tasks["nominated"][gone] = NONE
    return _next(snapshot, len(rows), gone, tasks=tasks.done(), podgroups=writable.done())


def _settled(snapshot: Snapshot, tasks: WritableTable[Tasks], rows: Rows, at: float) -> Podgroups:
    """Podgroups after the statuses of ``rows`` changed at one time, all together."""
    known, writable = snapshot.tasks, WritableTable(snapshot.podgroups)
    parts = known.podgroup[rows], known.role[rows], known.subgroup[rows]
    settle_at_once(parts, _recounted(known.status[rows], tasks["status"][rows]), at, snapshot, writable)
    return writable.done()


@kernel
def _recounted(was: Bytes, new: Bytes) -> tuple[Signs, Signs]:
    """int8[K]: by how much more tasks count as ready, and as running."""
    ready, running = np.empty(len(was), np.int8), np.empty(len(was), np.int8)
    for at in range(len(was)):
        ready[at] = int(counts_ready(new[at])) - int(counts_ready(was[at]))
        running[at] = int(runs(new[at])) - int(runs(was[at]))
    return ready, running


# -- our own decisions -------------------------------------------------------------------------------------------------


def _with_decision(snapshot: Snapshot, made: Decided) -> Snapshot:
    """Carry out a decision in the state: room that is promised does not count as free."""
    if made.seq <= snapshot.decided:
        return snapshot
    tasks, nodes = snapshot.tasks, snapshot.nodes
    _within(made.admitted, len(snapshot.podgroups), "podgroup")
    for rows in (made.evicted, made.spared, made.nominated, made.bound):
        _within(rows, len(tasks), "task")
    for places in (made.nominated_node[made.nominated_node != NONE], made.bound_node):
        _within(places, len(nodes), "node")
    for on in (made.nominated_card, made.bound_card):
        _within(on[on != NONE], nodes.cards.shape[1], "card")
    own = {"decided": made.seq, "recent": with_evictions(snapshot.recent, made.counted, made.counted_at)}
    if not any(map(len, (made.evicted, made.spared, made.nominated, made.bound))):  # no column of all tasks is copied
        return _next(snapshot, 1, NO_ROWS, podgroups=_admitting(snapshot.podgroups, made.admitted), **own)
    writable = WritableTable(tasks)
    ending = made.evicted[_meant(tasks, made.evicted, made.evicted_incarnation, BOUND, RUNNING)]
    spared = made.spared[_meant(tasks, made.spared, made.spared_incarnation, TERMINATING)]
    starting = _meant(tasks, made.bound, made.bound_incarnation, PENDING)
    starting &= nodes.allocatable[made.bound_node].any(axis=1)
    waiting = _meant(tasks, made.nominated, made.nominated_incarnation, PENDING)
    # A task that was ending already moves as well: it starts again where this decision promises it room.
    told = made.evicted[_meant(tasks, made.evicted, made.evicted_incarnation, BOUND, RUNNING, TERMINATING)]
    moved = is_among(made.nominated, told) & (tasks.card[made.nominated] == NONE)  # a task has room for one card only
    waiting |= moved
    moving = _meant(tasks, made.nominated, made.nominated_incarnation, TERMINATING)
    waiting |= moving & (made.nominated_node == NONE) & (tasks.nominated[made.nominated] != NONE)
    waiting &= (made.nominated_node == NONE) | nodes.allocatable[made.nominated_node].any(axis=1)
    writable["status"][ending] = TERMINATING
    writable["status"][spared] = RUNNING
    writable["nominated"][spared] = NONE
    writable["nominated"][made.nominated[waiting]] = made.nominated_node[waiting]
    bound = made.bound[starting]
    writable["status"][bound] = BOUND
    writable["node"][bound] = made.bound_node[starting]
    if nodes.cards.shape[1]:
        writable["card"][made.nominated[waiting]] = made.nominated_card[waiting]
        writable["card"][bound] = made.bound_card[starting]
    writable["nominated"][bound] = NONE
    groups = _admitting(_settled(snapshot, writable, np.concatenate([ending, spared, bound]), made.at), made.admitted)
    changed = np.concatenate([ending, spared, made.nominated[waiting], bound])
    return _next(snapshot, 1, changed, tasks=writable.done(), podgroups=groups, **own)


def _admitting(groups: Podgroups, rows: Rows) -> Podgroups:
    return replace(groups, phase=with_rows(groups.phase, rows, PHASE_INQUEUE)) if len(rows) else groups


def _meant(tasks: Tasks, rows: Rows, incarnation: Longs, *statuses: int) -> Bools:
    """Which of ``rows`` are still in the given life and in one of ``statuses``."""
    if len(rows) == 0:
        return np.zeros(0, bool)
    same = (incarnation == CURRENT) | (tasks.incarnation[rows] == incarnation)
    return np.asarray(same & is_among(tasks.status[rows], statuses))
