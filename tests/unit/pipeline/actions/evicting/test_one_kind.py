"""Which gangs are of one kind, so that room for them can be sought at once."""

import pytest

from pipeline.actions.evicting.one_kind import of_one_kind
from tests.support.builders import Gang, Task, cluster, gang

NODES = [{"gpu": 4}]


def leading(*gangs):
    return len(of_one_kind(cluster(NODES, gangs), [(row,) for row in range(len(gangs))]))


def test_gangs_that_ask_for_the_same_in_one_queue_are_of_one_kind():
    assert leading(gang(2, gpu=4), gang(2, gpu=4), gang(2, gpu=4)) == 3


@pytest.mark.parametrize(
    "other",
    [
        gang(2, gpu=2),
        gang(3, gpu=4),
        gang(2, gpu=4, priority=1),
        gang(2, gpu=4, queue=1),
        gang(2, gpu=4, required_level=0),
        Gang([Task(gpu=4), Task(gpu=2)], 2),
        Gang([Task(gpu=4, role=0), Task(gpu=4, role=0)], 2, roles=(2,)),
    ],
)
def test_what_asks_for_something_else_ends_the_row(other):
    assert leading(gang(2, gpu=4), gang(2, gpu=4), other, gang(2, gpu=4)) == 2


def test_lone_tasks_and_gangs_that_start_together_are_served_one_by_one():
    assert leading(gang(1, gpu=4), gang(1, gpu=4)) == 0
    pair = cluster(NODES, [gang(2, gpu=4), gang(2, gpu=4)])
    assert of_one_kind(pair, [(0, 1)]) == []
    assert of_one_kind(pair, []) == []
