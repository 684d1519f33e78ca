"""Which queues answer for what a queue loses to another in a reclaim, and whether all stay within their bounds."""

from itertools import zip_longest

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Ids, Longs, Rows
from pipeline.cluster.counted.change_log import Plain
from pipeline.cluster.queue_tree import chain, with_descendants
from pipeline.cluster.resources import PODS
from pipeline.cluster.rules.sparing import Entitled
from pipeline.kernels import kernel, linked


def ancestors(parent: Ids, queue: int, level: int) -> list[int]:
    """The nearest ancestors that answer for a queue, at most ``level``, the root left out."""
    return [one for one in chain(parent, queue)[1:] if parent[one] != NONE][:level]


def answering(parent: Ids, mine: int, level: int) -> Ids:
    """int32[Q, A]: for each queue those that must be able to lose what it loses to ``mine``, itself first.

    Those are ``level`` ancestors, without those that ``mine`` has at the same height.
    """
    above_mine, rows = ancestors(parent, mine, level), list[list[int]]()
    for queue in range(len(parent)):
        pairs = zip_longest(ancestors(parent, queue, level), above_mine)
        rows.append([queue, *(one for one, other in pairs if one not in (None, other))])
    answer = np.full((len(rows), max(map(len, rows), default=1)), NONE, np.int32)
    for queue, some in enumerate(rows):
        answer[queue, : len(some)] = some
    return answer


def answering_strictly(parent: Ids, mine: int, counts: Bools) -> Ids:
    """int32[Q, A]: the same where every queue keeps what it deserves: each queue and all its ancestors.

    Ancestors of ``mine`` are among them as far up as one of them has a share (``counts`` bool[Q, R]).
    """
    shared = chain(parent, mine)[1:]
    while shared and not counts[shared[-1]].any():
        shared.pop()
    above, own = np.append(parent, np.int32(NONE)), np.zeros(len(parent) + 1, bool)
    own[[*chain(parent, mine), NONE]] = True  # the last row stands for no queue
    own[shared] = False
    at, columns = np.arange(len(parent), dtype=np.int32), list[Ids]()
    while len(at := np.where(own[at], np.int32(NONE), at)) and (at != NONE).any():
        columns.append(at)
        at = above[at]
    return np.stack(columns, axis=1) if columns else np.empty((len(parent), 0), np.int32)


def once_requested(
    parent: Ids, mine: int, request: Longs, allocated: Longs, entitled: Entitled
) -> tuple[Longs, Entitled]:
    """What queues hold (int64[Q, R]), and what protects them, once the ancestors of ``mine`` hold ``request`` as well.

    An ancestor that holds less than it deserves then loses what it gains, and no more.
    """
    shared = chain(parent, mine)[1:]
    if not shared:
        return allocated, entitled
    after, deserved, counts = allocated.copy(), entitled.deserved.copy(), entitled.counts.copy()
    after[shared] += request
    deserved[shared] = np.minimum(deserved[shared], allocated[shared])
    counts[shared] |= entitled.guarantee[shared] > 0
    return after, entitled._replace(deserved=deserved, counts=counts)


def related(parent: Ids, mine: int, level: int) -> Bools:
    """bool[Q]: queues with an answering ancestor that also answers for ``mine``."""
    above = set(ancestors(parent, mine, level))
    return np.array([bool(above.intersection(ancestors(parent, queue, level))) for queue in range(len(parent))], bool)


@kernel
def sets_within_bounds(
    queue: int, request: Longs, rows: Rows, start: Longs, keeps_shares: bool, columns: Plain, allocated: Longs,
    bounds: Plain,
) -> Bools:  # fmt: skip
    """bool[S]: whether a queue and its ancestors stay under their ceilings with ``request`` once a set has gone.

    With ``keeps_shares`` also whether each queue that loses keeps what it deserves.

    Parameters
    ----------
    rows: int64[K], start: int64[S + 1]
        The tasks of the sets, and where those of each begin.
    columns
        Podgroup and shape of tasks, queue of podgroups, request of shapes.
    allocated: int64[Q, R]
        What queues hold.
    bounds
        Parent, ceiling, deserved, whether that is stated, and guarantee of queues.
    """
    podgroup, shape, queue_of, held = columns
    result = np.empty(len(start) - 1, np.bool_)
    for one in range(len(result)):
        lost = np.zeros(allocated.shape, np.int64)
        for row in rows[start[one] : start[one + 1]]:
            for r in range(allocated.shape[1]):
                lost[queue_of[podgroup[row]], r] += held[shape[row], r]
        result[one] = _within_bounds(queue, request, lost, keeps_shares, allocated, bounds)
    return result


@linked
def _within_bounds(
    queue: int, request: Longs, lost: Longs, keeps_shares: bool, allocated: Longs, bounds: Plain
) -> bool:  # fmt: skip
    """``sets_within_bounds`` of one set, by which queues lose ``lost`` int64[Q, R]."""
    (parent, ceiling, deserved, stated, guarantee), taken = bounds, np.zeros(allocated.shape, np.int64)
    taken[queue] = request
    lost, taken = with_descendants(parent, lost), with_descendants(parent, taken)
    after, line = allocated + taken - lost, queue
    while line != NONE:
        for r in range(len(request)):
            if request[r] > 0 and after[line, r] > ceiling[line, r]:
                return False
        line = parent[line]
    for q in range(len(parent) if keeps_shares else 0):
        for r in range(len(request)):
            loses = r != PODS and lost[q, r] > 0 and taken[q, r] < lost[q, r]
            if loses and (stated[q, r] or guarantee[q, r] > 0) and after[q, r] < deserved[q, r]:
                return False
    return True
