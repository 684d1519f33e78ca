"""What a cycle says of each podgroup at its end: "Gang Plugin", section 6."""

from dataclasses import replace

import numpy as np

from pipeline.cluster.arrays import NONE
from pipeline.cluster.rules.reaching import lacking_in_subgroups
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import FAILED, GONE, PHASE_PENDING, SUCCEEDED
from pipeline.cycle import cycle
from pipeline.placement.conditions import Condition, ConditionReason, unscheduled_in
from tests.support.builders import Gang, Task, cluster
from tests.support.clusters import compiled
from tests.support.editing import with_tasks
from tests.support.task_centric import nominated, policy


def condition(state: Snapshot, podgroup: int = 0) -> Condition:
    return next(found for found in unscheduled_in(state) if found.podgroup == podgroup)


def waiting(running: int, pending: int, minimum: int) -> Gang:
    return Gang([*[Task(0, cpu=1)] * running, *[Task(cpu=1)] * pending], minimum)


def test_a_gang_that_lacks_tasks_is_unschedulable_and_says_how_many() -> None:
    found = condition(cluster([{}], [waiting(1, 3, 4)]))
    assert found.reason == "NotEnoughResources"
    assert (found.tasks, found.schedulable, found.unready, found.retried) == (4, 1, 3, True)


def test_a_gang_with_its_minimum_is_scheduled_although_more_wait() -> None:
    assert tuple(unscheduled_in(cluster([{}], [waiting(2, 3, 2)]))) == ()


def test_succeeded_and_best_effort_tasks_make_ready() -> None:
    tasks = [Task(0, cpu=1), Task(0, cpu=1, status=SUCCEEDED), Task(cpu=1)]
    state = cluster([{}], [Gang(tasks, 3)])
    assert len(unscheduled_in(state)) == 1
    assert len(unscheduled_in(with_tasks(state, [2], best_effort=True))) == 0


def test_what_is_only_promised_is_not_schedulable_yet() -> None:
    state = nominated(cluster([{}], [waiting(0, 2, 2)]), {0: 0, 1: 0})
    found = condition(state)
    assert (found.schedulable, found.promised, found.unready) == (0, 2, 2)


def test_tasks_that_the_cycle_bound_count() -> None:
    state = cluster([{"cpu": 2}], [waiting(0, 2, 2), waiting(0, 3, 3)])
    done = cycle(state, replace(policy(["gang", "predicates"]), actions=("allocate",)), 0.0)
    (second,) = done.unscheduled
    assert (second.podgroup, second.unready, second.retried) == (1, 3, True)


def test_parts_that_cannot_become_whole_are_named_before_the_whole() -> None:
    role = Gang([Task(0, cpu=1, role=0), Task(cpu=1, role=1)], 3, roles=(2, 1))
    whole = waiting(0, 1, 2)
    subgroup = Gang([Task(0, cpu=1, subgroup=0), Task(0, cpu=1)], 2, subgroups=((NONE, 2, NONE),))
    reasons = [found.reason for found in unscheduled_in(cluster([{}], [role, whole, subgroup]))]
    assert reasons == [
        ConditionReason.TOO_FEW_OF_A_PART, ConditionReason.TOO_FEW, ConditionReason.TOO_FEW_OF_A_PART,
    ]  # fmt: skip


def test_a_gang_that_lacks_only_a_role_lacks_as_many_tasks_as_the_role() -> None:
    tasks = [*[Task(0, cpu=1, role=0)] * 3, *[Task(cpu=1, role=1)] * 2]
    found = condition(cluster([{}], [Gang(tasks, 3, roles=(1, 2))]))
    assert (found.reason, found.unready) == ("NotEnoughResources", 2)


def test_a_terminated_podgroup_is_not_tried_again() -> None:
    found = condition(cluster([{}], [Gang([Task(cpu=1, status=FAILED)], 1)]))
    assert (found.unready, found.retried) == (1, False)


def test_a_podgroup_without_tasks_has_no_condition() -> None:
    state = cluster([{}], [Gang([], 0), Gang([Task(cpu=1, status=GONE)], 1)])
    assert tuple(unscheduled_in(state)) == ()


def test_a_podgroup_that_was_not_admitted_says_so() -> None:
    state = cluster([{}], [waiting(0, 2, 2)])
    state = replace(state, podgroups=replace(state.podgroups, phase=np.array([PHASE_PENDING], np.uint8)))
    assert condition(state).reason is ConditionReason.NOT_ADMITTED


def test_gated_tasks_are_told_where_the_minimum_needs_them_and_only_there() -> None:
    state = with_tasks(cluster([{}], [waiting(0, 3, 2)]), [0], gated=True)
    assert (condition(state).reason, condition(state).gated) == (ConditionReason.NO_ROOM, 1)
    state = with_tasks(state, [1], gated=True)
    assert (condition(state).reason, condition(state).gated) == (ConditionReason.GATED, 2)


def test_a_tree_of_subgroups_lacks_what_the_fewest_tasks_would_make_whole() -> None:
    leaves = {"a": 3, "b": 2, "c": 4}
    inner = [{"name": name, "min_available": least} for name, least in leaves.items()]
    tree = [{"name": "top", "min_subgroups": 2, "children": inner}, {"name": "d", "min_available": 9}]
    tasks = [{"name": f"{name}{at}", "subgroup": name, "request": {"cpu": 1}} for name in "abcd" for at in range(4)]
    gang = {"name": "g", "queue": "q", "min_available": 1, "min_subgroups": 1, "subgroups": tree, "tasks": tasks}
    file = {"version": 1, "nodes": [{"name": "n", "allocatable": {"cpu": 1}}], "queues": [{"name": "q"}]}
    state, _ = compiled(file | {"podgroups": [gang]})
    lacking, where, short = lacking_in_subgroups(state, np.array([0]), np.zeros(len(state.subgroups), np.int32))
    assert (lacking.tolist(), sorted(short.tolist())) == ([5], [2, 3])
    assert sorted(state.subgroups.min_available[where].tolist()) == [2, 3]
    assert condition(state).unready == 5
