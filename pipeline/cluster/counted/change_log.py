"""What a what-if changes: a log of tasks and totals, which grows with what is taken and is read in constant time.

An entry says how one owner (a task, a node, a podgroup, a queue, ...) differs from the snapshot once some changes are
made; an owner's later entries hold all that its earlier ones did. So the last entry of an owner is its answer, however
many changes there were. Nothing is ever overwritten: states that grew from one another share a log, each looks at the
first entries only, and finds an owner's last one among them by way of the later ones.
"""

from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Bytes, Counts, Ids, Longs, Rows
from pipeline.cluster.counted.counting import AMOUNTS, CARD_CLAIMS, CLAIMS, COUNTS, GATED, PROMISED, card_shares, shares
from pipeline.cluster.tables import BOUND, PENDING, TERMINATING
from pipeline.kernels import inlined, kernel

#: Kinds of owners; a key is ``row << _KIND_BITS | kind``.
TASK, NODE, CARD_OF_NODE, PODGROUP, ROLE, SUBGROUP, QUEUE = range(7)
_KIND_BITS = 3
#: Columns of an entry: its owner, the owner's entry before it (NONE: none), and what it says.
_KEY, _EARLIER, FIRST = range(3)
#: What a task's entry says, from FIRST on. A node's are its claims, one resource after the other; a card's its claims.
STATUS, TASK_NODE, NOMINATED, CARD = range(FIRST, FIRST + 4)
#: A podgroup's, role's or subgroup's entry begins with its counts; the sums of a podgroup or queue come behind them.
READY_OFF, _, WAITING_OFF, _, BEST_EFFORT_OFF = range(FIRST, FIRST + len(COUNTS))
SUMS = FIRST + len(COUNTS)
_KEYS, _LAST = 0, 1
#: Gated tasks only wait: no question after an eviction needs them.
_SUMS = tuple(share for share in AMOUNTS if share != GATED)
HELD, REQUESTED = 2, 3
#: Entries that one change makes at most: its task, two nodes it leaves and two it goes to, a card of each, its owners.
_ENTRIES_A_CHANGE = 13
EVICT, NOMINATE, BIND = range(3)


class TaskColumns(NamedTuple):
    """Columns of all tasks, the queue of each podgroup, and what each shape asks of a node and of one card."""

    status: Bytes
    node: Ids
    nominated: Ids
    card: Ids
    shape: Ids
    podgroup: Ids
    role: Ids
    subgroup: Ids
    best_effort: Bools
    queue: Ids
    request: Longs
    on_card: Longs


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
    return Log(
        np.empty((2, 0), np.int64), np.empty((0, SUMS + len(_SUMS) * resources), np.int64), np.zeros(1, np.int64)
    )


def writable(log: Log, count: int, changes: int) -> Log:
    """The log if its first ``count`` entries are all and it has room for some changes more; else a copy of those."""
    most = count + changes * _ENTRIES_A_CHANGE
    if log.used[0] == count and most <= len(log.entries):
        return log
    room = 64
    while room < most:
        room *= 2
    entries = np.empty((room, log.entries.shape[1]), np.int64)
    entries[:count] = log.entries[:count]
    heads = np.empty((2, 2 * room), np.int64)
    heads[_KEYS] = NONE
    _refill(heads, entries, count)
    return Log(heads, entries, np.array([count]))


@kernel
def _refill(heads: Longs, entries: Longs, count: int) -> None:
    for entry in range(count):
        at = _place(heads, entries[entry, _KEY])
        heads[_KEYS, at], heads[_LAST, at] = entries[entry, _KEY], entry


@inlined
def _place(heads: Longs, key: int) -> int:
    """Where in the hash table a key is, or would be."""
    mask = heads.shape[1] - 1
    at = ((key ^ (key >> 11)) * 40503) & mask
    while heads[_KEYS, at] != key and heads[_KEYS, at] != NONE:
        at = (at + 1) & mask
    return int(at)


@inlined
def last_entry(heads: Longs, entries: Longs, count: int, kind: int, row: int) -> int:
    """The last of the first ``count`` entries of an owner, NONE if it has none: it is as the snapshot has it."""
    if count == 0:
        return NONE
    key = (row << _KIND_BITS) | kind
    at = _place(heads, key)
    entry = heads[_LAST, at] if heads[_KEYS, at] == key else NONE
    while entry >= count:
        entry = entries[entry, _EARLIER]
    return entry


@kernel
def _writing(heads: Longs, entries: Longs, used: Longs, first: int, kind: int, row: int) -> int:
    """The entry of an owner to write on: one made since ``first``, else a new one that begins as its last."""
    key = (row << _KIND_BITS) | kind
    at = _place(heads, key)
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


@kernel
def note(
    heads: Longs, entries: Longs, used: Longs, kind: int, rows: Rows, nodes: Rows, cards: Rows, columns: TaskColumns
) -> int:
    """Write down what becomes of tasks and of the totals that they count for; returns how many entries there are."""
    status, node, nominated, card, shape, podgroup, role, subgroup, best_effort, queue, request, on_card = columns
    first = used[0]
    for at in range(len(rows)):
        row = rows[at]
        fresh = used[0]
        task = entries[_writing(heads, entries, used, first, TASK, row)]
        if task[_EARLIER] == NONE and used[0] > fresh:
            task[STATUS], task[TASK_NODE], task[NOMINATED], task[CARD] = (
                status[row],
                node[row],
                nominated[row],
                card[row],
            )
        held, promised, on = task[TASK_NODE], task[NOMINATED], task[CARD]
        before = card_shares(shares(task[STATUS], promised, False, best_effort[row]), on)
        _become(task, kind, nodes[at], cards[at])
        after = card_shares(shares(task[STATUS], task[NOMINATED], False, best_effort[row]), task[CARD])
        asks, part = request[shape[row]], on_card[shape[row]]
        _claim(heads, entries, used, first, before, -1, held, promised, on, asks, part)
        _claim(heads, entries, used, first, after, 1, task[TASK_NODE], task[NOMINATED], task[CARD], asks, part)
        group = podgroup[row]
        mine = _writing(heads, entries, used, first, PODGROUP, group)
        _count(entries[mine], before, after)
        _add_up(entries[mine], before, after, asks)
        if role[row] != NONE:
            _count(entries[_writing(heads, entries, used, first, ROLE, role[row])], before, after)
        if subgroup[row] != NONE:
            _count(entries[_writing(heads, entries, used, first, SUBGROUP, subgroup[row])], before, after)
        _add_up(entries[_writing(heads, entries, used, first, QUEUE, queue[group])], before, after, asks)
    return int(used[0])


@inlined
def _become(task: Longs, kind: int, node: int, card: int) -> None:
    """A task's entry after a change of some kind."""
    if kind == EVICT:
        task[STATUS] = TERMINATING
        return
    if task[STATUS] == PENDING:  # a task that moves has its card where it leaves
        task[CARD] = card
    task[NOMINATED] = node
    if kind == BIND:
        task[STATUS], task[TASK_NODE], task[NOMINATED] = BOUND, node, NONE


@kernel
def _claim(
    heads: Longs, entries: Longs, used: Longs, first: int,
    shares: int, sign: int, held: int, promised: int, on: int, asks: Longs, part: int,
) -> None:  # fmt: skip
    """Count a task that asks for ``asks``, and for ``part`` of a card, in or out of the places that it claims."""
    for claim in range(len(CLAIMS)):
        place = promised if CLAIMS[claim] == PROMISED else held
        if shares & CLAIMS[claim]:
            of_node = _writing(heads, entries, used, first, NODE, place)
            for r in range(len(asks)):
                entries[of_node, FIRST + claim * len(asks) + r] += sign * asks[r]
        if shares & CARD_CLAIMS[claim]:
            entries[_writing(heads, entries, used, first, CARD_OF_NODE, card_row(place, on)), FIRST + claim] += (
                sign * part
            )


@inlined
def _count(owner: Longs, before: int, after: int) -> None:
    for at in range(len(COUNTS)):
        owner[FIRST + at] += int((after & COUNTS[at]) != 0) - int((before & COUNTS[at]) != 0)


@inlined
def _add_up(owner: Longs, before: int, after: int, asks: Longs) -> None:
    for at in range(len(_SUMS)):
        sign = int((after & _SUMS[at]) != 0) - int((before & _SUMS[at]) != 0)
        if sign != 0:
            for r in range(len(asks)):
                owner[SUMS + at * len(asks) + r] += sign * asks[r]


@inlined
def card_row(node: int, card: int) -> int:
    """A card of a node as the row of an owner."""
    return (node << 16) | card


# -- answers -----------------------------------------------------------------------------------------------------------


def changed_tasks(entries: Longs) -> Rows:
    """int64[K]: the tasks that entries are about, each once, ascending."""
    keys = entries[:, _KEY]
    return np.unique(keys[keys & ((1 << _KIND_BITS) - 1) == TASK] >> _KIND_BITS)


@kernel
def overwrite(heads: Longs, entries: Longs, count: int, field: int, rows: Rows, values: Ids) -> None:
    """What has become of some tasks, written over what the snapshot says."""
    for at in range(len(rows)):
        entry = last_entry(heads, entries, count, TASK, rows[at])
        if entry != NONE:
            values[at] = entries[entry, field]


@kernel
def rooms(
    heads: Longs,
    entries: Longs,
    count: int,
    nodes: Rows,
    whole: Longs,
    used: Longs,
    terminating: Longs,
    nominated: Longs,
) -> tuple[Longs, Longs, Longs]:
    """What is idle, terminating and nominated of some nodes."""
    many, resources = len(nodes), whole.shape[1]
    idle, ends, promised = np.empty((3, many, resources), np.int64)
    for at in range(many):
        entry = last_entry(heads, entries, count, NODE, nodes[at])
        for r in range(resources):
            idle[at, r] = whole[nodes[at], r] - used[nodes[at], r]
            ends[at, r], promised[at, r] = terminating[nodes[at], r], nominated[nodes[at], r]
            if entry != NONE:
                idle[at, r] -= entries[entry, FIRST + r]
                ends[at, r] += entries[entry, FIRST + resources + r]
                promised[at, r] += entries[entry, FIRST + 2 * resources + r]
    return idle, ends, promised


@kernel
def card_rooms(
    heads: Longs,
    entries: Longs,
    count: int,
    nodes: Rows,
    whole: Longs,
    used: Longs,
    terminating: Longs,
    nominated: Longs,
) -> tuple[Longs, Longs, Longs]:
    """The same of the cards of some nodes."""
    many, cards = len(nodes), whole.shape[1]
    idle, ends, promised = np.empty((3, many, cards), np.int64)
    for at in range(many):
        for card in range(cards):
            entry = last_entry(heads, entries, count, CARD_OF_NODE, card_row(nodes[at], card))
            idle[at, card] = whole[nodes[at], card] - used[nodes[at], card]
            ends[at, card], promised[at, card] = terminating[nodes[at], card], nominated[nodes[at], card]
            if entry != NONE:
                idle[at, card] -= entries[entry, FIRST]
                ends[at, card] += entries[entry, FIRST + 1]
                promised[at, card] += entries[entry, FIRST + 2]
    return idle, ends, promised


@kernel
def counts_off(heads: Longs, entries: Longs, count: int, kind: int, owners: Rows | Ids) -> Counts:
    """int32[5, M]: by how much the counts of some podgroups, roles or subgroups differ, in the order of ``COUNTS``."""
    result = np.zeros((len(COUNTS), len(owners)), np.int32)
    for at in range(len(owners)):
        entry = last_entry(heads, entries, count, kind, owners[at])
        if entry != NONE:
            for of in range(len(COUNTS)):
                result[of, at] = entries[entry, FIRST + of]
    return result


@kernel
def ready_now(heads: Longs, entries: Longs, count: int, podgroups: Rows | Ids, known: Counts) -> Counts:
    """int32[M]: how many tasks of some podgroups are ready; ``known`` (int32[G]) were before."""
    result = np.empty(len(podgroups), np.int32)
    for at in range(len(podgroups)):
        entry = last_entry(heads, entries, count, PODGROUP, podgroups[at])
        result[at] = known[podgroups[at]] + (0 if entry == NONE else entries[entry, READY_OFF])
    return result


@kernel
def sums_of_podgroups(
    heads: Longs, entries: Longs, count: int, podgroups: Rows | Ids, known: Longs, kinds: int
) -> Longs:
    """int64[M, R]: ``known`` of some podgroups with the changes of the first kinds of sums."""
    result = known.copy()
    for at in range(len(podgroups)):
        _sum(entries, last_entry(heads, entries, count, PODGROUP, podgroups[at]), kinds, result[at])
    return result


@kernel
def sums_of_queues(heads: Longs, entries: Longs, count: int, known: Longs, kinds: int) -> Longs:
    """int64[Q, R]: the same of all queues."""
    result = known.copy()
    for queue in range(len(known)):
        _sum(entries, last_entry(heads, entries, count, QUEUE, queue), kinds, result[queue])
    return result


@inlined
def _sum(entries: Longs, entry: int, kinds: int, total: Longs) -> None:
    if entry != NONE:
        for kind in range(kinds):
            for r in range(len(total)):
                total[r] += entries[entry, SUMS + kind * len(total) + r]
