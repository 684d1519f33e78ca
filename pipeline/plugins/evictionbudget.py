"""The evictionbudget plugin: how much may be evicted at once, in proportion to what is needed, and at whose cost.

Upstream has none of it; its users report over-eviction and storms of evictions. The limits apply to the final set.
"""

from typing import ClassVar

import numpy as np

from pipeline.cluster.arrays import Bools, Rows
from pipeline.cluster.rules.minimum import breaks_without
from pipeline.cluster.tables import TERMINATING
from pipeline.plugins.arguments import COUNT, NUMBER
from pipeline.plugins.extension_points import FiltersTasks, ValidatesVictims
from pipeline.plugins.plugin import Context, Plugin, Preemptor
from pipeline.policy import PluginSetting

#: Pods do not count: many small ones may go for a large one.
_NOT_COUNTED = "pods"
_NO_BOUND = float("inf")


class EvictionBudget(Plugin, FiltersTasks, ValidatesVictims):
    """Bounds a decision's victims.

    Arguments
    ---------
    at_once
        How many tasks may be on their way out at one time, for whatever reason.
    ratio
        How many times what the preemptor's minimum asks for may be evicted, of each resource that it asks for.
    breaks
        How many podgroups may lose their minimum in one decision.
    """

    ARGUMENTS: ClassVar = {"at_once": COUNT, "ratio": NUMBER, "breaks": COUNT}

    def __init__(self, context: Context, setting: PluginSetting) -> None:
        super().__init__(context, setting)
        self._at_once, self._ratio = setting.argument("at_once", _NO_BOUND), setting.argument("ratio", _NO_BOUND)
        self._breaks = setting.argument("breaks", _NO_BOUND)
        self.counts_evictions = self._at_once != _NO_BOUND
        self._ending = int((self._snapshot.tasks.status == TERMINATING).sum()) if self.counts_evictions else 0

    def _carry(self, evicted: Rows) -> None:
        self._ending += len(evicted)

    def validate_set(self, preemptor: Preemptor, rows: Rows) -> bool:
        """Whether the victims are within all bounds."""
        return len(rows) <= self._left and self._in_proportion(preemptor, rows) and self._breaks_few(rows)

    def _in_proportion(self, preemptor: Preemptor, rows: Rows) -> bool:
        if self._ratio == _NO_BOUND:
            return True
        axis, shape = self._base.vocabulary.resources, self._base.tasks.shape
        counted = (preemptor.request > 0) & np.array([name != _NOT_COUNTED for name in axis])
        evicted = self._base.shapes.request[shape[rows]].sum(axis=0)
        return bool((evicted <= np.floor(preemptor.request * self._ratio))[counted].all())

    def _breaks_few(self, rows: Rows) -> bool:
        if self._breaks == _NO_BOUND:
            return True
        podgroups = np.unique(self._base.tasks.podgroup[rows]).astype(np.int64)
        return bool(breaks_without(self._base, podgroups, rows).sum() <= self._breaks)

    def task_quota_filter(self, preemptor: Preemptor, rows: Rows) -> Bools | None:
        """bool[C], task-centric path: the first candidates, as many as may still go."""
        return None if self._at_once == _NO_BOUND else np.arange(len(rows)) < self._left

    @property
    def _left(self) -> float:
        """How many more may be told to end."""
        return max(0.0, self._at_once - self._ending)
