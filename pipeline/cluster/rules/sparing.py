"""What queues can spare in a reclaim: candidates are counted off one after the other, or unit by unit."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Ids, Longs, Rows, frozen
from pipeline.cluster.resources import PODS
from pipeline.kernels import inlined, kernel, linked


class Entitled(NamedTuple):
    """What protects queues.

    Attributes
    ----------
    deserved: int64[Q, R]
    counts: bool[Q, R]
        Resources for which the queue's share counts.
    guarantee: int64[Q, R]
        Never taken away. If not strict, a queue that is below it in any resource loses nothing at all, as upstream.
    parent: int32[Q]
    """

    deserved: Longs
    counts: Bools
    guarantee: Longs
    parent: Ids


class Asking(NamedTuple):
    """What the quotas know of the preemptor.

    Attributes
    ----------
    asked: bool[R]
        What it asks for. Upstream never takes a task that holds none of it; strict does, since a gang's driver goes
        with its workers.
    answer: int32[Q, A]
        For each queue the queues that must be able to lose what it loses, itself first; NONE fills the row.
    related: bool[Q]
        Queues that share an answering ancestor with the preemptor's queue. If that deserves nothing of what it asks
        for, no quota ranks it before them, and those that deserve nothing either lose nothing.
    """

    asked: Bools
    answer: Ids
    related: Bools


class Quota(NamedTuple):
    """What queues can spare, for a solver that counts it off itself.

    Only where a unit's sum says the same as its tasks one after the other: where every queue keeps what it deserves of
    everything that is taken (strict).

    Attributes
    ----------
    counted
        Whether there is anything to count; if not, the rest has no rows.
    queue: int32[G]
        Queue of each podgroup.
    held: int64[G, R]
        What each podgroup runs everywhere.
    allocated: int64[Q, R]
        What queues hold, ancestors included.
    """

    counted: bool
    queue: Ids
    held: Longs
    allocated: Longs
    entitled: Entitled
    asking: Asking


class TaskQuota(NamedTuple):
    """What can be lost task by task, for a solver that counts it off itself.

    Attributes
    ----------
    spares
        Whether podgroups keep as many ready tasks as their minimum, and roles and subgroups as many as theirs.
    queues
        What queues can spare; ``strict`` says how it is counted (see ``may_go``).
    allowed: int64[P], namespace: int32[P], covers: bool[P, A]
        How many tasks each disruption budget lets go, and which it covers (`Budgets`).
    """

    spares: bool
    queues: Quota
    strict: bool
    allowed: Longs
    namespace: Ids
    covers: Bools


def quota_of(queue: Ids, held: Longs, allocated: Longs, entitled: Entitled, asking: Asking) -> Quota:
    """A quota to count, of read-only columns."""
    return Quota(
        True, frozen(queue, np.int32), frozen(held, np.int64), frozen(allocated, np.int64),
        Entitled(
            frozen(entitled.deserved, np.int64), frozen(entitled.counts, np.bool_),
            frozen(entitled.guarantee, np.int64), frozen(entitled.parent, np.int32),
        ),
        Asking(frozen(asking.asked, np.bool_), frozen(asking.answer, np.int32), frozen(asking.related, np.bool_)),
    )  # fmt: skip


@lru_cache(maxsize=1)
def no_quota() -> Quota:
    """Nothing to count; always the same."""
    flags, rows = np.zeros((0, 0), np.bool_), np.zeros((0, 0), np.int32)
    amounts = np.zeros((0, 0), np.int64)
    entitled, asking = Entitled(amounts, flags, amounts, rows.ravel()), Asking(flags.ravel(), rows, flags.ravel())
    return quota_of(rows.ravel(), amounts, amounts, entitled, asking)._replace(counted=False)


def task_quota(
    *,
    spares: bool = False,
    queues: Quota | None = None,
    strict: bool = False,
    budgets: tuple[Longs, Ids, Bools] | None = None,
) -> TaskQuota:
    """A quota on single tasks of some kinds: that of podgroups, of queues, or of budgets: its last columns."""
    allowed, namespace, covers = budgets or (np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros((0, 0), np.bool_))
    columns = frozen(allowed, np.int64), frozen(namespace, np.int32), frozen(covers, np.bool_)
    return TaskQuota(spares, queues or no_quota(), strict, *columns)


@linked
def _loses(taken: Longs, left: Longs, deserved: Longs, counts: Bools, strict: bool) -> bool:
    """Whether a queue with ``left`` may lose ``taken`` (int64[R]).

    Strict: it keeps what it deserves of everything that is taken. Else it must hold more than it deserves of some
    resource that is taken, or deserve nothing of it; pods do not count as a surplus.
    """
    entitled = False
    for r in range(len(taken)):
        if taken[r] <= 0:
            continue
        entitled |= deserved[r] > 0
        if r == PODS or not counts[r]:
            continue
        if strict and left[r] - taken[r] < deserved[r]:
            return False
        if not strict and left[r] > deserved[r]:
            return True
    return strict or not entitled


@inlined
def may_go(taken: Longs, queue: int, left: Longs, entitled: Entitled, asking: Asking, strict: bool) -> bool:
    """Whether a queue and the ancestors that answer for it, with ``left`` each, can lose ``taken`` int64[R]."""
    useful, may, deserving = strict, True, False
    for r in range(len(taken)):
        useful |= asking.asked[r] and taken[r] > 0
        deserving |= taken[r] > 0 and entitled.deserved[queue, r] > 0
        if not strict or (taken[r] > 0 and r != PODS):
            may &= left[queue, r] - taken[r] >= entitled.guarantee[queue, r]
    may &= useful and (deserving or not asking.related[queue])
    for at in range(asking.answer.shape[1]):
        row = asking.answer[queue, at]
        if not may or row == NONE:
            break
        may = _loses(taken, left[row], entitled.deserved[row], entitled.counts[row], strict)
    return may


@inlined
def charge(taken: Longs, queue: int, left: Longs, entitled: Entitled, sign: int) -> None:
    """Subtract ``taken`` (int64[R]) from what a queue and all its ancestors hold, or add it again (sign -1)."""
    row = queue
    while row != NONE:
        for r in range(len(taken)):
            left[row, r] -= sign * taken[r]
        row = entitled.parent[row]


@kernel
def may_all_go(quota: Quota, rows: Rows, start: Longs, columns: tuple[Ids, Ids], request: Longs) -> Bools:
    """bool[S]: whether all tasks of a set may go by a quota, one after the other, for each set by itself.

    Parameters
    ----------
    rows: int64[K], start: int64[S + 1]
        The tasks of the sets, and where those of each begin.
    columns
        Podgroup and shape of all tasks.
    """
    (podgroup, shape), result = columns, np.ones(len(start) - 1, np.bool_)
    for one in range(len(result)):
        left = quota.allocated.copy()
        for task in rows[start[one] : start[one + 1]]:
            taken, queue = request[shape[task]], quota.queue[podgroup[task]]
            if not may_go(taken, queue, left, quota.entitled, quota.asking, True):
                result[one] = False
                break
            charge(taken, queue, left, quota.entitled, 1)
    return result


@kernel
def spared(
    queue: Ids, held: Longs, unit: Longs, allocated: Longs, entitled: Entitled, asking: Asking, strict: bool
) -> Bools:
    """bool[C]: candidates in order; each may go if its queue, and the ancestors that answer for it, can lose it.

    Parameters
    ----------
    queue: int32[C], held: int64[C, R]
        Queue of each candidate, and what it holds.
    unit: int64[C]
        Neighbours of one number go together or not at all; NONE: alone.
    allocated: int64[Q, R]
        What queues hold, ancestors included.
    """
    result, left = np.zeros(len(queue), np.bool_), allocated.copy()
    refused = NONE
    for task in range(len(queue)):
        if unit[task] != NONE and unit[task] == refused:
            continue
        result[task] = may_go(held[task], queue[task], left, entitled, asking, strict)
        if result[task]:
            charge(held[task], queue[task], left, entitled, 1)
        elif unit[task] != NONE:
            refused, back = unit[task], task - 1
            while back >= 0 and unit[back] == refused:
                result[back] = False
                charge(held[back], queue[back], left, entitled, -1)
                back -= 1
    return result
