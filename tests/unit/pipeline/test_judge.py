"""Judge: what still holds of a plan when the world has moved on."""

from dataclasses import replace

import numpy as np
import pytest

from actors.configuration.profiles import load_profile
from pipeline.cluster.arrays import NONE, frozen
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import GONE, RUNNING, TERMINATING
from pipeline.decision.decided import carried_out
from pipeline.decision.plan import Plan
from pipeline.decision.statement import Statement
from pipeline.decision.verdict import Accepted, Conflict, Stale, Verdict
from pipeline.judge import judge
from pipeline.policy import Policy, Purpose
from pipeline.propose import propose
from tests.support.asking import DEFAULT, VOLCANO, attempt, places, plan, victims
from tests.support.builders import Gang, Task, cluster, gang
from tests.support.editing import edited, with_budget, with_gang_group, with_groups, with_queues, with_quota, with_tasks
from tests.support.scenarios import SCENARIOS

NODE = {"gpu": 4}


def crowded(nodes: int = 1) -> Snapshot:
    """Each node is full of one gang of four that can lose all; a gang of two waits."""
    return cluster([NODE] * nodes, [*(gang(4, n, gpu=1, minimum=0) for n in range(nodes)), gang(2, gpu=1, priority=1)])


def later(snapshot: Snapshot) -> Snapshot:
    """One revision on."""
    return replace(snapshot, revision=snapshot.revision + 1)


def judged(made: Plan, snapshot: Snapshot, now: float = 0.0, policy: Policy = DEFAULT) -> Verdict:
    return judge(made, snapshot, policy, now)


def accepted(verdict: Verdict) -> Accepted:
    assert isinstance(verdict, Accepted), verdict
    return verdict


def with_room(snapshot: Snapshot, node: int, **amounts: int) -> Snapshot:
    """Another size of a node, as news."""
    cells = node, [snapshot.vocabulary.resources.index(name) for name in amounts]
    roomier = edited(snapshot, "nodes", cells, allocatable=[*amounts.values()])
    return later(edited(roomier, "nodes", node, revision=snapshot.nodes.revision[node] + 1))


def same(one: Statement, other: Statement) -> bool:
    """Whether two statements do the same."""
    columns = ("evictions", "nominated", "nominated_node", "bound", "bound_node", "admitted")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in columns)


def test_a_plan_is_accepted_as_it_is_on_the_snapshot_it_was_made_on():
    state = crowded()
    made = plan(state, 1)
    verdict = accepted(judged(made, state))
    assert same(verdict.statement, made.statement)
    assert verdict.dropped == 0


def test_news_that_touch_nothing_of_it_do_not_spoil_a_plan():
    state = crowded(nodes=2)
    made = plan(state, 2)
    elsewhere = [row for row in range(8) if state.tasks.node[row] != state.tasks.node[victims(made)[0]]]
    verdict = accepted(judged(made, later(with_tasks(state, elsewhere, status=GONE))))
    assert same(verdict.statement, made.statement)


def test_a_victim_that_is_gone_is_dropped():
    state = crowded()
    made = plan(state, 1)
    first, second = victims(made)
    verdict = accepted(judged(made, later(with_tasks(state, [first], status=GONE))))
    assert verdict.statement.evictions.tolist() == [second]
    assert verdict.dropped == 1


def test_a_victim_that_started_over_is_not_the_one_that_was_meant():
    """It came back as another incarnation on the same node: its room is not free, and the gang does not fit."""
    state = crowded()
    made = plan(state, 1)
    again = later(with_tasks(state, victims(made)[:1], incarnation=1, status=RUNNING))
    assert judged(made, again) == Stale("a victim started over and the gang no longer fits")


def test_room_that_was_promised_is_a_conflict_even_if_a_victim_started_over_elsewhere():
    state = cluster(
        [NODE] * 2, [gang(4, 0, gpu=1, minimum=0), gang(1, gpu=4, priority=1), gang(1, gpu=4, priority=1)], racks=(1, 1)
    )
    first, second = plan(state, 1, domains=[1]), plan(state, 2, domains=[1])
    assert victims(first) == victims(second) == [0, 1, 2, 3]
    after = carried_out(accepted(judged(first, state)).statement, state, 0.0)
    moved = later(with_tasks(after, [0], incarnation=1, status=RUNNING, node=1))
    assert judged(second, moved) == Conflict("the room was promised to another")


def test_victims_that_are_not_needed_any_more_stay():
    state = cluster([NODE], [gang(2, 0, gpu=1), gang(2, 0, gpu=1, minimum=0), gang(2, gpu=1, priority=1)])
    made = plan(state, 2)
    assert victims(made) == [2, 3]
    verdict = accepted(judged(made, with_room(state, 0, gpu=6)))
    assert (verdict.statement.evictions.tolist(), verdict.dropped) == ([], 2)


def test_of_surplus_only_as_much_goes_as_is_needed_by_now():
    state = crowded()
    made = plan(state, 1)
    assert len(victims(made)) == 2
    verdict = accepted(judged(made, with_room(state, 0, gpu=5)))
    assert (len(verdict.statement.evictions), verdict.dropped) == (1, 1)


def test_of_a_gang_that_is_needed_in_part_no_task_is_left_behind():
    """With one device more one victim would do, but podgroups return whole: no gang stays broken for nothing."""
    state = cluster([NODE], [gang(4, 0, gpu=1), gang(2, gpu=1, priority=1)])
    made = plan(state, 1)
    assert victims(made) == [0, 1, 2, 3]
    assert accepted(judged(made, with_room(state, 0, gpu=5))).statement.evictions.tolist() == [0, 1, 2, 3]


def test_of_a_gang_that_breaks_the_members_go_too_that_make_no_room():
    state = cluster([NODE] * 2, [gang(2, (0, 1), gpu=4), gang(1, gpu=4, priority=1)])
    made = plan(state, 1)
    assert (victims(made), len(places(made))) == ([0, 1], 1)
    assert same(accepted(judged(made, later(state))).statement, made.statement)


def test_what_is_left_of_a_broken_gang_goes_whole_where_its_solver_takes_it_whole():
    """One of two was given back on the very state of the plan, so later plans of its cycle found the queue full."""
    state = cluster([NODE], [Gang([Task(0, gpu=1)] * 2, 3), gang(1, gpu=1, priority=1)])
    state = with_quota(state, capability={0: {"gpu": 2}})
    for policy, gone in ((load_profile("kai"), [0, 1]), (DEFAULT, [1])):
        made = propose(replace(attempt(state, 1, policy=policy), action="preempt"))
        assert isinstance(made, Plan)
        assert accepted(judged(made, state, policy=policy)).statement.evictions.tolist() == victims(made) == gone


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        (lambda state: replace(state, epoch=state.epoch + 1), "renumbered"),
        (lambda state: with_groups(state, 1, alive=False), "preemptor is gone"),
        (lambda state: with_tasks(state, [4], status=GONE), "does not wait"),
        (lambda state: with_tasks(state, [4], status=RUNNING, node=0), "does not wait"),
        (lambda state: with_tasks(state, [5], gated=True), "does not wait"),
        (lambda state: replace(state, nodes=replace(state.nodes, schedulable=frozen([False], bool))), "takes no tasks"),
        (lambda state: with_tasks(state, [0, 1, 2, 3], preemptible=False), "may not be evicted"),
        (lambda state: with_groups(state, 0, priority=1), "may not be evicted"),
        (lambda state: with_tasks(state, [0, 1, 2, 3], critical=True), "may not be evicted"),
        (lambda state: with_budget(state, [0, 1, 2, 3], 1), "not lawful"),
        (lambda state: with_room(state, 0, gpu=3), "no longer fits"),
    ],
)
def test_a_plan_is_stale_once_the_world_moved_on(changed, reason):
    state = crowded()
    verdict = judged(plan(state, 1), later(changed(state)))
    assert isinstance(verdict, Stale)
    assert reason in verdict.reason


def test_a_plan_of_another_policy_is_stale():
    state = crowded()
    assert judged(plan(state, 1), state, policy=VOLCANO) == Stale("the policy changed")


def test_a_plan_expires():
    state = crowded()
    made = plan(state, 1)
    assert isinstance(judged(made, state, now=made.expires_at), Accepted)
    assert judged(made, state, now=made.expires_at + 0.001) == Stale("the plan expired")


def test_a_gang_group_is_judged_by_its_least_important_member():
    state = cluster([NODE], [gang(2, 0, gpu=2), gang(1, gpu=2, priority=2), gang(1, gpu=2, priority=1)])
    state = with_gang_group(state, [1, 2])
    made = plan(state, (1, 2))
    assert isinstance(judged(made, state), Accepted)
    dearer = later(with_groups(state, 0, priority=1))
    assert judged(made, dearer) == Stale("a victim may not be evicted any more")


def test_quotas_are_counted_anew():
    state = cluster([NODE], [gang(4, 0, gpu=1, minimum=0), gang(2, gpu=1, queue=1)])
    state = with_quota(state, deserved={0: {"gpu": 2}, 1: {"gpu": 2}})
    made = plan(state, 1, Purpose.RECLAIM)
    assert isinstance(judged(made, state), Accepted)
    more = later(with_quota(state, deserved={0: {"gpu": 3}}))
    assert judged(made, more) == Stale("the victims are not lawful together any more")
    less = later(with_quota(state, deserved={1: {"gpu": 1}}))
    assert judged(made, less) == Stale("the queue may not take more")
    kept = later(with_queues(state, reclaimable=[False, True]))
    assert judged(made, kept) == Stale("a victim may not be evicted any more")


def test_room_that_was_promised_to_another_is_a_conflict():
    """Both want the only idle room; who is judged second was too late."""
    state = cluster([NODE], [gang(2, gpu=2, priority=1), gang(2, gpu=2, priority=1)])
    first, second = plan(state, 0), plan(state, 1)
    after = later(carried_out(accepted(judged(first, state)).statement, state, 0.0))
    assert judged(second, after) == Conflict("the room was promised to another")


def test_two_plans_never_take_the_same_victim_for_two_gangs():
    state = cluster([NODE], [gang(2, 0, gpu=2, minimum=0), *[gang(1, gpu=4, priority=1)] * 2])
    first, second = plan(state, 1), plan(state, 2)
    assert victims(first) == victims(second) == [0, 1]
    after = later(carried_out(accepted(judged(first, state)).statement, state, 0.0))
    assert judged(second, after) == Conflict("the room was promised to another")


def test_a_plan_that_was_carried_out_is_not_carried_out_again():
    state = crowded()
    made = plan(state, 1)
    after = later(carried_out(accepted(judged(made, state)).statement, state, 0.0))
    assert judged(made, after) == Conflict("a task of the gang holds another nomination by now")
    assert isinstance(judged(made, later(with_tasks(after, [4, 5], status=RUNNING, node=0, nominated=NONE))), Stale)


def test_a_budget_is_not_overdrawn_by_two_plans():
    """The budget allows one; the plans are made side by side, and each takes one."""
    state = cluster([NODE] * 2, [gang(2, [0, 1], gpu=4, minimum=0), *[gang(1, gpu=4, priority=1)] * 2], racks=(1, 1))
    state = with_budget(state, [0, 1], 1)
    first, second = plan(state, 1, domains=[1]), plan(state, 2, domains=[2])
    assert (victims(first), victims(second)) == ([0], [1])
    after = later(carried_out(accepted(judged(first, state)).statement, state, 0.0))
    assert judged(second, after) == Stale("the victims are not lawful together any more")


def test_two_plans_that_push_a_queue_below_what_it_deserves_together_are_not_both_accepted():
    """Queue 0 holds eight and deserves four. Each plan takes four in a domain of its own; both leave it nothing."""
    gangs = [gang(4, 0, gpu=1, minimum=0), gang(4, 1, gpu=1, minimum=0), *[gang(1, gpu=4, queue=1)] * 2]
    state = with_quota(cluster([NODE] * 2, gangs, racks=(1, 1)), deserved={0: {"gpu": 4}, 1: {"gpu": 8}})
    first, second = plan(state, 2, Purpose.RECLAIM, domains=[1]), plan(state, 3, Purpose.RECLAIM, domains=[2])
    after = later(carried_out(accepted(judged(first, state)).statement, state, 0.0))
    assert isinstance(judged(second, later(state)), Accepted)
    assert judged(second, after) == Stale("the victims are not lawful together any more")


def test_plans_on_different_nodes_of_one_domain_do_not_conflict():
    state = cluster([NODE] * 2, [*(gang(4, n, gpu=1, minimum=0) for n in range(2)), *[gang(1, gpu=4, priority=1)] * 2])
    first = plan(state, 2)
    second = plan(carried_out(accepted(judged(first, state)).statement, state, 0.0), 3)
    assert first.domain == second.domain
    after = later(carried_out(accepted(judged(first, state)).statement, state, 0.0))
    assert same(accepted(judged(second, after)).statement, second.statement)


def test_a_victim_on_its_way_out_already_is_dropped_and_its_room_counted_once():
    state = crowded()
    made = plan(state, 1)
    verdict = accepted(judged(made, later(with_tasks(state, victims(made)[:1], status=TERMINATING))))
    assert (len(verdict.statement.evictions), verdict.dropped) == (1, 1)


def test_a_gang_that_lost_a_task_meanwhile_does_not_get_room_for_the_others():
    """Two of three are placed beside one that runs; it was taken by another decision, and two are not enough."""
    state = cluster([NODE], [gang(1, 0, gpu=2, minimum=0), gang(3, gpu=1, priority=1)])
    state = with_tasks(state, [1], status=RUNNING, node=0)
    made = plan(state, 1)
    assert isinstance(judged(made, state), Accepted)
    lost = later(with_tasks(state, [1], status=TERMINATING))
    assert judged(made, lost) == Stale("the gang would not have its minimum any more")


def test_what_is_left_of_a_gang_gets_no_room_once_the_promises_to_the_others_are_withdrawn():
    """Two of three were promised by an earlier plan, and the third is placed beside them; then they are withdrawn."""
    state = cluster([NODE], [gang(1, 0, gpu=2, minimum=0), gang(3, gpu=1, priority=1)])
    state = with_tasks(state, [1, 2], nominated=0)
    made = plan(state, 1)
    assert made.statement.placed.tolist() == [3]
    assert isinstance(judged(made, state), Accepted)
    withdrawn = later(with_tasks(state, [1, 2], nominated=NONE))
    assert judged(made, withdrawn) == Stale("the gang would not have its minimum any more")


def test_a_victim_that_is_still_ending_can_lose_the_node_that_it_was_to_move_to():
    """The first of two was to start again on node 1; the other is taken, so the first would be alone there."""
    low = Gang([Task(0, gpu=1, status=TERMINATING), Task(2, gpu=1)], 2)
    state = with_tasks(cluster([{"gpu": 1}] * 3, [low, gang(2, gpu=1, priority=1)]), [0], nominated=1)
    made = propose(replace(attempt(state, 1, policy=SCENARIOS), action="preempt"))
    assert isinstance(made, Plan)
    assert (victims(made), places(made)) == ([1], {0: NONE, 2: 0, 3: 2})
    assert isinstance(judged(made, state, policy=SCENARIOS), Accepted)
    moved = later(with_tasks(state, [0], status=RUNNING, node=1, nominated=NONE))
    assert judged(made, moved, policy=SCENARIOS) == Stale("a task of the gang does not wait any more")


def test_a_promise_that_a_plan_withdraws_does_not_count_against_its_queue():
    """The queue may hold two devices: one runs, one is promised, and the gang takes both. It was always stale."""
    state = cluster([{"gpu": 2}], [gang(1, 0, gpu=1, minimum=0), *(gang(n, gpu=1, priority=n) for n in (1, 2))])
    state = with_tasks(with_quota(state, capability={0: {"gpu": 2}}), [1], nominated=0)
    made = plan(state, 2)
    assert (victims(made), places(made)) == ([0], {1: NONE, 2: 0, 3: 0})
    assert same(accepted(judged(made, state)).statement, made.statement)
    assert same(accepted(judged(made, later(state))).statement, made.statement)
