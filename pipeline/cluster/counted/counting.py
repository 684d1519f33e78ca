"""Which totals a task counts for, and the kernel that adds tasks to totals or takes them out.

Compiled, because sums in int64 must be exact and NumPy's weighted ``bincount`` works in float64.
"""

from typing import Any, NamedTuple

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Bytes, Ids, Longs, Rows
from pipeline.cluster.tables import BOUND, PENDING, RUNNING, SUCCEEDED, TERMINATING
from pipeline.kernels import inlined, kernel, linked, writing

#: What a task counts for, as bits.
HOLDS, ENDS, PROMISED, RUNS, READY, PENDS, GATED, BEST_EFFORT, CARD_HELD, CARD_ENDS, CARD_PROMISED = (
    1 << bit for bit in range(11)
)
#: What each column of ``totals.Usage``, of a node or a card, of ``totals.TaskCounts`` and of ``totals.Sums`` counts.
CLAIMS, CARD_CLAIMS = (HOLDS, ENDS, PROMISED), (CARD_HELD, CARD_ENDS, CARD_PROMISED)
COUNTS = (READY, RUNS, PROMISED, PENDS, BEST_EFFORT)
AMOUNTS = (RUNS, PROMISED, PENDS, GATED)
#: The same for each table of the totals.
SHARES = {
    "nodes": CLAIMS,
    "cards": CARD_CLAIMS,
    "podgroups": COUNTS,
    "roles": COUNTS,
    "subgroups": COUNTS,
    "podgroup_sums": AMOUNTS,
    "queue_sums": AMOUNTS,
}
_TABLES = len(SHARES)
_NODES, _CARDS, _PODGROUPS, _ROLES, _SUBGROUPS, _PODGROUP_SUMS, _QUEUE_SUMS = range(_TABLES)


@linked
def runs(status: int) -> bool:
    """Whether an eviction can take the task: Bound or Running."""
    return (status == BOUND) | (status == RUNNING)


@linked
def counts_ready(status: int) -> bool:
    """Whether the task counts towards a minimum: Bound, Running or Succeeded."""
    return runs(status) | (status == SUCCEEDED)


@linked
def counted_more(was: int, new: int) -> tuple[int, int]:
    """By how much more a task counts as ready, and as running, once its status is another: -1, 0 or 1."""
    return int(counts_ready(new)) - int(counts_ready(was)), int(runs(new)) - int(runs(was))


@linked
def shares(status: int, nominated: int, gated: bool, best_effort: bool) -> int:
    """Which totals a task counts for, cards aside. This is the one definition of every total."""
    waits, ends = status == PENDING, status == TERMINATING
    result = 0
    if runs(status):
        result |= HOLDS | RUNS
    elif ends:
        result |= HOLDS | ENDS
    if counts_ready(status):
        result |= READY
    if (waits or ends) and nominated != NONE:
        result |= PROMISED
    elif waits:
        result |= PENDS
        if best_effort:
            result |= BEST_EFFORT
    if waits and gated:
        result |= GATED
    return result


@linked
def card_shares(shares: int, card: int, nominated_card: int) -> int:
    """The same with the cards that it holds and is promised. A task that moves may have both."""
    if shares & HOLDS and card != NONE:
        shares |= CARD_HELD | (CARD_ENDS if shares & ENDS else 0)
    if shares & PROMISED and nominated_card != NONE:
        shares |= CARD_PROMISED
    return shares


class TaskColumns(NamedTuple):
    """The columns that totals are counted from: of all tasks, the queue of each podgroup, and what each shape asks."""

    status: Bytes
    node: Ids
    nominated: Ids
    card: Ids
    nominated_card: Ids
    gated: Bools
    best_effort: Bools
    shape: Ids
    podgroup: Ids
    role: Ids
    subgroup: Ids
    queue: Ids
    request: Longs
    on_card: Longs


@kernel
def differing(rows: Rows, known: int, earlier: tuple[Any, ...], later: tuple[Any, ...], carded: bool) -> Longs:
    """int64[7]: in each table of the totals, in the order of ``SHARES``, what some tasks count for otherwise by now.

    Parameters
    ----------
    rows: int64[K]
        The tasks; those from ``known`` on are new.
    earlier, later
        ``TaskColumns``.
    carded
        Whether any node has cards.
    """
    before, after, result = TaskColumns(*earlier), TaskColumns(*later), np.zeros(_TABLES, np.int64)
    for task in rows:
        old, now = task < known, _counts_for(task, after, carded)
        was = _counts_for(task, before, carded) if old else 0
        asks = old and before.shape[task] == after.shape[task]
        holds = asks and before.node[task] == after.node[task]
        waits = asks and before.nominated[task] == after.nominated[task]
        group, queue = after.podgroup[task], before.queue[before.podgroup[task]] if old else NONE
        mine = old and before.podgroup[task] == group
        result[_NODES] |= (_otherwise(was, now, holds) & ~PROMISED) | (_otherwise(was, now, waits) & PROMISED)
        holds = holds and before.card[task] == after.card[task]
        waits = waits and before.nominated_card[task] == after.nominated_card[task]
        result[_CARDS] |= (_otherwise(was, now, holds) & ~CARD_PROMISED) | (_otherwise(was, now, waits) & CARD_PROMISED)
        result[_PODGROUPS] |= _otherwise(was, now, mine)
        if after.role[task] != NONE or (old and before.role[task] != NONE):
            result[_ROLES] |= _otherwise(was, now, old and before.role[task] == after.role[task])
        if after.subgroup[task] != NONE or (old and before.subgroup[task] != NONE):
            result[_SUBGROUPS] |= _otherwise(was, now, old and before.subgroup[task] == after.subgroup[task])
        result[_PODGROUP_SUMS] |= _otherwise(was, now, asks and mine)
        result[_QUEUE_SUMS] |= _otherwise(was, now, asks and queue == after.queue[group])
    return result


@inlined
def _counts_for(task: int, columns: TaskColumns, carded: bool) -> int:
    counts = shares(columns.status[task], columns.nominated[task], columns.gated[task], columns.best_effort[task])
    return card_shares(counts, columns.card[task], columns.nominated_card[task]) if carded else counts


@inlined
def _otherwise(was: int, now: int, alike: bool) -> int:
    """What a task counts for in one of two states only, or in either if it does not count for the same owner alike."""
    return was ^ now if alike else was | now


@writing("totals")
def recount(
    totals: tuple[Any, ...], which: Longs,
    rows: Rows, known: int, earlier: tuple[Any, ...], later: tuple[Any, ...], carded: bool,
) -> None:  # fmt: skip
    """Take tasks out of the totals as they were, unless they are new, and add them as they are.

    ``totals`` are the columns by table, changed in place, in the order of ``SHARES``; a column is left alone that
    ``which`` does not name. The other arguments are those of ``differing``.
    """
    for task in rows:
        if task < known:
            _add(totals, which, task, TaskColumns(*earlier), carded, -1)
        _add(totals, which, task, TaskColumns(*later), carded, 1)


@inlined
def _add(totals: tuple[Any, ...], which: Longs, task: int, columns: TaskColumns, carded: bool, sign: int) -> None:
    nodes, cards, podgroups, roles, subgroups, podgroup_sums, queue_sums = totals
    counts, group = _counts_for(task, columns, carded), columns.podgroup[task]
    asks, part = columns.request[columns.shape[task]], columns.on_card[columns.shape[task]]
    owners = columns.node[task], columns.node[task], columns.nominated[task]
    on = columns.card[task], columns.card[task], columns.nominated_card[task]
    for at in range(len(CLAIMS)):
        if owners[at] == NONE:
            continue
        if counts & which[_NODES] & CLAIMS[at]:
            _add_row(nodes[at][owners[at]], asks, sign)
        if counts & which[_CARDS] & CARD_CLAIMS[at]:
            cards[at][owners[at], on[at]] += sign * part
    for at in range(len(COUNTS)):
        if counts & which[_PODGROUPS] & COUNTS[at]:
            podgroups[at][group] += sign
        if counts & which[_ROLES] & COUNTS[at] and columns.role[task] != NONE:
            roles[at][columns.role[task]] += sign
        if counts & which[_SUBGROUPS] & COUNTS[at] and columns.subgroup[task] != NONE:
            subgroups[at][columns.subgroup[task]] += sign
    for at in range(len(AMOUNTS)):
        if counts & which[_PODGROUP_SUMS] & AMOUNTS[at]:
            _add_row(podgroup_sums[at][group], asks, sign)
        if counts & which[_QUEUE_SUMS] & AMOUNTS[at]:
            _add_row(queue_sums[at][columns.queue[group]], asks, sign)


@inlined
def _add_row(total: Longs, asks: Longs, sign: int) -> None:
    for resource in range(len(asks)):
        total[resource] += sign * asks[resource]


@writing("total")
def add_requests(total: Longs, at: Rows, shape: Ids, request: Longs, sign: int) -> None:
    """Add what tasks of shapes int32[K] ask for (``request`` int64[S, R]) to the rows ``at`` int64[K] of ``total``.

    NumPy's ``add.at`` takes six to fifty times as long for rows of amounts.
    """
    for task in range(len(at)):
        for r in range(total.shape[1]):
            total[at[task], r] += sign * request[shape[task], r]


@kernel
def free(room: Longs) -> Longs:
    """int64[R]: what all nodes have left together; one on which more was promised than comes free has nothing."""
    result = np.zeros(room.shape[1], np.int64)
    for n in range(room.shape[0]):
        for r in range(room.shape[1]):
            result[r] += max(room[n, r], 0)
    return result


@kernel
def coming(capacity: Longs, used: Longs, terminating: Longs, nominated: Longs) -> Longs:
    """int64[N, R]: what will be there once what ends is gone and what is promised has come."""
    result = np.empty(capacity.shape, np.int64)
    there, held, left = capacity.ravel(), used.ravel(), result.ravel()
    ends, promised = terminating.ravel(), nominated.ravel()
    for at in range(len(left)):
        left[at] = there[at] - held[at] + ends[at] - promised[at]
    return result
