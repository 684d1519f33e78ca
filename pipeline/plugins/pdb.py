"""The pdb plugin: disruption budgets, used up in the order of the candidates.

Upstream drops candidates without labels and charges budgets for refused tasks (notes on Volcano, 2.4); here a task
without labels is covered by no budget, and only permitted candidates are charged. Every Terminating task is charged as
well: recent decisions are not in the fleet's numbers yet. Once they are, a budget is too tight until its tasks have
ended.
"""

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, NONE, Bools, Ids, Longs, Rows
from pipeline.cluster.counted.budgets import Budgets, BudgetsOfLabels, span
from pipeline.cluster.rules.quota import run_end
from pipeline.cluster.rules.sparing import TaskQuota, task_quota
from pipeline.cluster.tables import TERMINATING
from pipeline.kernels import kernel
from pipeline.plugins.extension_points import CountsBudgets, CountsTasks, FiltersBundles, FiltersTasks, ValidatesVictims
from pipeline.plugins.plugin import Context, Plugin, Preemptor, Protects
from pipeline.policy import PluginSetting


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
        groups, tasks = self._base.podgroups, self._base.tasks
        namespace, labels = groups.namespace[tasks.podgroup[rows]], tasks.label_set[rows]
        return _within(self._base.budgets.by_label_set, namespace, labels, unit, self._left)

    def budgets_left(self) -> Budgets:
        """The budgets, with what they still allow."""
        return self._base.budgets.letting(self._left)

    def task_quota_filter(self, preemptor: Preemptor, rows: Rows) -> Bools | None:
        """Task-centric path: as ``bundle_quota_filter``; no opinion where there are no budgets."""
        return self.bundle_quota_filter(preemptor, rows) if self.has_quota(preemptor) else None

    def task_quota(self, preemptor: Preemptor) -> TaskQuota:
        """The same in columns."""
        return task_quota(budgets=(self._left, self._base.budgets.namespace, self._base.budgets.covers))

    def validate_set(self, preemptor: Preemptor, rows: Rows) -> bool:
        """Whether the victims together exceed no budget."""
        if len(self._base.budgets) == 0:
            return True
        return bool((self._base.how_many_on(rows) <= self._left).all())


@kernel
def _within(of: BudgetsOfLabels, namespace: Ids, label_set: Ids, unit: Rows, allowed: Longs) -> Bools:
    """bool[C]: candidates in order; each unit may go while the budgets that cover it allow that.

    Parameters
    ----------
    of
        The budgets that match each label set.
    namespace, label_set: int32[C]
        Those of the candidates.
    unit: int64[C]
        Neighbours of one number go together; NONE: alone.
    allowed: int64[P]
        How many each budget allows to go.
    """
    result, left, used, first = np.ones(len(unit), np.bool_), allowed.copy(), np.zeros(len(allowed), np.int64), 0
    while first < len(unit):
        stop, fits = run_end(unit, first), True
        for at in range(first, stop):
            begin, end = span(of, namespace[at], label_set[at])
            for budget in of.budget[begin:end]:
                used[budget] += 1
                fits &= used[budget] <= left[budget]
        for at in range(first, stop):
            begin, end = span(of, namespace[at], label_set[at])
            for budget in of.budget[begin:end]:
                left[budget] -= used[budget] if fits else 0
                used[budget] = 0
        if not fits:
            result[first:stop] = False
        first = stop
    return result
