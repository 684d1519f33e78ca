"""One podgroup at a time: whether it would have its minimum with some more tasks placed."""

from dataclasses import replace

import numpy as np

from pipeline.cluster.arrays import NONE
from pipeline.cluster.rules.minima_met import minima_met
from pipeline.cluster.rules.minimum import has_minimum, leaves_with, starts_with
from tests.support.builders import Gang, Task, cluster
from tests.support.editing import with_groups, with_tasks
from tests.support.task_centric import nominated

NO_ROWS = np.zeros(0, np.int64)


def rows(*of: int) -> np.ndarray:
    return np.array(of, np.int64)


def test_a_podgroup_has_its_minimum_with_what_is_placed_a_moment_ago():
    state = cluster([{}], [Gang([Task(0, cpu=1), Task(cpu=1), Task(cpu=1)], 2)])
    assert not has_minimum(state, 0)
    assert has_minimum(state, 0, NONE, rows(2))
    assert starts_with(state, 0, rows(2))


def test_tasks_of_other_podgroups_do_not_help():
    state = cluster([{}], [Gang([Task(cpu=1)], 1), Gang([Task(cpu=1)], 1)])
    assert not has_minimum(state, 0, NONE, rows(1))


def test_a_promise_counts_for_having_the_minimum_but_not_for_starting():
    state = nominated(cluster([{}], [Gang([Task(cpu=1), Task(cpu=1)], 2)]), {0: 0})
    assert has_minimum(state, 0, NONE, rows(1))
    assert not starts_with(state, 0, rows(1))
    assert starts_with(state, 0, rows(0, 1))


def test_a_task_without_requests_counts_once_whether_placed_or_not():
    state = with_tasks(cluster([{}], [Gang([Task(), Task(cpu=1)], 2)]), [0], best_effort=True)
    assert not has_minimum(state, 0, NONE, rows(0))
    assert has_minimum(state, 0, NONE, rows(1))
    assert [starts_with(nominated(state, {0: 0}), 0, rows(*of)) for of in ((0,), (1,), (0, 1))] == [False, False, True]


def test_roles_bind_unless_the_podgroup_is_elastic():
    members = [Task(0, cpu=1, role=0), Task(cpu=1, role=0), Task(cpu=1, role=1)]
    rigid, elastic = (cluster([{}], [Gang(members, least, roles=(1, 1))]) for least in (2, 1))
    assert not has_minimum(rigid, 0, NONE, rows(1))
    assert has_minimum(rigid, 0, NONE, rows(2))
    assert has_minimum(elastic, 0)


def test_which_roles_bind_follows_a_snapshot_until_minima_change():
    before = cluster([{}], [Gang([Task(0, cpu=1, role=0), Task(cpu=1, role=1)], 2, roles=(1, 1))])
    assert before.roles_bind.tolist() == [True]
    same = replace(before, revision=before.revision + 1).following(before, rows(1))
    assert same.roles_bind is before.roles_bind
    elastic = with_groups(before, ..., min_available=1).following(before, rows())
    assert elastic.roles_bind.tolist() == [False]


def test_a_subgroup_is_asked_about_alone_inner_ones_by_their_children():
    tree = [(NONE, 0, 1), (0, 1, NONE), (0, 1, NONE), (NONE, 1, NONE)]
    members = [Task(cpu=1, subgroup=1), Task(cpu=1, subgroup=2), Task(0, cpu=1, subgroup=3)]
    state = cluster([{}], [Gang([Task(0, cpu=1)], 1), Gang(members, 1, subgroups=tree)])
    assert [has_minimum(state, 1, part, NO_ROWS) for part in range(4)] == [False, False, False, True]
    assert [has_minimum(state, 1, part, rows(2)) for part in range(4)] == [True, False, True, True]
    assert has_minimum(state, 1, NONE, rows(2))


def test_what_leaves_have_is_counted_by_podgroup():
    tree = [(NONE, 1, NONE), (NONE, 2, NONE)]
    members = [Task(0, cpu=1, subgroup=0), Task(cpu=1, subgroup=1), Task(cpu=1, subgroup=1), Task(cpu=1)]
    state = nominated(cluster([{}], [Gang(members, 3, subgroups=tree)] * 2), {5: 0})
    assert leaves_with(state, 0, rows(2, 3)).tolist() == [1, 1]
    assert leaves_with(state, 1, rows(2, 6, 7)).tolist() == [1, 2]
    assert leaves_with(state, 1, NO_ROWS).tolist() == [1, 1]


def test_one_podgroup_and_all_of_them_are_answered_alike():
    tree = [(NONE, 1, NONE), (NONE, 1, NONE)]
    gangs = [
        Gang([Task(0, cpu=1, role=0), Task(cpu=1, role=1)], 2, roles=(1, 1)),
        Gang([Task(0, cpu=1, subgroup=0), Task(cpu=1, subgroup=1)], 1, subgroups=tree),
        Gang([Task(0, cpu=1), Task(cpu=1)], 2),
    ]
    state = nominated(cluster([{}], gangs), {3: 0})
    assert minima_met(state).pipelined.tolist() == [has_minimum(state, g) for g in range(3)] == [False, True, False]
    assert minima_met(state).ready.tolist() == [starts_with(state, g, NO_ROWS) for g in range(3)] == [False] * 3
