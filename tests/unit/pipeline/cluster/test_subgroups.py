"""Trees of subgroups: what is below, above and beside, and which of them are whole."""

from dataclasses import replace

import numpy as np
import pytest

from pipeline.cluster.arrays import NONE
from pipeline.cluster.queue_tree import with_descendants
from pipeline.cluster.subgroups import in_subtree, subtree, wholeness
from tests.support.builders import Gang, Task, cluster

#: Two podgroups. The first: a root (0) of which one child must be whole, its leaves 1 and 3, and a leaf 2 beside it.
TREE = [(NONE, 0, 1), (0, 1, NONE), (NONE, 1, NONE), (0, 2, NONE)]
OTHER = [(NONE, 1, NONE), (NONE, 3, NONE)]
PARENT = np.array([NONE, 0, NONE, 0, NONE, NONE], np.int32)


def state(min_subgroups: int = NONE):
    parts = [Gang([Task(cpu=1)], subgroups=TREE, min_subgroups=min_subgroups), Gang([Task(cpu=1)], subgroups=OTHER)]
    return cluster([{}], parts)


def test_a_subtree_is_the_row_and_everything_below_it():
    assert subtree(PARENT, 0, 4).tolist() == [0, 1, 3]
    assert subtree(PARENT, 2, 4).tolist() == [2]
    assert subtree(np.array([NONE, 0, 1, NONE, 2], np.int32), 1, 5).tolist() == [1, 2, 4]


def test_tasks_lie_in_a_subtree_if_their_leaf_does():
    table = state().subgroups
    leaves = np.array([NONE, 1, 2, 3, 4, 5, 0], np.int32)
    assert in_subtree(table, 0, leaves).tolist() == [False, True, False, True, False, False, True]
    assert in_subtree(table, 5, leaves).tolist() == [False, False, False, False, False, True, False]


def test_sums_go_upwards_through_every_level():
    chain = np.array([NONE, 0, 1, 0], np.int32)
    assert with_descendants(chain, np.array([[1], [2], [4], [8]])).tolist() == [[15], [6], [4], [8]]


@pytest.mark.parametrize(
    ("have", "whole", "slack"),
    [
        ([0, 1, 1, 0, 1, 3], [1, 1, 1, 0, 1, 1], [0, 0, 0, 0, 0, 0, 0, 0]),
        ([0, 1, 0, 2, 1, 2], [1, 1, 0, 1, 1, 0], [1, 0, 0, 0, 0, 0, -1, -1]),
        ([0, 0, 1, 1, 0, 0], [0, 0, 1, 0, 0, 0], [-1, 0, 0, 0, 0, 0, -1, -2]),
    ],
)
def test_wholeness_is_counted_from_the_leaves_upwards(have, whole, slack):
    found = wholeness(state().subgroups, state().podgroups, np.array(have, np.int32))
    assert found.whole.tolist() == [bool(one) for one in whole]
    assert found.slack.tolist() == slack
    assert found.holder.tolist() == [6, 0, 6, 0, 7, 7]


def test_a_podgroup_that_wants_one_subgroup_of_two_can_spare_the_other():
    found = wholeness(state(1).subgroups, state(1).podgroups, np.array([0, 1, 1, 0, 1, 3], np.int32))
    assert found.slack[6] == 1


def test_a_podgroup_without_subgroups_lacks_none_unless_it_asks_for_some():
    groups, nothing = state().podgroups, np.zeros(0, np.int32)
    table = replace(state().subgroups, **dict.fromkeys(vars(state().subgroups), nothing))
    asks = replace(groups, min_subgroups=np.array([NONE, 2], np.int32))
    assert wholeness(table, asks, nothing).slack.tolist() == [0, -2]
