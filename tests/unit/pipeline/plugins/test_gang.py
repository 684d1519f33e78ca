"""The gang plugin: valid, ready, promised, starving, at the level of podgroup, role and subgroup."""

from dataclasses import replace

import numpy as np
import pytest

from pipeline.cluster.arrays import NONE
from pipeline.cluster.rules.gang_groups import gang_group_of
from pipeline.cluster.rules.minima_met import minima_met
from pipeline.cluster.tables import BOUND, FAILED, SUCCEEDED, TERMINATING
from tests.support.asking import DEFAULT, host_on
from tests.support.builders import Gang, Task, cluster, gang
from tests.support.editing import with_gang_group, with_groups, with_tasks
from tests.support.task_centric import nominated

WAITS, RUNS = Task(cpu=1), Task(0, cpu=1)


def state(*said, **columns):
    return cluster([{}], [Gang(*said, **columns)])


def told(snapshot):
    """Valid, ready, pipelined and starving of the first podgroup."""
    met = minima_met(snapshot)
    return tuple(bool(one[0]) for one in (met.valid, met.ready, met.pipelined, met.starving))


# -- the podgroup ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tasks", "minimum", "expected"),
    [
        ([WAITS, WAITS], 3, (False, False, False, True)),  # too few exist
        ([WAITS, WAITS, RUNS], 3, (True, False, False, True)),
        ([RUNS, RUNS, WAITS], 2, (True, True, True, False)),
        ([Task(0, cpu=1, status=BOUND), Task(cpu=1, status=SUCCEEDED)], 2, (True, True, True, False)),
        ([RUNS, Task(0, cpu=1, status=TERMINATING)], 2, (False, False, False, True)),  # who is leaving does not count
        ([RUNS, Task(cpu=1, status=FAILED)], 2, (False, False, False, True)),
    ],
)
def test_a_podgroup_counts_what_is_bound_runs_or_succeeded(tasks, minimum, expected):
    assert told(state(tasks, minimum)) == expected


def test_what_was_promised_makes_a_podgroup_pipelined_but_not_ready():
    snapshot = nominated(state([RUNS, WAITS, WAITS], 2), {1: 0})
    assert told(snapshot) == (True, False, True, False)


def test_a_waiting_task_that_asks_for_nothing_counts_as_there_but_its_gang_starves():
    snapshot = with_tasks(state([RUNS, Task()], 2), [1], best_effort=True)
    assert told(snapshot) == (True, True, True, True)


# -- roles -------------------------------------------------------------------------------------------------------------


def of_roles(*roles, least, minimum):
    return state([Task(0 if runs else NONE, cpu=1, role=role) for role, runs in roles], minimum, roles=least)


def test_every_role_needs_its_own_minimum():
    snapshot = of_roles((0, False), (1, True), (1, True), least=(1, 1), minimum=2)
    assert told(snapshot) == (True, False, False, True)
    assert told(nominated(snapshot, {0: 0})) == (True, False, True, False)


def test_a_role_that_lacks_tasks_makes_a_podgroup_invalid():
    assert told(of_roles((1, True), (1, True), (1, True), least=(1, 1), minimum=2))[0] is False


def test_an_elastic_podgroup_is_not_held_by_its_roles():
    snapshot = of_roles((1, True), (1, True), least=(1, 2), minimum=2)
    assert told(snapshot) == (True, True, True, False)


# -- subgroups ---------------------------------------------------------------------------------------------------------


def of_parts(*parts, tree, minimum=1, least=NONE):
    tasks = [Task(0 if runs else NONE, cpu=1, subgroup=part) for part, runs in parts]
    return state(tasks, minimum, subgroups=tree, min_subgroups=least)


TWO = [(NONE, 1, NONE), (NONE, 2, NONE)]


def test_all_subgroups_must_be_whole_unless_fewer_are_asked_for():
    parts = ((0, True), (1, True), (1, False))
    assert told(of_parts(*parts, tree=TWO)) == (True, False, False, True)
    assert told(of_parts(*parts, tree=TWO, least=1)) == (True, True, True, False)


def test_a_promise_to_a_subgroup_counts_for_it():
    snapshot = of_parts((0, True), (1, True), (1, False), tree=TWO)
    assert told(nominated(snapshot, {2: 0})) == (True, False, True, False)


def test_a_subgroup_that_lacks_tasks_makes_a_podgroup_invalid():
    assert told(of_parts((0, True), (1, True), tree=TWO)) == (False, False, False, True)


def test_inner_subgroups_are_whole_by_their_children():
    tree = [(NONE, 0, 1), (0, 1, NONE), (0, 1, NONE), (NONE, 1, NONE)]
    assert told(of_parts((1, True), (2, False), (3, True), tree=tree))[1] is True
    assert told(of_parts((1, False), (2, False), (3, True), tree=tree))[1] is False
    strict = [(NONE, 0, 2), *tree[1:]]
    assert told(of_parts((1, True), (2, False), (3, True), tree=strict))[1] is False


@pytest.mark.parametrize(("minimum", "valid"), [(2, True), (3, False)])
def test_a_podgroup_of_fewer_tasks_than_its_minimum_is_not_scheduled(minimum: int, valid: bool):
    assert host_on(state([WAITS, WAITS], minimum)).valid.tolist() == [valid]


# -- gang groups -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("match_policy", "started", "valid"),
    [("once-satisfied", 9.0, True), ("once-satisfied", np.nan, False), ("waiting-and-running", 9.0, False)],
)
def test_a_podgroup_waits_for_one_that_it_names_and_that_is_gone_unless_it_was_satisfied_once(
    match_policy: str, started: float, valid: bool
):
    snapshot = with_gang_group(cluster([{}], [gang(2, cpu=1), gang(1, cpu=1)]), [0, 1])
    snapshot = with_groups(with_groups(snapshot, 0, started=started), 1, alive=False)
    assert bool(host_on(snapshot, replace(DEFAULT, match_policy=match_policy)).valid[0]) is valid


def test_podgroups_that_are_there_start_together_without_one_that_is_gone():
    snapshot = with_gang_group(cluster([{}], [gang(1, cpu=1)] * 3), [0, 1, 2])
    snapshot = with_groups(snapshot, 2, alive=False)
    assert gang_group_of(snapshot, 0) == gang_group_of(snapshot, 1) == (0, 1)


# -- order and life ----------------------------------------------------------------------------------------------------


def test_the_order_puts_gangs_that_are_not_ready_first():
    snapshot = cluster([{}], [gang(1, 0, cpu=1), gang(2, cpu=1)])
    assert host_on(snapshot).job_rank.tolist() == [1, 0]


def test_a_removed_podgroup_does_not_starve():
    snapshot = with_groups(cluster([{}], [gang(2, cpu=1)]), 0, alive=False)
    assert not minima_met(snapshot).starving.any()
