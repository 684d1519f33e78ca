"""Which totals a task counts for, and the kernel that adds tasks to totals or takes them out.

Compiled, because sums in int64 must be exact and NumPy's weighted ``bincount`` works in float64.
"""

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Bytes, Counts, Ids, Longs, Rows
from pipeline.cluster.tables import BOUND, PENDING, RUNNING, SUCCEEDED, TERMINATING
from pipeline.kernels import kernel, linked

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


@linked
def runs(status: int) -> bool:
    """Whether an eviction can take the task: Bound or Running."""
    return (status == BOUND) | (status == RUNNING)


@linked
def counts_ready(status: int) -> bool:
    """Whether the task counts towards a minimum: Bound, Running or Succeeded."""
    return runs(status) | (status == SUCCEEDED)


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
def card_shares(shares: int, card: int) -> int:
    """The same with its card. A task that moves has its card where it leaves; it has room for one only."""
    if card == NONE:
        return shares
    if shares & HOLDS:
        return shares | CARD_HELD | (CARD_ENDS if shares & ENDS else 0)
    return shares | (CARD_PROMISED if shares & PROMISED else 0)


@kernel
def shares_of(rows: Rows, columns: tuple[Bytes, Ids, Bools, Bools, Ids], carded: bool) -> Longs:
    """int64[K]: which totals some tasks count for, by status, nomination, gate, size and card."""
    status, nominated, gated, best_effort, card = columns
    result = np.empty(len(rows), np.int64)
    for at in range(len(rows)):
        row = rows[at]
        counts = shares(status[row], nominated[row], gated[row], best_effort[row])
        result[at] = card_shares(counts, card[row]) if carded else counts
    return result


@kernel
def count(total: Longs | Counts, owner: Ids | Rows, shares: Longs, share: int, asks: Longs | Counts, sign: int) -> None:
    """Add tasks to one column of the totals (``sign`` 1), or take them out (-1).

    Parameters
    ----------
    total: int64[M, A] or int32[M, A]
        The column, changed in place.
    owner: int[K]
        Of each task, NONE for one that does not count.
    shares: int64[K]
        What each task counts for.
    share
        What it must count for to be in this column.
    asks: int[K, A] or int[1, A]
        By how much each task counts, or all alike.
    """
    alike = len(asks) == 1
    for at in range(len(shares)):
        if shares[at] & share and owner[at] != NONE:
            by = 0 if alike else at
            for a in range(total.shape[1]):
                total[owner[at], a] += sign * asks[by, a]


@kernel
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
