"""Turns: who gets how much before another gets a look, and that nobody is evicted in the cycle that starts it."""

from dataclasses import replace

import pytest

from pipeline.actions import allocate
from pipeline.cluster.arrays import NONE
from pipeline.cluster.tables import PENDING, TERMINATING
from pipeline.cycle import cycle
from pipeline.policy import PluginSetting
from tests.support.asking import VOLCANO
from tests.support.builders import cluster, gang
from tests.support.editing import edited, with_groups, with_tasks

NODE = {"gpu": 4}
GANG = PluginSetting("gang")
READY = PluginSetting("gang", (("job_ready", True), ("job_pipelined", True), ("job_starving", True)))
CAPACITY = PluginSetting("capacity", (("queue_order", True),))
DRF = PluginSetting("drf", (("job_order", True),))
PRIORITY = PluginSetting("priority")


def bound(state, *plugins):
    """How many tasks of each podgroup are bound."""
    done = cycle(state, replace(VOLCANO, plugins=plugins, actions=("allocate",)), 0.0)
    return done.snapshot.counts.running.tolist()


def waiting(*podgroups):
    """Podgroups of (tasks, minimum, queue) over one node of four devices, the older first."""
    gangs = [gang(many, gpu=1, minimum=minimum, queue=queue) for many, minimum, queue in podgroups]
    state = cluster([NODE], gangs)
    return with_groups(state, list(range(len(gangs))), created=[float(row) for row in range(len(gangs))])


@pytest.mark.parametrize(
    ("plugins", "expected"),
    [
        ((READY,), [4, 0]),  # nothing but age decides
        ((GANG,), [2, 2]),  # who lacks its minimum goes first
        ((READY, DRF), [2, 2]),
        ((), [4, 0]),
    ],
)
def test_what_is_beyond_the_minimum_waits_for_those_that_the_policy_puts_first(plugins, expected):
    assert bound(waiting((4, 1, 0), (2, 2, 0)), *plugins) == expected


@pytest.mark.parametrize(
    ("plugins", "expected"), [((GANG, CAPACITY), [2, 2]), ((GANG, DRF), [4, 0]), ((GANG,), [4, 0])]
)
def test_queues_take_turns_where_their_order_goes_by_what_they_hold(plugins, expected):
    """Both deserve two devices."""
    state = waiting((4, 1, 0), (4, 1, 1))
    assert bound(edited(state, "queues", (..., -1), deserved=2), *plugins) == expected


def test_others_have_their_turns_behind_podgroups_of_one_kind_that_find_no_room():
    state = cluster([NODE], [gang(1, gpu=gpus) for gpus in (5, 5, 1, 5)])
    assert bound(with_groups(state, ..., created=[1.0, 2.0, 3.0, 4.0]), GANG) == [0, 0, 1, 0]


def with_promise(*behind):
    """A node that is full and ending, and one of three devices; of a podgroup of two tasks one has a promise there."""
    waits = gang(2, gpu=1, minimum=1)
    state = cluster([{"gpu": 2}, {"gpu": 3}], [gang(1, 0, gpu=2), waits, *behind])
    return with_tasks(with_tasks(state, 0, status=TERMINATING), 1, nominated=0)


def after_allocate(state, *plugins):
    return cycle(state, replace(VOLCANO, plugins=plugins, actions=("allocate",)), 0.0).snapshot.counts


def test_a_podgroup_whose_minimum_is_promised_takes_its_turn_with_the_rest():
    """One task of it waits for room that comes free; the other finds room at once, as a podgroup of another queue."""
    state = with_promise(gang(1, gpu=1, minimum=1, queue=1))
    assert after_allocate(state, GANG, CAPACITY).pending.tolist() == [0, 0, 0]


def test_what_a_promised_minimum_leaves_waits_for_those_of_its_queue_that_lack_theirs():
    """One device is free; the other podgroup has more than this one by then, and lacks one task."""
    state = with_promise(gang(3, [1, 1, NONE], gpu=1))
    assert after_allocate(state, GANG, DRF).running.tolist() == [0, 0, 3]


def test_what_a_promised_minimum_leaves_waits_for_none_that_has_its_minimum():
    """Two devices are free, for a task of each; it once got its own in a second cycle, when nothing else waited."""
    state = with_promise(gang(2, [1, NONE], gpu=1, minimum=1))
    assert after_allocate(state, GANG).pending.tolist() == [0, 0, 0]


def test_many_take_larger_turns(monkeypatch):
    """A turn each for seven of eight devices: with two turns in all each gets half at once."""
    state = waiting((4, 0, 0), (4, 0, 0))
    assert bound(state, READY, DRF) == [2, 2]
    monkeypatch.setattr(allocate, "_TURNS", 2)
    assert bound(state, READY, DRF) == [4, 0]


def test_a_gang_starts_with_whatever_it_gets_where_no_plugin_says_when_it_may_start():
    state = waiting((6, 6, 0))
    assert bound(state, READY) == [0]
    assert bound(state, PluginSetting("gang", (("job_order", True),)), PRIORITY) == [4]
    assert bound(state) == [4]


@pytest.mark.parametrize("action", ["preempt", "gangpreempt"])
def test_who_starts_in_a_cycle_is_not_evicted_in_it(action):
    """The important gang needs the whole node, of which half is free: the second unimportant one takes that first."""
    running, new = gang(2, 0, gpu=1, minimum=0), gang(2, gpu=1, minimum=0, priority=1)
    state = cluster([NODE], [running, new, gang(1, gpu=4, priority=9)])
    policy = replace(VOLCANO, actions=("allocate", action))
    first = cycle(state, policy, 0.0)
    assert first.snapshot.counts.running.tolist() == [2, 2, 0]
    assert not any(len(made.evictions) for made in first.statements)
    second = cycle(first.snapshot, policy, 1.0)
    assert sum(len(made.evictions) for made in second.statements) == 4
    assert (state.tasks.status[2:] == PENDING).all()
