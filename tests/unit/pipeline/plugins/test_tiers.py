"""Tiers: where one that has decided ends the count, and where everybody is asked."""

from dataclasses import replace
from typing import Any

import pytest

from actors.configuration.profiles import load_profile
from pipeline.cluster.arrays import NONE
from pipeline.cluster.tables import PHASE_INQUEUE, PHASE_PENDING
from pipeline.cycle import cycle
from pipeline.policy import PluginSetting
from tests.support.asking import VOLCANO, host_on
from tests.support.builders import cluster, gang
from tests.support.editing import with_groups, with_parents
from tests.support.task_centric import victims

SLA = PluginSetting("sla", arguments=(("waiting_time", 60.0),))
OVERCOMMIT, CAPACITY = PluginSetting("overcommit"), PluginSetting("capacity")
BY_PRIORITY = PluginSetting("priority")
GANG, PRIORITY = (PluginSetting(name, (("job_starving", True),)) for name in ("gang", "priority"))


def in_tiers(*tiers: tuple[PluginSetting, ...]) -> Any:
    plugins = tuple(replace(plugin, tier=at) for at, tier in enumerate(tiers) for plugin in tier)
    return replace(VOLCANO, plugins=plugins, actions=("enqueue",))


@pytest.mark.parametrize(
    ("tiers", "now", "phase"),
    [
        (((OVERCOMMIT,), (SLA,)), 90.0, PHASE_PENDING),
        (((SLA,), (OVERCOMMIT,)), 30.0, PHASE_PENDING),  # it has not waited long enough
        (((SLA,), (OVERCOMMIT,)), 90.0, PHASE_INQUEUE),
        (((SLA, OVERCOMMIT),), 90.0, PHASE_PENDING),  # within a tier a rejection prevails
        (((CAPACITY,), (OVERCOMMIT,)), 0.0, PHASE_INQUEUE),  # its queue takes it
        (((CAPACITY, OVERCOMMIT),), 0.0, PHASE_PENDING),
        (((SLA,),), 0.0, PHASE_INQUEUE),  # nobody minds
    ],
)
def test_a_tier_that_admits_ends_the_count(tiers, now, phase):
    """A podgroup that wants more than there is, in a tree of queues whose root states no ceiling."""
    state = with_groups(cluster([{"gpu": 4}], [gang(1, gpu=1)]), 0, phase=PHASE_PENDING, min_resources=[NONE] * 3 + [9])
    state = with_groups(with_parents(state, NONE, 0), 0, queue=1)
    assert cycle(state, in_tiers(*tiers), now).snapshot.podgroups.phase.tolist() == [phase]


@pytest.mark.parametrize(
    ("tiers", "rank"),
    [
        (((SLA,), (BY_PRIORITY,)), [2, 0, 1]),
        (((BY_PRIORITY,), (SLA,)), [1, 2, 0]),
        (((PluginSetting("sla"),), (BY_PRIORITY,)), [1, 2, 0]),  # it has no opinion
    ],
)
def test_the_earlier_deadline_comes_first_where_there_is_one(tiers, rank):
    state = cluster([{}], [gang(1, cpu=1, priority=priority) for priority in (1, 0, 2)])
    assert host_on(with_groups(state, ..., created=[5.0, 3.0, 4.0]), in_tiers(*tiers)).job_rank.tolist() == rank


@pytest.mark.parametrize(("tiers", "starves"), [
    (((GANG, PRIORITY),), False), (((GANG,), (PRIORITY,)), False), (((PRIORITY,), (GANG,)), True), (((), ()), False),
])  # fmt: skip
def test_the_first_tier_that_answers_says_who_starves(tiers, starves):
    """A podgroup that has its minimum, and a task that waits."""
    state = cluster([{"gpu": 1}], [gang(2, [0, NONE], gpu=1, minimum=1)])
    assert host_on(state, in_tiers(*tiers)).starving.tolist() == [starves]


def test_of_victims_all_plugins_are_asked():
    """The gang plugin in the second tier protects a gang that priority in the first would give up."""
    running, waiting = gang(1, 0, gpu=1), gang(1, gpu=1, priority=9)
    priority, protecting = PluginSetting("priority"), PluginSetting("gang", (("preemptable", True),))
    policy = replace(in_tiers((priority,), (protecting,)), actions=("preempt",))
    state = cluster([{"gpu": 1}], [running, waiting])
    assert victims(cycle(state, policy, 0.0)) == []
    assert victims(cycle(state, replace(policy, plugins=policy.plugins[:1]), 0.0)) == [0]


def test_a_cluster_files_tiers_are_counted_from_the_first():
    block = {"tiers": [[{"name": "gang"}], [{"name": "drf"}, {"name": "sla"}]]}
    assert [(plugin.name, plugin.tier) for plugin in load_profile("volcano", block).plugins] == [
        ("gang", 0), ("drf", 1), ("sla", 1),
    ]  # fmt: skip
    flat = {"tiers": [[plugin for tier in block["tiers"] for plugin in tier]]}
    assert load_profile("volcano", block).digest != load_profile("volcano", flat).digest
