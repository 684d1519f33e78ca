"""Podgroups of one kind that starve in vain: one of them is searched for, and the others are told the same."""

from dataclasses import replace

import pytest

from tests.support.asking import DEFAULT, VOLCANO, served
from tests.support.builders import Gang, Task, cluster, gang
from tests.support.editing import with_groups

NODES = [{"gpu": 4}] * 2


@pytest.mark.parametrize("policy", [replace(DEFAULT, actions=("preempt",)), replace(VOLCANO, actions=("gangpreempt",))])
def test_the_others_of_a_kind_are_told_what_the_first_was(policy):
    waiting = [gang(3, gpu=4, priority=9) for _ in range(20)]
    done, asked = served(cluster(NODES, [gang(1, n, gpu=4) for n in (0, 1)] + waiting), policy)
    assert [one for one in asked if len(one) == 1] == [(2,)]
    assert [one.gang_group for one in done.unplaced] == [(row,) for row in range(2, 22)]
    first, *others = (one.why for one in done.unplaced)
    for row, why in enumerate(others, 3):
        assert why.preemptor == row
        assert (why.reason, why.minimum, why.tried) == (first.reason, first.minimum, first.tried)
        assert [one.cause for one in why.obstacles] == [one.cause for one in first.obstacles]


def test_an_obstacle_names_a_task_of_the_podgroup_that_is_told():
    waiting = [gang(2, gpu=8, priority=9) for _ in range(3)]
    done, _ = served(cluster(NODES, [gang(1, 0, gpu=4), *waiting]), replace(DEFAULT, actions=("preempt",)))
    for one in done.unplaced:
        named = {obstacle.task for obstacle in one.why.obstacles if obstacle.task >= 0}
        assert named
        assert {int(done.snapshot.tasks.podgroup[row]) for row in named} == {one.gang_group[0]}


def test_after_a_plan_each_kind_is_searched_for_again():
    """The first gang finds no room, the second does; the third, like the first, is searched for on what that left."""
    waiting = [gang(3, gpu=4, priority=9), gang(1, gpu=4, priority=8), gang(3, gpu=4, priority=7)]
    done, asked = served(
        cluster(NODES, [gang(1, n, gpu=4) for n in (0, 1)] + waiting), replace(DEFAULT, actions=("preempt",))
    )
    assert asked == [(2,), (3,), (4,)]
    assert [plan.statement.preemptor for plan in done.plans] == [3]


def test_a_delay_is_told_to_each_by_its_own_age():
    waiting = [gang(1, gpu=4, priority=9) for _ in range(2)]
    state = cluster([{"gpu": 4}], [gang(1, 0, gpu=4), *waiting])
    state = with_groups(state, [1, 2], preemption_delay_s=[60.0, 0.0], created=[0.0, -1.0])
    done, _ = served(state, replace(DEFAULT, actions=("preempt",)))
    assert [plan.statement.preemptor for plan in done.plans] == [2]


def test_what_has_parts_is_searched_for_each_time():
    tasks = [Task(gpu=4, role=0), Task(gpu=4), Task(gpu=4)]
    waiting = [Gang(tasks, 2, priority=9, roles=(1,)) for _ in range(3)]
    _, asked = served(cluster([{"gpu": 4}], [gang(1, 0, gpu=4), *waiting]), replace(DEFAULT, actions=("preempt",)))
    assert asked == [(1,), (2,), (3,)]


def test_podgroups_of_a_kind_without_room_are_not_sought_room_for_together():
    waiting = [gang(1, gpu=gpu, priority=9) for gpu in (8, 6, 8, 8)]
    done, asked = served(cluster(NODES, [gang(1, 0, gpu=4), *waiting]), replace(DEFAULT, actions=("preempt",)))
    assert asked == [(1, 2, 3, 4), (1,), (2,)]
    assert len(done.unplaced) == 4
