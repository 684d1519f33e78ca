"""Disruption budgets of many namespaces: which of them cover which tasks."""

import numpy as np
import pytest

from pipeline.cluster.arrays import NONE, frozen
from pipeline.cluster.counted.budgets import Budgets
from pipeline.plugins.pdb import DisruptionBudgets
from pipeline.plugins.plugin import Context, Preemptor
from pipeline.policy import PluginSetting, Purpose
from pipeline.records import replace
from tests.support.asking import DEFAULT
from tests.support.builders import AXIS, cluster, gang
from tests.support.editing import with_budget

BUDGETS, NAMESPACES, LABELS, TASKS = 40, 6, 9, 200


def some(seed: int) -> tuple[Budgets, np.random.Generator]:
    draw = np.random.default_rng(seed)
    namespace = draw.integers(NONE, NAMESPACES, BUDGETS)
    covers = draw.random((BUDGETS, LABELS)) < 0.3
    budgets = Budgets(frozen(draw.integers(0, 9, BUDGETS), np.int32), frozen(namespace, np.int32), frozen(covers, bool))
    return budgets, draw


@pytest.mark.parametrize("seed", range(5))
def test_how_many_tasks_a_budget_covers_is_what_a_table_of_budgets_and_tasks_says(seed: int) -> None:
    budgets, draw = some(seed)
    where = draw.integers(0, NAMESPACES, TASKS).astype(np.int32), draw.integers(0, LABELS, TASKS).astype(np.int32)
    table = budgets.covering(*where)
    assert table.any()
    assert not table[budgets.namespace == NONE].any()
    assert budgets.how_many(*where).tolist() == table.sum(axis=1).tolist()
    few = np.array([3, 7, 30])
    assert budgets.only(few).how_many(*where).tolist() == table[few].sum(axis=1).tolist()


def test_budgets_that_let_other_numbers_go_cover_the_same_and_are_not_looked_through_again() -> None:
    budgets, _ = some(0)
    other = budgets.letting(np.zeros(BUDGETS, np.int64))
    assert other.by_label_set is budgets.by_label_set
    assert not other.allowed.any()


def test_budgets_are_counted_off_without_a_table_of_all_budgets_and_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    state = with_budget(cluster([{}], [gang(4, 0, cpu=1), gang(1, cpu=1)]), [0, 1, 2], 2)
    state = replace(state, budgets=state.budgets.only(np.zeros(1_000, np.int64)))
    plugin = DisruptionBudgets(Context(state, DEFAULT, 0.0), PluginSetting("pdb", (("*", True),), ()))
    preemptor = Preemptor((1,), np.zeros(len(AXIS), np.int64), Purpose.PREEMPT)

    def refused(*_: object) -> None:
        raise AssertionError("a table of budgets and tasks")

    monkeypatch.setattr(Budgets, "covering", refused)
    assert plugin.bundle_quota_filter(preemptor, np.array([2, 3, 0, 1])).tolist() == [True, True, True, False]
    assert not plugin.validate_set(preemptor, np.array([0, 1, 2]))
