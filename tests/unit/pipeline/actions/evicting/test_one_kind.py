"""Which gangs are of one kind, so that room for them can be sought at once."""

import pytest

from pipeline.actions.evicting.one_kind import of_one_kind
from tests.support.alike import UNLIKE
from tests.support.builders import cluster, gang

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
