"""How many evictions there may be in a window of time, in all and from one queue; what was evicted in it already."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Floats, Ids, Longs
from pipeline.cluster.counted.recent_evictions import whole_second
from pipeline.cluster.orders import occurred_before
from pipeline.cluster.snapshot import Snapshot
from pipeline.plugins.plugin import BeyondPace
from pipeline.records import replace

NO_BOUND = float("inf")


@dataclass(frozen=True)
class EvictionWindow:
    """A window that ends now.

    Attributes
    ----------
    now, window_s
        Seconds.
    most, most_of_queue
        How many evictions there may be in it, in all and from one queue.
    used, used_of
        How many there were: in all, and int64[Q] by queue.
    leaves, leaves_of
        When the next of them leaves the window, in seconds: in all, and float64[Q]; infinite where there was none.
    """

    now: float
    window_s: float
    most: float
    most_of_queue: float
    used: int
    used_of: Longs
    leaves: float
    leaves_of: Floats

    @classmethod
    def of(
        cls, snapshot: Snapshot, now: float, most: float, most_of_queue: float, window_s: float
    ) -> EvictionWindow | None:
        """The window at a time (seconds); None if it bounds nothing."""
        if most == most_of_queue == NO_BOUND:
            return None
        recent, queues = snapshot.recent, len(snapshot.queues)
        inside = recent.within(now, window_s)
        queue, count, leaves = recent.queue[inside], recent.count[inside], recent.at[inside] + float(window_s)
        used_of, leaves_of = np.zeros(queues, np.int64), np.full(queues, NO_BOUND)
        known = queue != NONE
        np.add.at(used_of, queue[known], count[known])
        np.minimum.at(leaves_of, queue[known], leaves[known])
        used, first = int(count.sum()), float(leaves.min(initial=NO_BOUND))
        return cls(now, window_s, most, most_of_queue, used, used_of, first, leaves_of)

    def spending(self, queue: Ids) -> EvictionWindow:
        """The window with further evictions now, each of a task of ``queue`` (int32[V])."""
        leaves, leaves_of = whole_second(self.now) + self.window_s, self.leaves_of.copy()
        np.minimum.at(leaves_of, queue, leaves)
        return replace(
            self,
            used=self.used + len(queue),
            used_of=self.used_of + np.bincount(queue, minlength=len(self.used_of)),
            leaves=min(self.leaves, leaves) if len(queue) else self.leaves,
            leaves_of=leaves_of,
        )

    def takes(self, queue: Ids) -> bool:
        """Whether victims may all go, each of a task of ``queue`` (int32[V])."""
        if len(queue) > max(0.0, self.most - self.used):
            return False
        lost = np.bincount(queue, minlength=len(self.used_of))
        return bool((lost <= self.left_of)[lost > 0].all())

    def leading(self, queue: Ids) -> Bools:
        """bool[C]: which of the ordered candidates may go, each after those before it that may."""
        may = occurred_before(queue) < self.left_of[queue]
        return np.asarray(may & (np.cumsum(may) <= self.most - self.used))

    @property
    def left_of(self) -> Floats:
        """float64[Q]: how many more may be taken from each queue."""
        return np.asarray(np.maximum(self.most_of_queue - self.used_of, 0.0))

    @property
    def open_queues(self) -> Bools:
        """bool[Q]: from which queues at least one more task may go."""
        return np.asarray((self.left_of >= 1) & (self.used < self.most))

    def beyond(self, queue: Ids) -> tuple[BeyondPace, ...]:
        """The bounds that victims, each of a task of ``queue`` (int32[V]), exceed if all of them go."""
        found = list[BeyondPace]()
        if self.used + len(queue) > self.most:
            found.append(BeyondPace(NONE, self.window_s, int(self.most), self.used, self.leaves))
        lost = np.bincount(queue, minlength=len(self.used_of))
        for row in np.flatnonzero((lost > 0) & (lost > self.left_of)).tolist():
            used, leaves = int(self.used_of[row]), float(self.leaves_of[row])
            found.append(BeyondPace(row, self.window_s, int(self.most_of_queue), used, leaves))
        return tuple(found)
