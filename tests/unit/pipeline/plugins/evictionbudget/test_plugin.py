"""How much may be evicted at once, and how much more than is needed."""

from dataclasses import replace
from typing import Any

from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import SUCCEEDED, TERMINATING
from pipeline.decision.attempt import Attempt
from pipeline.decision.decided import carried_out
from pipeline.decision.law import TOO_FAST
from pipeline.decision.plan import NoPlan, Plan
from pipeline.decision.verdict import Accepted, Stale
from pipeline.judge import judge
from pipeline.policy import PluginSetting, Policy, Purpose
from pipeline.propose import propose
from tests.support.asking import DEFAULT, VOLCANO, plan, refusal, victims
from tests.support.assembly import Assembly, rack_cluster
from tests.support.assembly import gang as podgroup
from tests.support.builders import cluster, gang
from tests.support.editing import with_tasks

NODE = {"gpu": 4}


def bounded(policy: Policy = DEFAULT, **arguments: Any) -> Policy:
    """The policy with a budget of evictions."""
    setting = PluginSetting("evictionbudget", arguments=tuple(arguments.items()))
    return replace(policy, plugins=(*policy.plugins, setting))


def rigid(nodes: int = 1) -> Snapshot:
    """Each node is full of one gang of four that goes whole or not at all; a gang of one waits."""
    return cluster([NODE] * nodes, [*(gang(4, n, gpu=1) for n in range(nodes)), gang(1, gpu=1, priority=1)])


def test_no_more_is_evicted_than_so_many_times_what_is_needed():
    assert victims(plan(rigid(), 1, policy=bounded(ratio=4.0))) == [0, 1, 2, 3]
    assert refusal(rigid(), 1, policy=bounded(ratio=3.9)) == "ILLEGAL"
    assert victims(plan(rigid(), 1)) == [0, 1, 2, 3]


def test_only_resources_that_are_asked_for_count_and_pods_do_not():
    state = cluster([{"gpu": 4, "cpu": 9}], [gang(4, 0, gpu=1, cpu=2), gang(1, gpu=4, priority=1)])
    assert len(victims(plan(state, 1, policy=bounded(ratio=1.0)))) == 4


def test_no_more_podgroups_break_than_may():
    state = cluster([NODE] * 2, [*(gang(1, n // 4, gpu=1) for n in range(8)), gang(1, gpu=4, priority=1)])
    assert plan(state, 8).price.gangs_broken == 4
    assert len(victims(plan(state, 8, policy=bounded(breaks=4)))) == 4
    assert refusal(state, 8, policy=bounded(breaks=3)) == "ILLEGAL"


def test_what_a_podgroup_can_spare_breaks_none():
    state = cluster([NODE], [gang(4, 0, gpu=1, minimum=1), gang(3, gpu=1, priority=1), gang(4, gpu=1, priority=1)])
    assert len(victims(plan(state, 1, policy=bounded(breaks=0)))) == 3
    assert refusal(state, 2, policy=bounded(breaks=0)) == "ILLEGAL"


def test_no_more_than_so_many_are_on_their_way_out_at_once():
    state = cluster([NODE] * 2, [gang(4, 0, gpu=1), gang(4, 1, gpu=1, minimum=0), gang(4, gpu=1, priority=1)])
    assert len(victims(plan(state, 2, policy=bounded(at_once=4)))) == 4
    assert refusal(state, 2, policy=bounded(at_once=3)) == "ILLEGAL"


def test_two_plans_do_not_overdraw_the_budget_together():
    policy = bounded(at_once=6)
    waiting = [gang(1, gpu=4, priority=1)] * 2
    state = cluster([NODE] * 2, [*(gang(4, n, gpu=1, minimum=0) for n in range(2)), *waiting], racks=(1, 1))
    first, second = (plan(state, 2 + at, policy=policy, domains=[1 + at]) for at in range(2))
    verdict = judge(first, state, policy, 0.0)
    assert isinstance(verdict, Accepted)
    after = replace(carried_out(verdict.statement, state, 0.0), revision=state.revision + 1)
    assert judge(second, after, policy, 0.0) == Stale(TOO_FAST)
    ended = with_tasks(after, victims(first), status=SUCCEEDED)
    assert isinstance(judge(second, ended, policy, 0.0), Accepted)


def test_task_by_task_no_more_go_than_may_be_on_their_way_at_once():
    state = cluster([NODE], [gang(4, 0, gpu=1, minimum=0), gang(1, gpu=2, priority=1)])
    for at_once, found in ((2, Plan), (1, NoPlan)):
        policy = bounded(VOLCANO, at_once=at_once)
        made = propose(Attempt(state, policy, Purpose.PREEMPT, (1,), None, 0.0, "preempt"))
        assert isinstance(made, found)


def test_a_storm_of_gangs_is_served_as_far_as_the_budget_goes_and_then_later():
    full = rack_cluster(racks=4)
    full["podgroups"] = [podgroup(f"low{at}", 1, 8, nodes=[f"n{at}"]) for at in range(16)]
    assembly = Assembly(full, policy=bounded(at_once=4))
    assembly.hear()
    for at in range(4):
        assembly.submit(podgroup(f"big{at}", 3, 8, priority=5, topology={"required": "rack"}))
    assert sum(answer.accepted for answer in assembly.cycle().answers) == 1
    for _ in range(60):
        assembly.turn()
        assert (assembly.ingest.snapshot.tasks.status == TERMINATING).sum() <= 4
    assert {assembly.status(f"big{at}-0") for at in range(4)} == {"Running"}
