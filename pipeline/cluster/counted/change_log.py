"""What a what-if changes: a log of tasks and totals, which grows with what is taken and is read in constant time.

An entry says how one owner (a task, a node, a podgroup, a queue, ...) differs from the snapshot once some changes are
made; an owner's later entries hold all that its earlier ones did. So the last entry of an owner is its answer, however
many changes there were. Nothing is ever overwritten: states that grew from one another share a log, each looks at the
first entries only, and finds an owner's last one among them by way of the later ones.
"""

from typing import Any, NamedTuple, TypeAlias

import numpy as np

from pipeline.cluster.arrays import NONE, Counts, Ids, Longs, Rows, distinct
from pipeline.cluster.counted.counting import (
    BEST_EFFORT,
    PENDS,
    PROMISED,
    READY,
    RUNS,
    TaskColumns,
    shares,
)
from pipeline.cluster.tables import BOUND, TERMINATING
from pipeline.kernels import inlined, linked, writing

#: Kinds of owners; a key is ``row << _KIND_BITS | kind``.
TASK, PODGROUP, ROLE, SUBGROUP, QUEUE = range(5)
_KIND_BITS = 3
#: Columns of an entry: its owner, the owner's entry before it (NONE: none), and what it says.
_KEY, _EARLIER, FIRST = range(3)
#: What a task's entry says, from FIRST on.
STATUS, TASK_NODE, NOMINATED, CARD, NOMINATED_CARD = range(FIRST, FIRST + 5)
#: What a podgroup's, role's or subgroup's entry says of its counts; sums of resources come behind them, as for queues.
_COUNTS = READY, PROMISED, BEST_EFFORT
READY_OFF, WAITING_OFF, BEST_EFFORT_OFF = range(FIRST, FIRST + len(_COUNTS))
HELD_OFF = FIRST + len(_COUNTS)
#: The sums: what tasks hold or are promised, and that with what they wait for (gated or not).
_SUMS = RUNS | PROMISED, RUNS | PROMISED | PENDS
_KEYS, _LAST = 0, 1
#: Entries that one change makes at most: its task and the four owners of that.
_ENTRIES_A_CHANGE = 5
EVICT, NOMINATE, BIND = range(3)


#: A record's columns as a plain tuple: a kernel takes it in half the time that it takes to check a record, and names
#: them itself. They differ in type, which no plain tuple says.
Plain: TypeAlias = tuple[Any, ...]


class Log(NamedTuple):
    """A log that several states may share.

    Attributes
    ----------
    heads: int64[2, H]
        A hash table: keys of owners (NONE: free), and the last entry of each. H is a power of two.
    entries: int64[E, W]
        As described above; those from ``used[0]`` on are free.
    used: int64[1]
    """

    heads: Longs
    entries: Longs
    used: Longs


def empty_log(resources: int) -> Log:
    """A log without entries, and without room for any."""
    width = max(HELD_OFF + len(_SUMS) * resources, NOMINATED_CARD + 1)
    return Log(np.empty((2, 0), np.int64), np.empty((0, width), np.int64), np.zeros(1, np.int64))


def copied_log(log: Log, count: int, changes: int) -> Log:
    """A copy of the first ``count`` entries, with room for ``changes`` more changes."""
    room = 64
    while room < count + changes * _ENTRIES_A_CHANGE:
        room *= 2
    entries = np.empty((room, log.entries.shape[1]), np.int64)
    entries[:count] = log.entries[:count]
    heads = np.empty((2, 2 * room), np.int64)
    heads[_KEYS] = NONE
    _refill(heads, entries, count)
    return Log(heads, entries, np.array([count]))


@writing("heads")
def _refill(heads: Longs, entries: Longs, count: int) -> None:
    for entry in range(count):
        at = place_in(heads, entries[entry, _KEY])
        heads[_KEYS, at], heads[_LAST, at] = entries[entry, _KEY], entry


@inlined
def place_in(heads: Longs, key: int) -> int:
    """Where in the hash table a key is, or would be."""
    mask = heads.shape[1] - 1
    at = ((key ^ (key >> 11)) * 40503) & mask
    while heads[_KEYS, at] != key and heads[_KEYS, at] != NONE:
        at = (at + 1) & mask
    return int(at)


@inlined
def last_entry(heads: Longs, entries: Longs, count: int, kind: int, row: int) -> int:
    """An owner's last entry among the first ``count``; NONE: it has none, so it is as the snapshot has it."""
    if count == 0:
        return NONE
    key = (row << _KIND_BITS) | kind
    at = place_in(heads, key)
    entry = heads[_LAST, at] if heads[_KEYS, at] == key else NONE
    while entry >= count:
        entry = entries[entry, _EARLIER]
    return entry


@linked
def _writing(log: Log, first: int, kind: int, row: int) -> int:
    """The entry of an owner to write on: one made since ``first``, else a new one that begins as its last."""
    (heads, entries, used), key = log, (row << _KIND_BITS) | kind
    at = place_in(heads, key)
    last = heads[_LAST, at] if heads[_KEYS, at] == key else NONE
    if last >= first:
        return int(last)
    entry = used[0]
    used[0] = entry + 1
    for column in range(entries.shape[1]):
        entries[entry, column] = 0 if last == NONE else entries[last, column]
    entries[entry, _KEY], entries[entry, _EARLIER] = key, last
    heads[_KEYS, at], heads[_LAST, at] = key, entry
    return int(entry)


@writing("heads", "entries", "used")
def note(
    heads: Longs, entries: Longs, used: Longs, count: int,
    kind: int, rows: Rows, nodes: Rows, cards: Rows, plain: Plain,
) -> int:  # fmt: skip
    """Write down what becomes of tasks and of the totals that they count for; returns how many entries there are.

    NONE, and nothing is written, unless the first ``count`` entries are all and there is room for these changes.
    ``plain`` are ``TaskColumns``.
    """
    log, columns, first = Log(heads, entries, used), TaskColumns(*plain), used[0]
    if first != count or count + len(rows) * _ENTRIES_A_CHANGE > len(entries):
        return NONE
    for at in range(len(rows)):
        row = rows[at]
        fresh = used[0]
        task = entries[_writing(log, first, TASK, row)]
        if task[_EARLIER] == NONE and used[0] > fresh:
            task[STATUS], task[TASK_NODE] = columns.status[row], columns.node[row]
            task[NOMINATED] = columns.nominated[row]
            task[CARD], task[NOMINATED_CARD] = columns.card[row], columns.nominated_card[row]
        best_effort, asks, group = columns.best_effort[row], columns.request[columns.shape[row]], columns.podgroup[row]
        before = shares(task[STATUS], task[NOMINATED], False, best_effort)
        _become(task, kind, nodes[at], cards[at])
        after = shares(task[STATUS], task[NOMINATED], False, best_effort)
        mine = _writing(log, first, PODGROUP, group)
        _count(entries[mine], before, after)
        _add_up(entries[mine], before, after, asks)
        if columns.role[row] != NONE:
            _count(entries[_writing(log, first, ROLE, columns.role[row])], before, after)
        if columns.subgroup[row] != NONE:
            _count(entries[_writing(log, first, SUBGROUP, columns.subgroup[row])], before, after)
        _add_up(entries[_writing(log, first, QUEUE, columns.queue[group])], before, after, asks)
    return int(used[0])


@inlined
def _become(task: Longs, kind: int, node: int, card: int) -> None:
    """A task's entry after a change of some kind."""
    if kind == EVICT:
        task[STATUS] = TERMINATING
        return
    if kind == NOMINATE:
        task[NOMINATED], task[NOMINATED_CARD] = node, card
    else:
        task[STATUS], task[TASK_NODE], task[CARD] = BOUND, node, card
        task[NOMINATED] = task[NOMINATED_CARD] = NONE


@inlined
def _count(owner: Longs, before: int, after: int) -> None:
    for at in range(len(_COUNTS)):
        owner[FIRST + at] += int((after & _COUNTS[at]) != 0) - int((before & _COUNTS[at]) != 0)


@inlined
def _add_up(owner: Longs, before: int, after: int, asks: Longs) -> None:
    for at in range(len(_SUMS)):
        sign = int((after & _SUMS[at]) != 0) - int((before & _SUMS[at]) != 0)
        if sign != 0:
            for r in range(len(asks)):
                owner[HELD_OFF + at * len(asks) + r] += sign * asks[r]


# -- answers -----------------------------------------------------------------------------------------------------------


def changed_tasks(entries: Longs) -> Rows:
    """int64[K]: rows of the tasks that the entries are about, each once, ascending."""
    keys = entries[:, _KEY]
    return distinct(keys[keys & ((1 << _KIND_BITS) - 1) == TASK] >> _KIND_BITS)


@writing("values")
def overwrite(heads: Longs, entries: Longs, count: int, field: int, rows: Rows, values: Ids) -> None:
    """Write the changes of the tasks ``rows`` int64[K] over ``values`` int32[K], which hold what the snapshot says."""
    for at in range(len(rows)):
        entry = last_entry(heads, entries, count, TASK, rows[at])
        if entry != NONE:
            values[at] = entries[entry, field]


@writing("values")
def correct(
    heads: Longs, entries: Longs, count: int, kind: int, rows: Rows | Ids, first: int, values: Longs | Counts
) -> None:
    """Add to what the snapshot says of some owners, ``values`` int[M, A], what their entries say from ``first`` on."""
    for at in range(len(rows)):
        entry = last_entry(heads, entries, count, kind, rows[at])
        if entry != NONE:
            for a in range(values.shape[1]):
                values[at, a] += entries[entry, first + a]
