"""How the plugins' answers on the victims of one task are combined, and that plans by task are proposed and judged."""

from dataclasses import replace

import numpy as np

from pipeline.cluster.arrays import Bools, frozen
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import TERMINATING
from pipeline.cluster.what_if import WhatIf
from pipeline.decision.attempt import Attempt
from pipeline.decision.law import TOO_FAST
from pipeline.decision.plan import NoPlan, Plan
from pipeline.decision.verdict import Accepted, Stale
from pipeline.judge import judge
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Context, Preemptor
from pipeline.policy import ExtensionPoint, PluginSetting, Policy, Purpose
from pipeline.propose import propose
from pipeline.solvers.tasks.candidates import candidate_mask
from pipeline.solvers.tasks.rule import Rule
from tests.support.builders import Gang, Task, cluster, gang
from tests.support.editing import with_budget, with_queues, with_tasks
from tests.support.task_centric import USUAL, policy


def asked(state: Snapshot, plugins: list[str], task: int, purpose: Purpose = Purpose.PREEMPT) -> tuple[Host, Preemptor]:
    podgroup = int(state.tasks.podgroup[task])
    request = state.shapes.request[state.tasks.shape[task]]
    return Host(Context(state, policy(plugins), 0.0)), Preemptor((podgroup,), request, purpose, task)


def all_of(state: Snapshot) -> Bools:
    return np.ones(len(state.podgroups), bool)


def test_a_quota_is_not_used_up_by_who_another_plugin_refuses() -> None:
    # The gang can spare one of three. Its first is under a budget with nothing left, so the second may go.
    state = with_budget(cluster([{"cpu": 3}], [gang(3, 0, cpu=1, minimum=2), gang(1, cpu=1, priority=1)]), [0], 0)
    host, preemptor = asked(state, ["gang", "pdb"], 3)
    permitted = host.task_victims(preemptor, np.array([0, 1, 2]), ExtensionPoint.PREEMPTABLE)
    assert permitted.tolist() == [False, True, False]


def test_priority_compares_podgroups_and_inside_one_its_tasks() -> None:
    own = Gang([Task(cpu=1, priority=5), Task(0, cpu=1, priority=4), Task(0, cpu=1, priority=5)], 0, priority=3)
    low, equal = gang(1, 0, cpu=1, priority=2), gang(1, 0, cpu=1, priority=3)
    state = cluster([{"cpu": 9}], [own, low, equal])
    host, preemptor = asked(state, ["priority"], 0)
    assert host.task_candidates(preemptor, all_of(state), ExtensionPoint.PREEMPTABLE).tolist() == [
        False,
        True,
        False,
        True,
        False,
    ]


def test_priority_and_drf_have_no_say_in_reclaim() -> None:
    state = cluster([{"cpu": 2}], [gang(2, 0, cpu=1, minimum=0), gang(1, cpu=1, queue=1)])
    host, preemptor = asked(state, ["priority", "drf"], 2, Purpose.RECLAIM)
    assert not host.task_candidates(preemptor, all_of(state), ExtensionPoint.RECLAIMABLE).any()


def test_a_gang_group_reclaims_nothing_from_a_member_in_another_queue() -> None:
    state = cluster([{"cpu": 2}], [gang(2, 0, cpu=1, minimum=0, queue=1), gang(1, cpu=1)])
    host = Host(Context(state, policy((*USUAL, "proportion")), 0.0))
    assert candidate_mask(host, 2, Rule(Purpose.RECLAIM, (1,))).tolist() == [True, True, False]
    assert not candidate_mask(host, 2, Rule(Purpose.RECLAIM, (0, 1))).any()


def test_drf_lets_the_poorer_podgroup_take_from_the_richer_of_equal_priority() -> None:
    state = cluster([{"cpu": 4, "memory": 9, "pods": 99}], [gang(4, 0, cpu=1, minimum=0), gang(1, cpu=1)])
    host, preemptor = asked(state, ["drf"], 4)
    rows = np.array([0, 1, 2, 3])
    assert host.task_candidates(preemptor, all_of(state), ExtensionPoint.PREEMPTABLE)[rows].all()
    assert host.task_victims(preemptor, rows, ExtensionPoint.PREEMPTABLE).tolist() == [True, True, True, False]


def test_drf_charges_a_podgroup_only_for_tasks_that_may_go() -> None:
    # Without its 4 the richer podgroup would hold 1 against 2; without its 1 it holds 4.
    rich = Gang([Task(0, cpu=4), Task(0, cpu=1)], 0)
    poor = Gang([Task(0, cpu=1), Task(cpu=1)], 2)
    host, preemptor = asked(cluster([{"cpu": 6}], [rich, poor]), ["drf"], 3)
    assert host.task_victims(preemptor, np.array([0, 1]), ExtensionPoint.PREEMPTABLE).tolist() == [False, True]


def test_only_the_plugin_priority_keeps_a_task_from_work_of_higher_priority() -> None:
    state = cluster([{"cpu": 4}], [gang(3, 0, cpu=1, minimum=0, priority=5), gang(1, cpu=1, priority=1)])
    for plugins, may in ((["drf"], True), (["drf", "priority"], False)):
        host, preemptor = asked(state, plugins, 3)
        assert host.task_candidates(preemptor, all_of(state), ExtensionPoint.PREEMPTABLE)[:3].tolist() == [may] * 3


def by_task(state: Snapshot, chosen: Policy, podgroup: int, action: str = "preempt") -> Plan | NoPlan:
    purpose = Purpose.PREEMPT if action == "preempt" else Purpose.RECLAIM
    return propose(Attempt(state, chosen, purpose, (podgroup,), None, 0.0, action))


def holds(plan: Plan, state: Snapshot, chosen: Policy) -> bool:
    """Whether the plan is accepted with all its victims."""
    verdict = judge(plan, state, chosen, 0.0)
    return isinstance(verdict, Accepted) and verdict.statement.evictions.tolist() == plan.statement.evictions.tolist()


def test_a_plan_by_task_is_proposed_and_holds_when_judged_later() -> None:
    state = cluster([{"cpu": 2}], [gang(2, 0, cpu=1, minimum=0), gang(1, cpu=1, priority=1)])
    plan = by_task(state, policy(), 1)
    assert isinstance(plan, Plan)
    assert (plan.price.victims, plan.price.gangs_broken, plan.domain) == (1, 0, 0)
    later = replace(state, revision=state.revision + 1)
    assert holds(plan, state, policy())
    assert holds(plan, later, policy())
    shielded = with_tasks(later, plan.statement.evictions.tolist(), preemptible=False)
    assert isinstance(judge(plan, shielded, policy(), 0.0), Stale)


def test_a_plan_by_task_on_two_nodes_holds_when_judged_later() -> None:
    state = cluster([{"cpu": 1}] * 2, [gang(2, [1, 0], cpu=1, minimum=0), gang(2, cpu=1, priority=9)])
    plan = by_task(state, policy(), 1)
    assert isinstance(plan, Plan)
    assert plan.statement.evictions.tolist() == [0, 1]
    assert holds(plan, replace(state, revision=state.revision + 1), policy())


def test_a_plan_by_task_is_stale_where_others_are_on_their_way_by_now() -> None:
    chosen = policy([*USUAL, PluginSetting("evictionbudget", arguments=(("at_once", 1),))])
    state = cluster([{"cpu": 1}] * 2, [gang(2, [0, 1], cpu=1, minimum=0), gang(1, cpu=1, priority=1)])
    plan = by_task(state, chosen, 1)
    assert isinstance(plan, Plan)
    (victim,) = plan.statement.evictions.tolist()
    later = replace(with_tasks(state, [1 - victim], status=TERMINATING), revision=state.revision + 1)
    assert judge(plan, later, chosen, 0.0) == Stale(TOO_FAST)


def test_a_victim_that_only_its_queue_needs_gone_is_not_given_back_by_the_judge() -> None:
    state = cluster([{"cpu": 9}], [gang(2, 0, cpu=2, minimum=0), gang(1, cpu=1, priority=1)])
    full, chosen = with_queues(state, capability=4), policy(["priority", "gang", "capacity"])
    plan = by_task(full, chosen, 1)
    assert isinstance(plan, Plan)
    later = replace(full, revision=1)
    assert holds(plan, later, chosen)
    shrunk = with_queues(later, capability=2)
    assert isinstance(judge(plan, shrunk, chosen, 0.0), Stale)


def test_a_withdrawn_nomination_is_no_conflict() -> None:
    state = cluster(
        [{"cpu": 2}], [gang(1, cpu=2, priority=1), gang(1, 0, cpu=1, minimum=0), gang(1, cpu=2, priority=9)]
    )
    state = WhatIf.of(state).nominating(np.array([0]), np.array([0])).whole
    chosen = policy(topology_aware=True)
    plan = by_task(state, chosen, 2)
    assert isinstance(plan, Plan)
    assert plan.assumes.nodes.tolist() == [0]
    moved = replace(state, revision=1, nodes=replace(state.nodes, revision=frozen([1], np.int64)))
    assert holds(plan, moved, chosen)


def test_an_attempt_by_task_keeps_to_its_domains() -> None:
    state = cluster(
        [{"cpu": 1}] * 2,
        [gang(2, [0, 1], cpu=1, minimum=0), gang(1, cpu=1, priority=1, required_level=0)],
        racks=(1, 1),
    )
    attempt = Attempt(state, policy(), Purpose.PREEMPT, (1,), np.array([2]), 0.0, "preempt")
    plan = propose(attempt)
    assert isinstance(plan, Plan)
    assert plan.statement.nominated_node.tolist() == [1]
    assert isinstance(propose(replace(attempt, domains=np.zeros(0, np.int64))), NoPlan)
