"""What was evicted lately: how many tasks each queue lost, second by second, for as long as a policy may look back.

It is written by the fold of our own decisions and read by policies that bound evictions in a window of time. Seconds
are rounded up, so that an eviction never leaves a window before its time.
"""

from dataclasses import dataclass
from math import ceil

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Ids, Longs, frozen, sealed
from pipeline.kernels import kernel

#: How far a policy may look back, in seconds.
HORIZON_S = 3600
#: Times are cut off here, so that they are exact as float64 and as int64.
_LATEST = 2.0**53


@dataclass(frozen=True)
class RecentEvictions:
    """Evictions by second and queue, ordered by both, each pair once.

    Attributes
    ----------
    queue: int32[E]
        NONE where the queue is gone, or was never known.
    at: int64[E]
        Seconds, rounded up.
    count: int64[E]
        How many tasks the queue was told to lose then.
    """

    queue: Ids
    at: Longs
    count: Longs

    def __len__(self) -> int:
        return len(self.at)

    def within(self, now: float, window_s: float) -> Bools:
        """bool[E]: what counts at a time, for a window of some seconds.

        What is as far ahead does not count: then a clock was wrong.
        """
        return np.asarray((self.at > now - window_s) & (self.at < now + window_s))


NO_EVICTIONS = RecentEvictions(frozen([], np.int32), frozen([], np.int64), frozen([], np.int64))


def recent_evictions_of(queue: Ids, at: Longs, count: Longs) -> RecentEvictions:
    """The table of some rows in any order; those of one queue and second are added up."""
    order = np.lexsort((queue, at))
    queue, at = queue[order], at[order]
    first = np.ones(len(order), bool)
    first[1:] = (queue[1:] != queue[:-1]) | (at[1:] != at[:-1])
    total = np.add.reduceat(count[order], np.flatnonzero(first)) if len(order) else count
    return RecentEvictions(frozen(queue[first], np.int32), frozen(at[first], np.int64), frozen(total, np.int64))


def whole_second(at: float) -> int:
    """A time in seconds, rounded up."""
    return ceil(min(max(at, -_LATEST), _LATEST))


def with_evictions(known: RecentEvictions, queue: Ids, at: float) -> RecentEvictions:
    """The table with evictions of one time, each of a task of ``queue`` (int32[V]); what is too old then is dropped."""
    if len(queue) == 0:
        return known
    queues, times, counts = _with_evictions(known.queue, known.at, known.count, queue, whole_second(at))
    return RecentEvictions(sealed(queues), sealed(times), sealed(counts))


@kernel
def _with_evictions(queues: Ids, times: Longs, counts: Longs, evicted: Ids, second: int) -> tuple[Ids, Longs, Longs]:
    low, high = np.searchsorted(times, second - HORIZON_S), np.searchsorted(times, second + HORIZON_S + 1)
    first, rows, room = np.searchsorted(times, second) - low, high - low, high - low + len(evicted)
    queue, at, count = np.empty(room, np.int32), np.empty(room, np.int64), np.empty(room, np.int64)
    queue[:rows], at[:rows], count[:rows] = queues[low:high], times[low:high], counts[low:high]
    for one in evicted:
        place = first
        while place < rows and at[place] == second and queue[place] < one:
            place += 1
        if place < rows and at[place] == second and queue[place] == one:
            count[place] += 1
            continue
        for behind in range(rows, place, -1):
            queue[behind], at[behind], count[behind] = queue[behind - 1], at[behind - 1], count[behind - 1]
        queue[place], at[place], count[place] = one, second, 1
        rows += 1
    return queue[:rows].copy(), at[:rows].copy(), count[:rows].copy()


def in_queues(known: RecentEvictions, queue_of: Ids) -> RecentEvictions:
    """The table in another numbering of queues: int32[Q], by known queue its new row, NONE if it is gone."""
    if len(known) == 0:
        return known
    return recent_evictions_of(np.append(queue_of, np.int32(NONE)).astype(np.int32)[known.queue], known.at, known.count)
