"""The evictionbudget plugin: how much may be evicted at once, in a time, in proportion to the need, and at whose cost.

Upstream has no such limits; its users report over-eviction and storms of evictions. The limits apply to the final set.
"""

from typing import ClassVar

import numpy as np

from pipeline.cluster.arrays import Bools, Rows, distinct
from pipeline.cluster.counted.recent_evictions import HORIZON_S
from pipeline.cluster.rules.minima_met import breaks_without
from pipeline.cluster.tables import TERMINATING
from pipeline.plugins.arguments import COUNT, NUMBER, WINDOW
from pipeline.plugins.evictionbudget.window import NO_BOUND, EvictionWindow
from pipeline.plugins.extension_points import (
    BoundsEach,
    FiltersTasks,
    PacesEvictions,
    ShieldsAnew,
    ShieldsTasks,
    ValidatesVictims,
)
from pipeline.plugins.plugin import BeyondPace, Context, Plugin, Preemptor, Protects
from pipeline.policy import PluginSetting


class EvictionBudget(Plugin, ShieldsTasks, ShieldsAnew, FiltersTasks, ValidatesVictims, PacesEvictions, BoundsEach):
    """Bounds the victims of a decision, and of all decisions in a window of time.

    Arguments
    ---------
    at_once
        How many tasks may be on their way out at one time, for whatever reason.
    ratio
        How many times what the preemptor's minimum asks for may be evicted, of each resource that it asks for.
    breaks
        How many podgroups may lose their minimum in one decision.
    in_window, in_window_of_queue
        How many tasks may be evicted within a window of time, whatever for: in all, and of one queue.
    window_s
        The length of the window.
    """

    ARGUMENTS: ClassVar = {
        "at_once": COUNT, "ratio": NUMBER, "breaks": COUNT,
        "in_window": COUNT, "in_window_of_queue": COUNT, "window_s": WINDOW,
    }  # fmt: skip
    PROTECTS = Protects.PACE

    def __init__(self, context: Context, setting: PluginSetting) -> None:
        super().__init__(context, setting)
        self._at_once, self._ratio = setting.argument("at_once", NO_BOUND), setting.argument("ratio", NO_BOUND)
        self._breaks = setting.argument("breaks", NO_BOUND)
        in_all, of_queue = (setting.argument(key, NO_BOUND) for key in ("in_window", "in_window_of_queue"))
        window_s = setting.argument("window_s", float(HORIZON_S))
        self._window = EvictionWindow.of(self._snapshot, self._now, in_all, of_queue, window_s)
        bounded = self._at_once != NO_BOUND
        self.counts_evictions = bounded or self._window is not None
        self._ending = int((self._snapshot.tasks.status == TERMINATING).sum()) if bounded else 0

    def _carry(self, evicted: Rows) -> None:
        self._ending += len(evicted)
        if self._window is not None:
            self._window = self._window.spending(self._base.queue_of(evicted))

    def shields_anew(self) -> bool:
        """Whether there is a window: evictions use it up."""
        return self._window is not None

    def evictable(self, preemptor: Preemptor) -> Bools | bool | None:
        """bool[T], or True for all tasks: false for tasks of a queue from which no more may go now."""
        if self._window is None:
            return None
        may = self._window.open_queues
        return True if may.all() else np.asarray(may[self._base.podgroups.queue][self._base.tasks.podgroup])

    def keeps_pace(self, rows: Rows) -> bool:
        """Whether the evictions are within the bounds of the window, and of what may end at one time."""
        few = len(rows) <= self._left
        return few and (self._window is None or self._window.takes(self._base.queue_of(rows)))

    def bounds_each(self) -> bool:
        """Whether the victims are bounded by what one preemptor asks for."""
        return bool(self._ratio != NO_BOUND)

    def beyond_pace(self, rows: Rows) -> tuple[BeyondPace, ...]:
        """The bounds of the window that the evictions exceed; not the bound on tasks that end at one time."""
        return () if self._window is None else self._window.beyond(self._base.queue_of(rows))

    def validate_set(self, preemptor: Preemptor, rows: Rows) -> bool:
        """Whether the victims are within all bounds."""
        return self.keeps_pace(rows) and self._in_proportion(preemptor, rows) and self._breaks_few(rows)

    def _in_proportion(self, preemptor: Preemptor, rows: Rows) -> bool:
        if self._ratio == NO_BOUND:
            return True
        evicted = self._base.request_of(rows).sum(axis=0)
        within = evicted <= np.floor(preemptor.request * self._ratio)
        return bool(within[preemptor.asked].all())  # of pods many small ones may go for a large one

    def _breaks_few(self, rows: Rows) -> bool:
        if self._breaks == NO_BOUND:
            return True
        podgroups = distinct(self._base.tasks.podgroup[rows]).astype(np.int64)
        return bool(breaks_without(self._base, podgroups, rows).sum() <= self._breaks)

    def task_quota_filter(self, preemptor: Preemptor, rows: Rows) -> Bools | None:
        """bool[C], task-centric path: the first candidates, as many as may still go."""
        if not self.counts_evictions:
            return None
        may = np.ones(len(rows), bool) if self._window is None else self._window.leading(self._base.queue_of(rows))
        return np.asarray(may & (np.cumsum(may) <= self._left))

    @property
    def _left(self) -> float:
        """How many more may be told to end."""
        return max(0.0, self._at_once - self._ending)
