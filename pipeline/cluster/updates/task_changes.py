"""What becomes of some tasks by news, or by one of our own decisions: worked out on a copy of the rows concerned.

They are read from all over memory once, and side by side after that.
"""

from collections.abc import Callable
from operator import attrgetter
from typing import NamedTuple, TypeAlias

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Floats, Ids, Longs, Rows
from pipeline.cluster.counted.change_log import place_in
from pipeline.cluster.counted.counting import counted_more, runs
from pipeline.cluster.tables import BOUND, GONE, PENDING, RUNNING, TERMINATING, Tasks
from pipeline.cluster.updates.copy_on_write import WritableTable
from pipeline.cluster.updates.events import CURRENT, EVICTED, REPLACED, Decided, TaskNews
from pipeline.cluster.updates.gang_history import Columns
from pipeline.kernels import inlined, kernel, linked

#: Columns of ``Tasks``: what a task is for good, then what may change. No total and no index follows from the last two.
_COLUMNS = (
    "podgroup", "role", "subgroup", "gone_when_evicted",
    "status", "node", "card", "nominated", "nominated_card", "incarnation", "revision",
)  # fmt: skip
_PODGROUP, _ROLE, _SUBGROUP, _GONE, _STATUS, _NODE, _CARD, _NOMINATED, _NOMINATED_CARD, _INCARNATION, _REVISION = range(
    len(_COLUMNS)
)
_columns_of: Callable[[Tasks], Columns] = attrgetter(*_COLUMNS)
#: The fields of ``Became``.
Outcome: TypeAlias = tuple[Rows, Longs, Bools, Rows, Longs, Floats]


class Became(NamedTuple):
    """What became of tasks.

    Attributes
    ----------
    rows: int64[K]
        The tasks, each once.
    columns: int64[11, K]
        What they are now: their columns of ``_COLUMNS``.
    differs: bool[11]
        In which columns any of them changed.
    recounted: int64[M]
        Those that count otherwise now, ascending. One that starts over where it was is in the same place of the index.
    counted: int64[L, 5]; at: float64[L]
        For ``gang_history.with_gang_history``: each message that counted, or each task whose status a decision changed.
    """

    rows: Rows
    columns: Longs
    differs: Bools
    recounted: Rows
    counted: Longs
    at: Floats

    def written(self, tasks: Tasks) -> Tasks:
        """The table with these changes. A column in which nothing changed stays the same array."""
        changed, writable = self.differs.nonzero()[0].tolist(), WritableTable(tasks)
        for column in changed:
            writable[_COLUMNS[column]][self.rows] = self.columns[column]
        return writable.done() if changed else tasks


def by_news(tasks: Tasks, news: TaskNews, alive: Bools) -> Became:
    """What becomes of tasks by news; ``alive`` bool[G] are the podgroups that are still there."""
    said = news.row, news.status, news.node, news.card, news.incarnation, news.revision, news.at
    return Became(*_by_news(said, _columns_of(tasks), alive))


def by_decision(tasks: Tasks, made: Decided, allocatable: Longs, *, carded: bool) -> Became:
    """What becomes of tasks by a decision, on nodes with ``allocatable`` int64[N, R]; ``carded``: some have cards."""
    parts = made.evicted, made.spared, made.nominated, made.bound
    lives = made.evicted_incarnation, made.spared_incarnation, made.nominated_incarnation, made.bound_incarnation
    decided = *map(len, parts), np.concatenate(parts), np.concatenate(lives)
    nodes = np.concatenate((made.nominated_node, made.bound_node))
    cards = np.concatenate((made.nominated_card, made.bound_card))
    return Became(*_by_decision(decided, nodes, cards, made.at, _columns_of(tasks), allocatable, carded))


def once_gone(tasks: Tasks, rows: Rows) -> Longs:
    """int64[K, 5]: what ``gang_history.with_gang_history`` counts of tasks that are gone."""
    return _once_gone(_columns_of(tasks), rows)


@kernel
def _by_news(news: Columns, columns: Columns, alive: Bools) -> Outcome:
    """Fold news into a copy of the tasks that it is about, one message after the other.

    ``docs/states.md`` has it as a table: what each task event makes of each status.
    """
    row, said, target, on, life, revision, times = news
    rows, place = _each_once(row)
    before = _taken(columns, rows)
    after, counted, heard, many = before.copy(), np.empty((len(row), 5), np.int64), np.empty(len(row), np.float64), 0
    podgroup, gone_when_evicted, status, node = after[_PODGROUP], after[_GONE], after[_STATUS], after[_NODE]
    card, nominated, nominated_card = after[_CARD], after[_NOMINATED], after[_NOMINATED_CARD]
    incarnation, known = after[_INCARNATION], after[_REVISION]
    for k in range(len(row)):
        task = place[k]
        if revision[k] <= known[task] or not alive[podgroup[task]]:
            continue
        known[task] = revision[k]
        current, was = incarnation[task], status[task]
        mine, heard[many] = counted[many], times[k]
        many += 1
        if life[k] != CURRENT and life[k] < current:
            _count(mine, before, task, was, was)
            continue  # a life that is over stays over
        new, lives = _next_status(was, said[k], current, life[k], target[k], gone_when_evicted[task])
        moves = was == TERMINATING and nominated[task] != NONE  # it keeps its promise until it waits again
        keeps = lives == current and (new == PENDING or (new == TERMINATING and moves))
        if not keeps and not (new == PENDING and moves):
            nominated[task] = nominated_card[task] = NONE
        if new == PENDING:
            node[task] = card[task] = NONE
        elif target[k] != NONE:
            node[task], card[task] = target[k], on[k]
        incarnation[task] = lives
        status[task] = new
        _count(mine, before, task, was, new)
    return _outcome(rows, before, after, counted[:many].copy(), heard[:many].copy())


@inlined
def _next_status(was: int, said: int, current: int, life: int, target: int, gone_when_evicted: bool) -> tuple[int, int]:
    """Status and life of a task that was ``was`` in the life ``current``, after news of this or a later life."""
    new, lives = said, current if life == CURRENT else life
    if new == EVICTED:
        new = GONE if gone_when_evicted else REPLACED
    if new == REPLACED or (new == PENDING and life == CURRENT and was != PENDING):
        return PENDING, lives + 1
    if new == TERMINATING and target == NONE and (was == PENDING or was > TERMINATING):
        return GONE, lives  # it was told to end before it held anything
    if was == TERMINATING and runs(new) and lives == current:
        return TERMINATING, lives  # told to end, and the news was sent before the fleet knew
    return new, lives


@kernel
def _by_decision(
    decided: Columns, nodes: Ids, cards: Ids, at: float, columns: Columns, allocatable: Longs, carded: bool
) -> Outcome:  # fmt: skip
    """Carry out a decision on a copy of the tasks that it is about; what they were decides.

    ``decided``: how many tasks are told to end, are not any more, are promised a node (NONE: no more), and start; their
    rows one after the other (int64[K]) and the life that is meant of each (int64[K]). ``nodes`` and ``cards`` are those
    of the tasks that are promised one or start.
    """
    evicted, spared, promised, _, row, life = decided
    rows, place = _each_once(row)
    before, ends = _taken(columns, rows), np.zeros(len(rows), np.bool_)
    after = before.copy()
    status, node, card = after[_STATUS], after[_NODE], after[_CARD]
    nominated, nominated_card = after[_NOMINATED], after[_NOMINATED_CARD]
    counted = np.empty((len(rows), 5), np.int64)
    for k in range(len(row)):
        task, to = place[k], k - evicted - spared
        was, same = before[_STATUS, task], life[k] == CURRENT or life[k] == before[_INCARNATION, task]
        if k < evicted:
            ends[task] |= same and (runs(was) or was == TERMINATING)
            if ends[task]:
                status[task] = TERMINATING
        elif to < 0:
            if same and was == TERMINATING:
                status[task], nominated[task], nominated_card[task] = RUNNING, NONE, NONE
        elif nodes[to] != NONE and not allocatable[nodes[to]].any():
            continue
        elif to < promised:
            # A task that was ending already moves as well: it starts again where this decision promises it room.
            ended = was == TERMINATING and nodes[to] == NONE and before[_NOMINATED, task] != NONE
            if ends[task] or (same and (was == PENDING or ended)):
                nominated[task], nominated_card[task] = nodes[to], cards[to] if carded else NONE
        elif same and was == PENDING:
            status[task], node[task], card[task] = BOUND, nodes[to], cards[to] if carded else NONE
            nominated[task] = nominated_card[task] = NONE
    for task in range(len(rows)):
        _count(counted[task], before, task, before[_STATUS, task], status[task])
    counted = counted[before[_STATUS] != status]
    return _outcome(rows, before, after, counted, np.full(len(counted), at))


@kernel
def _once_gone(columns: Columns, rows: Rows) -> Longs:
    before, counted = _taken(columns, rows), np.empty((len(rows), 5), np.int64)
    for task in range(len(rows)):
        _count(counted[task], before, task, before[_STATUS, task], GONE)
    return counted


@linked
def _each_once(rows: Rows) -> tuple[Rows, Rows]:
    """The different rows as they come (int64), and which of them each is (int64[K])."""
    size = 64
    while size < 2 * len(rows):
        size *= 2
    table, kinds, kind, many = np.full((2, size), NONE), np.empty(len(rows), np.int64), np.empty(len(rows), np.int64), 0
    for k in range(len(rows)):
        at = place_in(table, rows[k])
        if table[0, at] == NONE:
            table[0, at], table[1, at], kinds[many] = rows[k], many, rows[k]
            many += 1
        kind[k] = table[1, at]
    return kinds[:many].copy(), kind


@linked
def _taken(columns: Columns, rows: Rows) -> Longs:
    """int64[11, K]: some rows of the columns."""
    podgroup, role, subgroup, gone, status, node, card, nominated, nominated_card, incarnation, revision = columns
    taken = np.empty((len(columns), len(rows)), np.int64)
    for at in range(len(rows)):
        row = rows[at]
        taken[_PODGROUP, at], taken[_ROLE, at], taken[_SUBGROUP, at] = podgroup[row], role[row], subgroup[row]
        taken[_GONE, at], taken[_STATUS, at] = gone[row], status[row]
        taken[_NODE, at], taken[_CARD, at] = node[row], card[row]
        taken[_NOMINATED, at], taken[_NOMINATED_CARD, at] = nominated[row], nominated_card[row]
        taken[_INCARNATION, at], taken[_REVISION, at] = incarnation[row], revision[row]
    return taken


@inlined
def _count(counted: Longs, tasks: Longs, task: int, was: int, new: int) -> None:
    counted[0], counted[1], counted[2] = tasks[_PODGROUP, task], tasks[_ROLE, task], tasks[_SUBGROUP, task]
    counted[3], counted[4] = counted_more(was, new)


@linked
def _outcome(rows: Rows, before: Longs, after: Longs, counted: Longs, at: Floats) -> Outcome:
    differs, counts = np.zeros(len(before), np.bool_), np.zeros(len(rows), np.bool_)
    for column in range(_STATUS, len(before)):
        was, now, other = before[column], after[column], False
        for task in range(len(rows)):
            other |= was[task] != now[task]
        differs[column] = other
        if other and column < _INCARNATION:
            for task in range(len(rows)):
                counts[task] |= was[task] != now[task]
    return rows, after, differs, np.sort(rows[counts]), counted, at
