"""Which totals a task counts for, and the kernels that add tasks to totals or take them out.

Compiled, because sums in int64 must be exact and NumPy's weighted ``bincount`` works in float64.
"""

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Bytes, Counts, Ids, Longs, Rows
from pipeline.cluster.tables import BOUND, PENDING, RUNNING, SUCCEEDED, TERMINATING
from pipeline.kernels import inlined, kernel

#: What a task counts for, as bits.
HOLDS, ENDS, PROMISED, RUNS, READY, PENDS, GATED, BEST_EFFORT, CARD_HELD, CARD_ENDS, CARD_PROMISED = (
    1 << bit for bit in range(11)
)
_COUNTS = (READY, RUNS, PROMISED, PENDS, BEST_EFFORT)
_AMOUNTS = (RUNS, PROMISED, PENDS, GATED)
#: What each column of a table of the totals counts, in their order.
SHARES = {
    "nodes": (HOLDS, ENDS, PROMISED),
    "cards": (CARD_HELD, CARD_ENDS, CARD_PROMISED),
    "podgroups": _COUNTS,
    "roles": _COUNTS,
    "subgroups": _COUNTS,
    "podgroup_sums": _AMOUNTS,
    "queue_sums": _AMOUNTS,
}


@kernel
def shares(status: int, nominated: int, gated: bool, best_effort: bool) -> int:
    """Which totals a task counts for, cards aside. This is the one definition of every total."""
    waits, ends = status == PENDING, status == TERMINATING
    result = 0
    if status in (BOUND, RUNNING):
        result |= HOLDS | RUNS | READY
    elif ends:
        result |= HOLDS | ENDS
    elif status == SUCCEEDED:
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


@kernel
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


# One kernel for each kind of table, with its columns as arguments: taking an array out of a tuple for each task costs
# more than the counting.


@kernel
def count_usage(
    place: tuple[Ids, Ids], shares: Longs, asks: Longs, sign: int, used: Longs, ends: Longs, promised: Longs
) -> None:
    """Add tasks that ask for ``asks`` to the nodes that they hold and are promised, or subtract them (``sign`` -1)."""
    node, nominated = place
    for at in range(len(shares)):
        if shares[at] & HOLDS:
            _sum(used, node[at], asks, at, sign)
        if shares[at] & ENDS:
            _sum(ends, node[at], asks, at, sign)
        if shares[at] & PROMISED:
            _sum(promised, nominated[at], asks, at, sign)


@kernel
def count_cards(
    place: tuple[Ids, Ids, Ids], shares: Longs, asks: Longs, sign: int, used: Longs, ends: Longs, promised: Longs
) -> None:
    """The same for the task's card, of which it asks for ``asks`` (int64[K])."""
    node, nominated, card = place
    for at in range(len(shares)):
        if shares[at] & CARD_HELD:
            used[node[at], card[at]] += sign * asks[at]
        if shares[at] & CARD_ENDS:
            ends[node[at], card[at]] += sign * asks[at]
        if shares[at] & CARD_PROMISED:
            promised[nominated[at], card[at]] += sign * asks[at]


@kernel
def count_sums(
    owner: Ids, shares: Longs, asks: Longs, sign: int, running: Longs, waiting: Longs, pending: Longs, gated: Longs
) -> None:
    """The same for the sums of their owners: podgroups or queues."""
    for at in range(len(shares)):
        if shares[at] & RUNS:
            _sum(running, owner[at], asks, at, sign)
        if shares[at] & PROMISED:
            _sum(waiting, owner[at], asks, at, sign)
        if shares[at] & PENDS:
            _sum(pending, owner[at], asks, at, sign)
        if shares[at] & GATED:
            _sum(gated, owner[at], asks, at, sign)


@kernel
def count_tasks(
    owner: Ids,
    shares: Longs,
    sign: int,
    ready: Counts,
    running: Counts,
    waiting: Counts,
    pending: Counts,
    best_effort: Counts,
) -> None:
    """The same for the number of tasks by status of their owners: podgroups, roles or subgroups."""
    for at in range(len(shares)):
        if owner[at] == NONE:
            continue
        if shares[at] & READY:
            ready[owner[at]] += sign
        if shares[at] & RUNS:
            running[owner[at]] += sign
        if shares[at] & PROMISED:
            waiting[owner[at]] += sign
        if shares[at] & PENDS:
            pending[owner[at]] += sign
        if shares[at] & BEST_EFFORT:
            best_effort[owner[at]] += sign


@inlined
def _sum(total: Longs, owner: int, asks: Longs, at: int, sign: int) -> None:
    for r in range(total.shape[1]):
        total[owner, r] += sign * asks[at, r]
