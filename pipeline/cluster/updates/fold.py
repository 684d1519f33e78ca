"""``fold``: the only way in which state changes. The same news, however batched or repeated, gives the same state.

News is folded one after the other, so that the history of a podgroup does not depend on how messages were cut into
batches. That is a loop with a few cache misses for each message; it is compiled.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, NONE, Bools, Bytes, Counts, Longs, Rows, with_rows
from pipeline.cluster.rules.minimum import Have, minima_of
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import BOUND, GONE, PENDING, PHASE_INQUEUE, RUNNING, TERMINATING, Podgroups, Tasks
from pipeline.cluster.updates import renumber as epoch
from pipeline.cluster.updates.append import grown
from pipeline.cluster.updates.copy_on_write import Draft
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
from pipeline.cluster.updates.gang_history import counts, ready_now, recount, runs, settle, settle_all
from pipeline.errors import StateRefused
from pipeline.kernels import kernel

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
    if changes.growth is not None:
        snapshot = grown(snapshot, changes.growth)
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


@kernel
def _fold_tasks(news: Columns, tasks: Columns, groups: Columns, tally: Columns, history: Columns) -> int:
    """Fold news into the columns of ``tasks``, ``tally`` and ``history`` in place; returns how many counted."""
    row, said, place, on, life, revision, at = news
    podgroup, role, leaf, gone_when_evicted, status, node, nominated, card, incarnation, known = tasks
    minima, alive = groups
    have, running = tally
    counted, carded = 0, len(card) > 0  # where no node has cards, the column does not change
    for k in range(len(row)):
        task, group, new = row[k], podgroup[row[k]], said[k]
        if revision[k] <= known[task] or not alive[group]:
            continue
        counted += 1
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
        if new == TERMINATING and place[k] == NONE and (was == PENDING or was > TERMINATING):
            new = GONE  # it was told to end before it held anything
        if was == TERMINATING and runs(new) and lives == current:
            new = TERMINATING  # told to end, and the news was sent before the fleet knew
        moves = was == TERMINATING and nominated[task] != NONE  # it keeps its promise until it waits again
        keeps = lives == current and (new == PENDING or (new == TERMINATING and moves))
        if not keeps and not (new == PENDING and moves):
            nominated[task] = NONE
        if new == PENDING:
            node[task] = NONE
        elif place[k] != NONE:
            node[task] = place[k]
            if carded:
                card[task] = on[k]
        if carded and node[task] == NONE and nominated[task] == NONE:
            card[task] = NONE
        incarnation[task] = lives
        status[task] = new
        recount(have, group, role[task], leaf[task], counts(new) - counts(was))
        running[group] += runs(new) - runs(was)
        settle(group, at[k], minima, have, running, history)
    return counted


def _with_task_news(snapshot: Snapshot, news: TaskNews) -> Snapshot:
    tasks = snapshot.tasks
    _within(news.row, len(tasks), "task")
    _within(news.node[news.node != NONE], len(snapshot.nodes), "node")
    _within(news.card[news.card != NONE], snapshot.nodes.cards.shape[1], "card")
    placeless = np.isin(news.status, (BOUND, RUNNING)) & (news.node == NONE)
    if placeless.any():
        raise StateRefused(f"expected a node for every started task, found none for row {news.row[placeless][0]}")
    if not (news.revision > tasks.revision[news.row]).any():
        return snapshot
    draft, groups = Draft(tasks), Draft(snapshot.podgroups)
    card = draft["card"] if snapshot.nodes.cards.shape[1] else np.zeros(0, np.int32)
    counted = _fold_tasks(
        (news.row, news.status, news.node, news.card, news.incarnation, news.revision, news.at),
        (
            tasks.podgroup, tasks.role, tasks.subgroup, tasks.gone_when_evicted,
            draft["status"], draft["node"], draft["nominated"], card, draft["incarnation"], draft["revision"],
        ),
        (snapshot.once(minima_of), snapshot.podgroups.alive),
        (ready_now(snapshot), snapshot.counts.running.copy()),
        _history(groups),
    )  # fmt: skip
    return _next(snapshot, int(counted), news.row, tasks=draft.done(), podgroups=groups.done())


def _history(groups: Draft[Podgroups]) -> tuple[Any, Any, Any]:
    return groups["phase"], groups["started"], groups["stale_since"]


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
    draft, rows = Draft(nodes), news.row[newer]
    draft["allocatable"][rows] = news.allocatable[newer]
    draft["schedulable"][rows] = news.schedulable[newer]
    draft["revision"][rows] = news.revision[newer]
    return _next(snapshot, len(newer), NO_ROWS, nodes=draft.done())


def _without_nodes(snapshot: Snapshot, left: Departures) -> Snapshot:
    """Nodes leave: their tasks are gone, and promises on them end."""
    _within(left.row, len(snapshot.nodes), "node")
    newer = left.revision > snapshot.nodes.revision[left.row]
    if not newer.any():
        return snapshot
    rows, gone = left.row[newer], np.zeros(len(snapshot.nodes) + 1, bool)  # the last one is what NONE indexes
    gone[rows] = True
    nodes, tasks = Draft(snapshot.nodes), Draft(snapshot.tasks)
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
    draft, tasks = Draft(groups), Draft(snapshot.tasks)
    draft["alive"][rows] = False
    draft["stale_since"][rows] = np.nan
    draft["revision"][rows] = removed.revision[newer]
    gone = np.flatnonzero(~draft["alive"][snapshot.tasks.podgroup] & (snapshot.tasks.status != GONE))
    tasks["status"][gone] = GONE
    tasks["card"][gone[tasks["nominated"][gone] != NONE]] = NONE
    tasks["nominated"][gone] = NONE
    return _next(snapshot, len(rows), gone, tasks=tasks.done(), podgroups=draft.done())


def _settled(snapshot: Snapshot, tasks: Draft[Tasks], rows: Rows, at: float) -> Podgroups:
    """Podgroups after the statuses of ``rows`` changed, all at one time."""
    known, have, running = snapshot.tasks, ready_now(snapshot), snapshot.counts.running.copy()
    _recount(
        rows, known.status[rows], tasks["status"][rows], (known.podgroup, known.role, known.subgroup), have, running
    )
    draft, owners = Draft(snapshot.podgroups), np.unique(known.podgroup[rows]).astype(np.int64)
    settle_all(owners, at, snapshot.once(minima_of), have, running, _history(draft))
    return draft.done()


@kernel
def _recount(rows: Rows, was: Bytes, new: Bytes, parts: Columns, have: Have, running: Counts) -> None:
    podgroup, role, leaf = parts
    for at in range(len(rows)):
        task = rows[at]
        recount(have, podgroup[task], role[task], leaf[task], counts(new[at]) - counts(was[at]))
        running[podgroup[task]] += runs(new[at]) - runs(was[at])


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
    if not any(map(len, (made.evicted, made.spared, made.nominated, made.bound))):  # no column of all tasks is copied
        return _next(snapshot, 1, NO_ROWS, decided=made.seq, podgroups=_admitting(snapshot.podgroups, made.admitted))
    here = np.asarray(nodes.allocatable.any(axis=1), bool)
    draft = Draft(tasks)
    ending = made.evicted[_meant(tasks, made.evicted, made.evicted_incarnation, BOUND, RUNNING)]
    spared = made.spared[_meant(tasks, made.spared, made.spared_incarnation, TERMINATING)]
    starting = _meant(tasks, made.bound, made.bound_incarnation, PENDING) & here[made.bound_node]
    waiting = _meant(tasks, made.nominated, made.nominated_incarnation, PENDING)
    moved = np.isin(made.nominated, ending) & (tasks.card[made.nominated] == NONE)  # a task has room for one card only
    waiting |= moved
    moving = _meant(tasks, made.nominated, made.nominated_incarnation, TERMINATING)
    waiting |= moving & (made.nominated_node == NONE) & (tasks.nominated[made.nominated] != NONE)
    waiting &= (made.nominated_node == NONE) | here[made.nominated_node]
    draft["status"][ending] = TERMINATING
    draft["status"][spared] = RUNNING
    draft["nominated"][spared] = NONE
    draft["nominated"][made.nominated[waiting]] = made.nominated_node[waiting]
    bound = made.bound[starting]
    draft["status"][bound] = BOUND
    draft["node"][bound] = made.bound_node[starting]
    if nodes.cards.shape[1]:
        draft["card"][made.nominated[waiting]] = made.nominated_card[waiting]
        draft["card"][bound] = made.bound_card[starting]
    draft["nominated"][bound] = NONE
    groups = _admitting(_settled(snapshot, draft, np.concatenate([ending, spared, bound]), made.at), made.admitted)
    changed = np.concatenate([ending, spared, made.nominated[waiting], bound])
    return _next(snapshot, 1, changed, decided=made.seq, tasks=draft.done(), podgroups=groups)


def _admitting(groups: Podgroups, rows: Rows) -> Podgroups:
    return replace(groups, phase=with_rows(groups.phase, rows, PHASE_INQUEUE)) if len(rows) else groups


def _meant(tasks: Tasks, rows: Rows, incarnation: Longs, *statuses: int) -> Bools:
    """Which of ``rows`` are still in the given life and in one of ``statuses``."""
    same = (incarnation == CURRENT) | (tasks.incarnation[rows] == incarnation)
    return np.asarray(same & np.isin(tasks.status[rows], statuses))
