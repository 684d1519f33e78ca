"""Plugins that look at tasks and nodes: priority, conformance, disruption budgets, binpack and node order."""

from dataclasses import replace

import numpy as np
import pytest

from pipeline.cluster.arrays import NONE, frozen
from pipeline.cluster.counted import node_scores
from pipeline.cluster.counted.budgets import Budgets
from pipeline.cluster.what_if import WhatIf
from pipeline.plugins import pdb
from pipeline.plugins.binpack import Binpack
from pipeline.plugins.nodeorder import NodeOrder
from pipeline.plugins.pdb import DisruptionBudgets
from pipeline.plugins.plugin import Context, Preemptor
from pipeline.plugins.priority import Priority
from pipeline.policy import PluginSetting, Purpose
from tests.support.asking import DEFAULT, VOLCANO, host_on
from tests.support.builders import AXIS, Gang, Task, cluster, gang
from tests.support.editing import with_budget, with_groups, with_tasks
from tests.support.task_centric import policy, preempted, victims


def made(plugin, snapshot, **arguments):
    return plugin(Context(snapshot, DEFAULT, 0.0), PluginSetting("", (("*", True),), tuple(arguments.items())))


def asking(podgroup, purpose=Purpose.PREEMPT, task=NONE):
    return Preemptor((podgroup,), np.zeros(len(AXIS), np.int64), purpose, task)


# -- priority ----------------------------------------------------------------------------------------------------------


def test_priority_orders_podgroups_and_tasks_and_age_and_name_decide_among_equals():
    state = cluster([{}], [gang(1, cpu=1), gang(1, cpu=1, priority=5), gang(1, cpu=1)])
    assert host_on(state).job_rank.tolist() == [1, 0, 2]
    assert host_on(state).task_ranks(np.arange(3)).tolist() == [1, 0, 2]


def test_only_strictly_lower_priority_may_be_preempted_and_reclaim_does_not_ask():
    state = cluster([{}], [gang(1, 0, cpu=1, priority=p) for p in (0, 1, 2)])
    plugin = made(Priority, state)
    assert plugin.evictable(asking(1)).on(state.tasks.podgroup).tolist() == [True, False, False]
    assert plugin.evictable(asking(1, Purpose.RECLAIM)) is None


def test_a_gang_group_preempts_only_below_its_least_important_member():
    state = cluster([{}], [gang(1, 0, cpu=1, priority=p) for p in (1, 2, 3)])
    group = Preemptor((1, 2), np.zeros(len(AXIS), np.int64), Purpose.PREEMPT)
    assert made(Priority, state).evictable(group).on(state.tasks.podgroup).tolist() == [True, False, False]


def test_a_single_task_may_take_less_important_tasks_of_its_own_podgroup():
    own = Gang([Task(0, cpu=1, priority=1), Task(0, cpu=1, priority=3), Task(cpu=1, priority=2)], 1)
    assert made(Priority, cluster([{}], [own])).evictable(asking(0, task=2)).tolist() == [True, False, False]


# -- conformance -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("purpose", [Purpose.PREEMPT, Purpose.RECLAIM])
def test_critical_tasks_are_no_candidates(purpose):
    state = cluster([{}], [gang(2, 0, cpu=1, queue=purpose is Purpose.RECLAIM), gang(1, cpu=1, priority=1)])
    assert host_on(with_tasks(state, [0], critical=True)).candidates(asking(1, purpose)).tolist() == [
        False,
        True,
        False,
    ]


def test_a_podgroup_that_may_not_be_taken_from_spares_all_its_tasks_from_gangs_and_those_that_do_not_mind_no_others():
    state = cluster([{"gpu": 2}], [gang(1, 0, gpu=1, minimum=0), gang(1, gpu=2, priority=1)])
    state = with_groups(state, 0, preemptible=False)
    assert not host_on(state, VOLCANO).candidates(Preemptor((1,), np.zeros(4, np.int64), Purpose.PREEMPT)).any()
    assert victims(preempted(state, policy(("priority", "predicates")))) == [0]


def test_candidates_run_are_preemptible_and_not_the_preemptors_own():
    state = cluster([{}], [
        Gang([Task(0, cpu=1), Task(0, cpu=1, preemptible=False), Task(cpu=1)], 1),
        Gang([Task(0, cpu=1), Task(cpu=1)], 2, priority=1),
    ])  # fmt: skip
    assert host_on(state).candidates(asking(1)).tolist() == [True, False, False, False, False]


# -- disruption budgets ------------------------------------------------------------------------------------------------


def test_a_budget_is_used_up_in_the_order_of_the_candidates():
    state = with_budget(cluster([{}], [gang(4, 0, cpu=1), gang(1, cpu=1)]), [0, 1, 2], 2)
    plugin = made(DisruptionBudgets, state)
    assert plugin.bundle_quota_filter(asking(1), np.array([2, 3, 0, 1])).tolist() == [True, True, True, False]
    assert plugin.validate_set(asking(1), np.array([0, 2, 3]))
    assert not plugin.validate_set(asking(1), np.array([0, 1, 2]))


def test_who_is_refused_by_one_budget_does_not_use_up_another():
    state = with_budget(cluster([{}], [gang(2, 0, cpu=1), gang(1, cpu=1)]), [0, 1], 1)
    assert made(DisruptionBudgets, state).bundle_quota_filter(asking(1), np.arange(2)).tolist() == [True, False]
    compiled = list(pdb._within.signatures)
    covers = np.repeat(state.budgets.covers, 2, axis=0)
    none_left = replace(
        state, budgets=Budgets(frozen([1, 0], np.int32), frozen([0, 0], np.int32), frozen(covers, bool))
    )
    assert not made(DisruptionBudgets, none_left).bundle_quota_filter(asking(1), np.arange(2)).any()
    assert pdb._within.signatures == compiled, "two budgets had to wait for machine code of their own"


def test_who_is_on_the_way_out_counts_against_the_budget():
    state = with_budget(cluster([{}], [gang(3, 0, cpu=1), gang(1, cpu=1)]), [0, 1, 2], 2)
    plugin = made(DisruptionBudgets, WhatIf.of(state).evicting(np.array([0])).whole)
    assert plugin.bundle_quota_filter(asking(1), np.array([1, 2])).tolist() == [True, False]
    assert not plugin.validate_set(asking(1), np.array([1, 2]))


def test_a_budget_that_is_overdrawn_already_forbids_only_the_tasks_that_it_covers():
    state = with_budget(cluster([{}], [gang(3, 0, cpu=1), gang(1, cpu=1)]), [0, 1], 0)
    state = WhatIf.of(state).evicting(np.array([0])).whole
    plugin = made(DisruptionBudgets, state)
    assert plugin.validate_set(asking(1), np.array([2]))
    assert not plugin.validate_set(asking(1), np.array([1]))


def test_without_budgets_no_task_is_counted():
    state = cluster([{}], [gang(1, 0, cpu=1), gang(1, cpu=1)])
    assert not made(DisruptionBudgets, state).has_quota(asking(1))
    assert not host_on(state).has_quota(asking(1))


# -- scores ------------------------------------------------------------------------------------------------------------


def scores(plugin, nodes, used, memory=0, **arguments):
    state = cluster(nodes, [gang(1, cpu=2, memory=memory)])
    columns = np.array([[row.get(name, 0) for name in AXIS] for row in used], np.int64)
    terms, there = made(plugin, state, **arguments).score_terms(0), state.nodes.allocatable
    return node_scores.scores(terms, state.shapes.request[0], columns, there, np.arange(len(nodes))).round(2).tolist()


EIGHT = {"cpu": 8, "memory": 8}


def test_binpack_prefers_the_fuller_node():
    assert scores(Binpack, [EIGHT] * 3, [{}, {"cpu": 4}, {"cpu": 6}]) == [25.0, 75.0, 100.0]


def test_binpack_gives_nothing_for_a_node_on_which_the_task_does_not_fit():
    assert scores(Binpack, [EIGHT] * 2, [{"cpu": 7}, {"cpu": 6}]) == [0.0, 100.0]


def test_binpack_weighs_resources():
    used = [{"cpu": 6, "memory": 0}]
    assert scores(Binpack, [EIGHT], used, memory=2) == [62.5]
    assert scores(Binpack, [EIGHT], used, memory=2, cpu=0) == [25.0]


def test_binpack_multiplies_by_its_weight():
    assert scores(Binpack, [EIGHT], [{"cpu": 2}], weight=3) == [150.0]


def test_node_order_prefers_the_emptier_and_the_more_balanced_node():
    least = {"least_requested": 1, "balanced": 0}
    assert scores(NodeOrder, [EIGHT] * 2, [{}, {"cpu": 4}], **least) == [87.5, 62.5]
    balanced = {"least_requested": 0, "balanced": 1}
    assert scores(NodeOrder, [EIGHT] * 2, [{}, {"memory": 2}], **balanced) == [87.5, 100.0]


def test_node_order_spreads_and_balances_alike_unless_told_otherwise():
    nodes, used = [EIGHT] * 3, [{}, {"cpu": 4}, {"memory": 2}]
    told = scores(NodeOrder, nodes, used, least_requested=1, most_requested=0, balanced=1)
    assert scores(NodeOrder, nodes, used) == told == [175.0, 125.0, 175.0]


def test_node_order_can_fill_instead():
    most = {"least_requested": 0, "balanced": 0, "most_requested": 1}
    assert scores(NodeOrder, [EIGHT] * 2, [{}, {"cpu": 4}], **most) == [12.5, 37.5]


def test_a_resource_that_a_node_lacks_counts_as_full():
    least = {"least_requested": 1, "balanced": 0}
    assert scores(NodeOrder, [{"cpu": 8, "memory": 0}], [{}], **least) == [37.5]
