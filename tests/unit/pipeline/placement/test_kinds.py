"""Podgroups of one kind are answered alike, so only the first of them is asked about."""

import pytest

from pipeline.actions import allocate as module
from pipeline.cycle import cycle
from pipeline.placement.kinds import kinds_in_turn, podgroup_kind
from tests.support.alike import UNLIKE
from tests.support.asking import DEFAULT
from tests.support.builders import Gang, Task, cluster, gang

NODES = [{"gpu": 4}]


def kinds(*gangs):
    state = cluster(NODES, gangs)
    return [podgroup_kind(state, (row,)) for row in range(len(gangs))]


def test_podgroups_that_ask_for_the_same_are_of_one_kind():
    first, second = kinds(gang(2, gpu=4), gang(2, gpu=4))
    assert first is not None
    assert first == second


@pytest.mark.parametrize("other", UNLIKE)
def test_podgroups_that_differ_in_anything_that_matters_are_not(other):
    first, second = kinds(gang(2, gpu=4), other)
    assert first != second


@pytest.mark.parametrize(
    "other",
    [
        Gang([Task(gpu=4), Task(gpu=2), Task(gpu=2)], 2),
        Gang([Task(gpu=4, role=0), Task(gpu=4), Task(gpu=4)], 2, roles=(1,)),
        gang(2, [0, 0], gpu=1),
    ],
)
def test_what_can_do_without_tasks_that_differ_or_have_roles_and_what_runs_already_is_of_no_kind(other):
    assert kinds(other) == [None]


def test_gangs_that_need_all_of_their_tasks_are_of_one_kind_if_each_task_asks_for_the_same_whatever_its_role():
    some = [Task(gpu=4), Task(gpu=2)]
    roles = [Task(gpu=4, role=0), Task(gpu=2, role=1)]
    first, second, third, fourth = kinds(
        Gang(some, 2), Gang(roles, 2, roles=(1, 1)), Gang(some[::-1], 2), Gang([*some, Task(gpu=2)], 3)
    )
    assert first is not None
    assert first == second
    assert first not in (third, fourth)


def test_kinds_that_are_looked_up_together_are_those_of_each_alone():
    gangs = [gang(2, gpu=4), gang(2, gpu=4), gang(2, [0, 0], gpu=1), *UNLIKE, gang(2, gpu=4)]
    state, alone = cluster(NODES, gangs), kinds(*gangs)
    asked = [*((row,) for row in range(len(gangs))), (0, 1)]
    assert list(kinds_in_turn(state, asked)) == list(zip(asked, [*alone, None], strict=True))


def test_allocate_tries_only_the_first_of_a_kind_that_fits_nowhere(monkeypatch):
    tried, place = [], module.placer_of(DEFAULT)

    def noting(host, podgroups, action, *, surplus_limit=None):
        tried.append(podgroups)
        return place(host, podgroups, action, surplus_limit=surplus_limit)

    monkeypatch.setattr(module, "placer_of", lambda _: noting)
    waiting = [*(gang(1, gpu=8) for _ in range(5)), gang(1, gpu=1), *(gang(1, gpu=8) for _ in range(5))]
    done = cycle(cluster(NODES, waiting), DEFAULT, 0.0)
    assert [made.preemptor for made in done.statements] == [5]
    assert tried == [(0,), (5,)]
