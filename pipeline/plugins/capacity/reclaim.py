"""Which queues answer for what a queue loses to another in a reclaim."""

from itertools import zip_longest

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Ids
from pipeline.cluster.queue_tree import chain


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
