"""Which gangs are of one kind, so that room for them can be sought at once."""

from dataclasses import replace

import pytest

from pipeline.actions.evicting.one_kind import (
    MOST_RANKED,
    by_kind,
    of_one_kind,
    rigid_apart,
    rigid_of_one_rank,
    waiting_of_few_kinds,
    waiting_of_one_kind,
)
from pipeline.cluster.tables import SUCCEEDED
from tests.support.alike import UNLIKE
from tests.support.builders import Gang, Task, cluster, gang

NODES = [{"gpu": 4}]


def leading(*gangs):
    return len(of_one_kind(cluster(NODES, gangs), [(row,) for row in range(len(gangs))]))


def test_gangs_that_ask_for_the_same_in_one_queue_are_of_one_kind():
    assert leading(gang(2, gpu=4), gang(2, gpu=4), gang(2, gpu=4)) == 3


@pytest.mark.parametrize("other", UNLIKE)
def test_what_asks_for_something_else_ends_the_row(other):
    assert leading(gang(2, gpu=4), gang(2, gpu=4), other, gang(2, gpu=4)) == 2


def test_lone_tasks_and_gangs_that_start_together_are_served_one_by_one():
    assert leading(gang(1, gpu=4), gang(1, gpu=4)) == 0
    pair = cluster(NODES, [gang(2, gpu=4), gang(2, gpu=4)])
    assert of_one_kind(pair, [(0, 1)]) == []
    assert of_one_kind(pair, []) == []


def ranked(*gangs):
    return len(rigid_of_one_rank(cluster(NODES, gangs), [(row,) for row in range(len(gangs))]))


def test_gangs_that_ask_for_different_things_in_one_queue_are_of_one_rank():
    assert ranked(gang(2, gpu=4), gang(1, gpu=4), gang(3, gpu=1)) == 3
    assert ranked(gang(2, gpu=4), gang(1, gpu=2), gang(1, gpu=2, priority=1)) == 2
    assert ranked(gang(2, gpu=4), Gang([Task(gpu=4), Task(gpu=2)], 2), gang(1, gpu=1)) == 3


def test_gangs_that_all_ask_for_the_same_and_many_gangs_are_not_served_by_rank():
    assert ranked(gang(2, gpu=4), gang(2, gpu=4)) == 0
    some = [gang(1, gpu=1 + at % 2) for at in range(MOST_RANKED + 1)]
    assert (ranked(*some[1:]), ranked(*some)) == (MOST_RANKED, 0)


#: It needs as many tasks as wait; a third one has ended.
ENDED = Gang([Task(gpu=4), Task(gpu=4), Task(gpu=4, status=SUCCEEDED)], 2)


@pytest.mark.parametrize("other", [*(UNLIKE[at] for at in (2, 3, 4, 5, 6, 8)), ENDED])
def test_what_is_of_another_rank_or_has_more_to_it_ends_the_row(other):
    assert ranked(gang(2, gpu=4), gang(1, gpu=4), other, gang(2, gpu=4)) == 2


def apart(*gangs):
    rows = [(row,) for row in range(len(gangs))]
    return len(rigid_apart(cluster(NODES * 2, gangs, racks=[1, 1]), rows))


def test_gangs_of_one_rank_that_need_a_domain_each_are_served_together_though_they_ask_for_different_things():
    assert apart(gang(2, gpu=4, required_level=0), gang(1, gpu=4, required_level=0), gang(2, gpu=4)) == 2
    assert apart(gang(2, gpu=4, required_level=0), gang(2, gpu=4, required_level=0, priority=1)) == 0
    assert apart(gang(2, gpu=4), gang(2, gpu=4)) == 0
    assert apart(*[gang(2, gpu=4, required_level=0)] * 2, replace(ENDED, required_level=0)) == 2
    some = [gang(1, gpu=1, required_level=0)] * (MOST_RANKED + 1)
    assert (apart(*some[1:]), apart(*some)) == (MOST_RANKED, 0)


@pytest.mark.parametrize("lead", [waiting_of_one_kind, waiting_of_few_kinds])
def test_podgroups_that_can_do_without_some_tasks_are_served_at_once_too_unless_they_have_roles(lead):
    def many(*gangs):
        return len(lead(cluster(NODES, gangs), [(row,) for row in range(len(gangs))]))

    spare = [Gang([Task(gpu=1)] * (3 + (at % 2 and lead is waiting_of_few_kinds)), 2) for at in range(MOST_RANKED + 2)]
    role = Gang([Task(gpu=1, role=0)] * 3, 2, roles=(0,))
    assert many(*spare) == len(spare)
    assert many(*spare[:-1], role, *spare) == len(spare) - 1
    assert many(*[replace(one, minimum=0) for one in spare]) == 0
    assert many(*[replace(one, minimum=9) for one in spare]) == 0


def in_turns(*gangs):
    return len(waiting_of_few_kinds(cluster(NODES, gangs), [(row,) for row in range(len(gangs))]))


def test_many_podgroups_of_one_rank_are_served_kind_by_kind_if_there_are_some_of_each():
    some = [gang(1, gpu=1 + at % 2) for at in range(MOST_RANKED + 1)]
    assert (in_turns(*some), in_turns(*some[1:])) == (MOST_RANKED + 1, 0)
    assert in_turns(*some, gang(1, gpu=1, priority=1), gang(1, gpu=1)) == MOST_RANKED + 1
    assert in_turns(*some, gang(1, gpu=1, required_level=0)) == MOST_RANKED + 1
    assert in_turns(*[gang(1, gpu=1)] * 20) == 0


def test_podgroups_that_mostly_ask_for_different_things_are_not():
    alone = [gang(1, gpu=1, cpu=at) for at in range(40)]
    assert in_turns(*alone[:10], *alone[:9]) == 0
    assert in_turns(*alone[:10], *alone[:10]) == 20


def test_the_kind_that_asks_for_most_is_served_first():
    gangs = [gang(1, gpu=1), gang(2, gpu=1), gang(1, gpu=1), gang(1, gpu=4), gang(1, gpu=4), gang(2, gpu=1)]
    rows = [(row,) for row in range(len(gangs))]
    assert by_kind(cluster(NODES, gangs), rows) == [[(3,), (4,)], [(1,), (5,)], [(0,), (2,)]]
