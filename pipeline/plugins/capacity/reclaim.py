"""Which of the ordered candidates of a reclaim their queues can lose, each after those before it."""

from itertools import zip_longest
from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Ids, Longs
from pipeline.cluster.queue_tree import chain
from pipeline.cluster.resources import PODS
from pipeline.kernels import inlined, kernel


class Entitled(NamedTuple):
    """What protects queues.

    Attributes
    ----------
    deserved: int64[Q, R]
    counts: bool[Q, R]
        Resources for which the queue's share counts.
    guarantee: int64[Q, R]
        Never taken away. If not strict, a queue that is below it of any resource loses nothing at all, as upstream.
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


@kernel
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
def _may_go(taken: Longs, queue: int, left: Longs, entitled: Entitled, asking: Asking, strict: bool) -> bool:
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
def _charge(taken: Longs, queue: int, left: Longs, entitled: Entitled, sign: int) -> None:
    """Subtract ``taken`` from what a queue and all its ancestors hold, or add it again (sign -1)."""
    row = queue
    while row != NONE:
        for r in range(len(taken)):
            left[row, r] -= sign * taken[r]
        row = entitled.parent[row]


@kernel
def spared(
    queue: Ids, held: Longs, unit: Longs, allocated: Longs, entitled: Entitled, asking: Asking, strict: bool
) -> Bools:
    """bool[C]: candidates in order; each may go if its queue, and the ancestors that answer for it, can lose it.

    Parameters
    ----------
    queue: int32[C], held: int64[C, R]
        Of the candidates.
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
        result[task] = _may_go(held[task], queue[task], left, entitled, asking, strict)
        if result[task]:
            _charge(held[task], queue[task], left, entitled, 1)
        elif unit[task] != NONE:
            refused, back = unit[task], task - 1
            while back >= 0 and unit[back] == refused:
                result[back] = False
                _charge(held[back], queue[back], left, entitled, -1)
                back -= 1
    return result


def ancestors(parent: Ids, queue: int, level: int) -> list[int]:
    """The nearest ancestors that answer for a queue, at most ``level``, the root left out."""
    return [one for one in chain(parent, queue)[1:] if parent[one] != NONE][:level]


def answering(parent: Ids, mine: int, level: int, *, strict: bool) -> Ids:
    """int32[Q, A]: for each queue those that must be able to lose what it loses to ``mine``, itself first.

    Strict: all ancestors below those of ``mine``, which hold as much as before. Else ``level`` ancestors, without those
    that ``mine`` has at the same height.
    """
    own, above_mine = set(chain(parent, mine)), ancestors(parent, mine, level)
    rows = list[list[int]]()
    for queue in range(len(parent)):
        if strict:
            rows.append([one for one in chain(parent, queue) if one not in own])
        else:
            pairs = zip_longest(ancestors(parent, queue, level), above_mine)
            rows.append([queue, *(one for one, other in pairs if one not in (None, other))])
    answer = np.full((len(rows), max(map(len, rows), default=1)), NONE, np.int32)
    for queue, some in enumerate(rows):
        answer[queue, : len(some)] = some
    return answer


def related(parent: Ids, mine: int, level: int) -> Bools:
    """bool[Q]: queues with an answering ancestor that also answers for ``mine``."""
    above = set(ancestors(parent, mine, level))
    return np.array([bool(above.intersection(ancestors(parent, queue, level))) for queue in range(len(parent))], bool)
