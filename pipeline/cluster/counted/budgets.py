"""Disruption budgets: a table like the others, and which of them cover which tasks.

A budget covers tasks of one namespace whose labels it matches. Of thousands of budgets few cover a task, so questions
about many tasks go by the budgets of each label set, and not over all of them.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import Bools, Counts, Ids, Longs, Rows, frozen
from pipeline.keeping import begun_with, cached_property
from pipeline.kernels import kernel, linked
from pipeline.records import replace


class BudgetsOfLabels(NamedTuple):
    """The budgets that match each label set, by namespace.

    Attributes
    ----------
    start: int64[A + 1]
        Label set ``a`` is matched by ``budget[start[a]:start[a + 1]]``.
    budget: int64[E]
    namespace: int32[E]
        That of each budget, which ascends within a label set.
    """

    start: Longs
    budget: Rows
    namespace: Ids


@dataclass(frozen=True)
class Budgets:
    """Disruption budgets.

    Attributes
    ----------
    allowed: int32[P]
    namespace: int32[P]
        The namespace whose tasks it covers (row of ``Vocabulary.namespaces``); NONE: it has no podgroup.
    covers: bool[P, A]
        Whether the budget covers a task of that namespace with a label set (rows of ``Vocabulary.label_sets``).
    """

    allowed: Counts
    namespace: Ids
    covers: Bools

    def __len__(self) -> int:
        return len(self.allowed)

    def only(self, some: Rows) -> "Budgets":
        """Some of the budgets (int64[M])."""
        allowed, namespace, covers = self.allowed[some], self.namespace[some], self.covers[some]
        return Budgets(frozen(allowed, np.int32), frozen(namespace, np.int32), frozen(covers, np.bool_))

    def covering(self, namespaces: Ids | Rows, label_sets: Ids | Rows) -> Bools:
        """Which budgets cover which tasks: bool[P, C] for a few tasks given by namespace and label set rows."""
        return np.asarray(self.covers[:, label_sets] & (self.namespace[:, None] == namespaces))

    def how_many(self, namespaces: Ids, label_sets: Ids) -> Longs:
        """int64[P]: how many of some tasks each budget covers."""
        return _how_many(self.by_label_set, namespaces, label_sets, len(self))

    def letting(self, allowed: Longs) -> "Budgets":
        """The same budgets, which let other numbers of tasks go (int64[P])."""
        return begun_with(replace(self, allowed=frozen(allowed, np.int32)), by_label_set=self.by_label_set)

    @cached_property
    def by_label_set(self) -> BudgetsOfLabels:
        """The budgets that match each label set."""
        order = np.argsort(self.namespace, kind="stable")
        labels, at = np.nonzero(self.covers[order].T)
        budget, start = order[at], np.searchsorted(labels, np.arange(self.covers.shape[1] + 1))
        columns = frozen(start, np.int64), frozen(budget, np.int64), frozen(self.namespace[budget], np.int32)
        return BudgetsOfLabels(*columns)


@linked
def span(of: BudgetsOfLabels, namespace: int, label_set: int) -> tuple[int, int]:
    """Where in ``of`` the budgets begin and end that cover a task."""
    first, stop = of.start[label_set], of.start[label_set + 1]
    mine = of.namespace[first:stop]
    return first + np.searchsorted(mine, namespace), first + np.searchsorted(mine, namespace, "right")


@kernel
def _how_many(of: BudgetsOfLabels, namespaces: Ids, label_sets: Ids, budgets: int) -> Longs:
    """See ``Budgets.how_many``."""
    result = np.zeros(budgets, np.int64)
    for at in range(len(label_sets)):
        first, stop = span(of, namespaces[at], label_sets[at])
        for entry in range(first, stop):
            result[of.budget[entry]] += 1
    return result
