"""What was evicted lately: how many tasks each queue lost, second by second, for as long as a policy may look back.

It is written by the fold of our own decisions and read by policies that bound evictions in a window of time. Seconds
are rounded up, so that an eviction never leaves a window before its time.
"""

from dataclasses import dataclass

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Ids, Longs, counted_off, frozen, sealed

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


def in_order(queue: Ids, at: Longs, count: Longs) -> RecentEvictions:
    """The table of some rows in any order; those of one queue and second are added up."""
    order = np.lexsort((queue, at))
    queue, at = queue[order], at[order]
    first = np.ones(len(order), bool)
    first[1:] = (queue[1:] != queue[:-1]) | (at[1:] != at[:-1])
    total = np.add.reduceat(count[order], np.flatnonzero(first)) if len(order) else count
    return RecentEvictions(frozen(queue[first], np.int32), frozen(at[first], np.int64), frozen(total, np.int64))


def whole_second(at: float) -> int:
    """A time in seconds, rounded up."""
    return int(np.ceil(min(max(at, -_LATEST), _LATEST)))


def with_evictions(known: RecentEvictions, queue: Ids, at: float) -> RecentEvictions:
    """The table with evictions of one time, each of a task of ``queue`` (int32[V]); what is too old then is dropped."""
    if len(queue) == 0:
        return known
    second = whole_second(at)
    low, here, after, high = np.searchsorted(known.at, [second - HORIZON_S, second, second + 1, second + HORIZON_S + 1])
    queues, count = counted_off(queue)
    now = in_order(
        np.concatenate([known.queue[here:after], queues]),
        np.full(after - here + len(queues), second, np.int64),
        np.concatenate([known.count[here:after], count]),
    )
    parts = zip(*((one.queue, one.at, one.count) for one in (known, now)), strict=True)
    return RecentEvictions(*(sealed(np.concatenate([old[low:here], new, old[after:high]])) for old, new in parts))


def in_queues(known: RecentEvictions, queue_of: Ids) -> RecentEvictions:
    """The table in another numbering of queues: int32[Q], by known queue its new row, NONE if it is gone."""
    if len(known) == 0:
        return known
    return in_order(np.append(queue_of, np.int32(NONE)).astype(np.int32)[known.queue], known.at, known.count)
