"""The pdb plugin: disruption budgets, used up in the order of the candidates.

Upstream drops candidates without labels and charges budgets for refused tasks (notes on Volcano, 2.4); here a task
without labels is covered by no budget, and only permitted candidates are charged. Every Terminating task is charged as
well: recent decisions are not in the fleet's numbers yet. Once they are, a budget is too tight until its tasks have
ended.
"""

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, NONE, Bools, Longs, Rows, frozen
from pipeline.cluster.rules.quota import run_end
from pipeline.cluster.rules.sparing import TaskQuota, task_quota
from pipeline.cluster.tables import TERMINATING, Budgets
from pipeline.kernels import kernel
from pipeline.plugins.extension_points import CountsBudgets, CountsTasks, FiltersBundles, FiltersTasks, ValidatesVictims
from pipeline.plugins.plugin import Context, Plugin, Preemptor, Protects
from pipeline.policy import PluginSetting
from pipeline.records import replace


class DisruptionBudgets(Plugin, FiltersBundles, CountsBudgets, FiltersTasks, CountsTasks, ValidatesVictims):
    """Lets candidates go while every budget that covers them has allowance left."""

    PROTECTS = Protects.BUDGETS

    def __init__(self, context: Context, setting: PluginSetting) -> None:
        super().__init__(context, setting)
        ending = np.flatnonzero(self._snapshot.tasks.status == TERMINATING) if len(self._snapshot.budgets) else NO_ROWS
        self._left = self._without(self._snapshot.budgets.allowed.astype(np.int64), ending)
        self.counts_evictions = len(self._left) > 0

    def _carry(self, evicted: Rows) -> None:
        self._left = self._without(self._left, evicted)

    def _without(self, left: Longs, ending: Rows) -> Longs:
        """int64[P]: what each budget still allows, beside tasks that are ending."""
        return np.asarray(np.maximum(left - self._base.budgets_on(ending).sum(axis=1), 0), np.int64)

    def has_quota(self, preemptor: Preemptor) -> bool:
        """True if there are budgets."""
        return len(self._base.budgets) > 0

    def bundle_quota_filter(self, preemptor: Preemptor, rows: Rows, unit: Rows | None = None) -> Bools:
        """bool[C]: of the ordered candidates, those within every budget that covers them."""
        unit = np.full(len(rows), NONE, np.int64) if unit is None else unit
        covered = np.ascontiguousarray(self._base.budgets_on(rows))  # of several budgets it is transposed
        return _within(covered, unit, self._left)

    def budgets_left(self) -> Budgets:
        """The budgets, with what they still allow."""
        return replace(self._base.budgets, allowed=frozen(self._left, np.int32))

    def task_quota_filter(self, preemptor: Preemptor, rows: Rows) -> Bools | None:
        """Task-centric path: as ``bundle_quota_filter``; no opinion where there are no budgets."""
        return self.bundle_quota_filter(preemptor, rows) if self.has_quota(preemptor) else None

    def task_quota(self, preemptor: Preemptor) -> TaskQuota:
        """The same in columns."""
        return task_quota(budgets=(self._left, self._base.budgets.covers))

    def validate_set(self, preemptor: Preemptor, rows: Rows) -> bool:
        """Whether the victims together exceed no budget."""
        if len(self._base.budgets) == 0:
            return True
        return bool((self._base.budgets_on(rows).sum(axis=1) <= self._left).all())


@kernel
def _within(covered: Bools, unit: Rows, allowed: Longs) -> Bools:
    """bool[C]: candidates in order; each unit may go while the budgets that cover it allow that.

    Parameters
    ----------
    covered: bool[P, C]
        Which budgets cover which candidates.
    unit: int64[C]
        Neighbours of one number go together; NONE: alone.
    allowed: int64[P]
        How many each budget allows to go.
    """
    result, left, used, first = np.ones(len(unit), np.bool_), allowed.copy(), np.zeros(len(allowed), np.int64), 0
    while first < len(unit):
        stop, fits = run_end(unit, first), True
        for p in range(len(left)):
            used[p] = 0
            for at in range(first, stop):
                used[p] += covered[p, at]
            fits &= used[p] == 0 or used[p] <= left[p]
        if fits:
            left -= used
        else:
            result[first:stop] = False
        first = stop
    return result
