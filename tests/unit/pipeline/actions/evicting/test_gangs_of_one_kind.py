"""Gangs of one kind or rank that starve at once: room for all is made together, and each gets its own plan."""

from dataclasses import replace

import numpy as np
import pytest

from pipeline.cycle import cycle
from tests.support.asking import DEFAULT, VOLCANO
from tests.support.builders import cluster, gang
from tests.support.editing import with_groups

NODES = [{"gpu": 4}] * 8
HOUR = 3600.0


def served(policy, *, second=2, spare=0):
    """One gang on four nodes, two on two nodes that lose more an hour, and two gangs that want two nodes each.

    ``spare``: how many tasks more than it needs the last one has.
    """
    running = [gang(4, range(4), gpu=4), gang(2, [4, 5], gpu=4), gang(2, [6, 7], gpu=4)]
    waiting = [gang(2, gpu=4, priority=9), gang(second + spare, gpu=4, priority=9, minimum=second)]
    state = cluster(NODES, [*running, *waiting])
    state = with_groups(state, [0, 1, 2], started=[0.0, -0.5 * HOUR, -0.6 * HOUR])
    return cycle(state, policy, 0.0)


def broken(done):
    return sorted({int(row) for made in done.statements for row in done.snapshot.tasks.podgroup[made.evictions]})


@pytest.fixture
def preempting():
    return replace(DEFAULT, actions=("preempt",))


def test_one_wide_gang_goes_where_two_narrow_ones_would_cost_more(preempting):
    done = served(preempting)
    assert broken(done) == [0]
    assert [len(plan.statement.nominated) for plan in done.plans] == [2, 2]
    assert len(np.unique(np.concatenate([plan.statement.nominated_node for plan in done.plans]))) == 4


def test_it_goes_too_where_one_of_them_wants_a_node_less(preempting):
    done = served(preempting, second=1)
    assert broken(done) == [0]
    assert [len(plan.statement.nominated) for plan in done.plans] == [2, 1]
    assert [plan.explanation.together for plan in done.plans] == [2, 2]


def test_gangs_that_can_do_without_a_task_are_served_one_by_one_where_they_differ(preempting):
    assert broken(served(preempting, spare=1)) == [1, 2]


def test_a_policy_that_keeps_the_order_of_bundles_serves_one_by_one():
    assert broken(served(replace(VOLCANO, actions=("gangpreempt",)))) == [1, 2]
