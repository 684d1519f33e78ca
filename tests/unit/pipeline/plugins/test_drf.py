"""Hierarchical drf: queues and podgroups by weighted dominant shares over the tree of queues."""

from dataclasses import replace

import numpy as np
import pytest

from pipeline.cluster.arrays import NO_ROWS, NONE
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.what_if import WhatIf
from pipeline.plugins.drf import DominantShare
from pipeline.plugins.plugin import Context, Preemptor
from pipeline.policy import PluginSetting, Purpose
from tests.support.builders import Gang, Task, cluster, gang
from tests.support.editing import with_queues
from tests.support.task_centric import policy

TREE = PluginSetting("drf", (("*", True), ("hierarchy", True)))


def drf(state: Snapshot, setting: PluginSetting = TREE) -> DominantShare:
    return DominantShare(Context(state, policy(), 0.0), setting)


def tree(gangs: list[Gang], parents: list[int], weights: list[float], cpu: int = 100) -> Snapshot:
    """Queues with parents (before children) and weights, over one node."""
    state = cluster([{"cpu": cpu, "memory": 100, "pods": 1_000}], gangs, queues=len(parents))
    return with_queues(state, weight=weights, parent=parents)


def holding(queue: int, cpu: int = 0, memory: int = 0, *, waits: bool = True) -> Gang:
    """A podgroup that runs one task, and waits with another."""
    task = Task(0, cpu=cpu, memory=memory)
    return Gang([task, replace(task, node=NONE)] if waits else [task], queue=queue)


def ranked(state: Snapshot) -> list[int]:
    (rank,) = drf(state).queue_order(NO_ROWS)
    return rank.tolist()


def test_a_queue_of_twice_the_weight_may_hold_twice_as_much() -> None:
    gangs = [holding(1, cpu=40), holding(2, cpu=30)]
    assert ranked(tree(gangs, [NONE, 0, 0], [1, 2, 1]))[1:] == [1, 2]
    assert ranked(tree(gangs, [NONE, 0, 0], [1, 1, 1]))[1:] == [2, 1]


def test_cousins_are_compared_where_their_ancestors_part() -> None:
    # Scaled to its smaller child the left branch holds 20 + 20, the right one 25: even the child of 20 comes after it.
    parents = [NONE, 0, 0, 1, 1, 2]
    gangs = [holding(3, cpu=30), holding(4, cpu=20), holding(5, cpu=25)]
    rank = ranked(tree(gangs, parents, [1] * 6))
    assert rank[5] < rank[4] < rank[3]


def test_a_child_with_other_needs_is_scaled_and_not_charged_for_its_siblings() -> None:
    # One child holds 40 of cpu, the other 10 of memory: scaled to 10 each, their queue's share is 0.1 and not 0.4.
    gangs = [holding(1, cpu=40), holding(1, memory=10), holding(2, cpu=15)]
    state = tree(gangs, [NONE, 0, 0], [1, 1, 1])
    rank = ranked(state)
    assert rank[1] < rank[2]


def test_who_has_all_that_it_wants_is_served_last() -> None:
    rank = ranked(tree([holding(1, cpu=1, waits=False), holding(2, cpu=50)], [NONE, 0, 0], [1, 1, 1]))
    assert rank[2] < rank[1]


def test_podgroups_follow_the_order_of_their_queues() -> None:
    state = tree([holding(1, cpu=30), holding(2, cpu=5), holding(2, cpu=15)], [NONE, 0, 0], [1, 1, 1])
    assert drf(state).job_order().tolist() == [2, 0, 1]
    flat = drf(state, PluginSetting("drf")).job_order()
    assert np.argsort(flat).tolist() == [1, 2, 0]


def test_the_tree_is_off_unless_it_is_named() -> None:
    flat = drf(tree([holding(1, cpu=30)], [NONE, 0], [1, 1]), PluginSetting("drf"))
    assert flat.queue_order(NO_ROWS) == ()
    assert flat.task_quota_filter(Preemptor((0,), np.array([1, 0, 1, 0]), Purpose.RECLAIM, 0), np.array([0])) is None


def test_promised_tasks_count_as_held() -> None:
    state = cluster([{"cpu": 100}], [gang(1, cpu=30), gang(1, 0, cpu=20)])
    assert drf(state, PluginSetting("drf")).job_order()[0] == 0
    promised = WhatIf.of(state).nominating(np.array([0]), np.array([0])).whole
    assert drf(promised, PluginSetting("drf")).job_order()[0] == pytest.approx(0.3)


def test_reclaim_goes_on_only_while_the_preemptors_queue_stays_ahead() -> None:
    # Queue 1 holds 4 of 10, all of one podgroup; queue 2 has nothing and asks for one. 1 < 3 and 1 < 2, but not 1 < 1.
    rich, poor = Gang([*[Task(0, cpu=10)] * 4, Task(cpu=10)], queue=1), Gang([Task(cpu=10)] * 3, queue=2)
    state = tree([rich, poor], [NONE, 0, 0], [1, 1, 1])
    asks = Preemptor((1,), state.shapes.request[state.tasks.shape[5]], Purpose.RECLAIM, 5)
    assert drf(state).task_quota_filter(asks, np.arange(4)).tolist() == [True, True, False, False]
