"""The network topology plugin: which domains may hold a podgroup, and in which order."""

import pytest

from pipeline.cluster.arrays import NONE
from pipeline.placement.domains import domains_of
from pipeline.policy import Purpose
from tests.support.asking import VOLCANO, host_on
from tests.support.placing import BLOCK, RACK, Work, placed

# Four racks of one node, two blocks: 0 cluster, 1 block (2 rack, 3 rack), 4 block (5 rack, 6 rack).
RACKS, BLOCKS, CLUSTER = [2, 3, 5, 6], [1, 4], [0]


def offered(*work, policy=None, unit=(0,), **levels):
    groups = [levels, *[{}] * (max((task.group for task in work), default=0))]
    state = placed([4] * 4, [Work(0), *work], racks=(1, 1, 1, 1), groups=groups)
    found = host_on(state) if policy is None else host_on(state, policy)
    return domains_of(found, unit, Purpose.PREEMPT).tolist()


def test_without_a_word_on_topology_the_whole_cluster_is_one_domain():
    assert offered() == CLUSTER


@pytest.mark.parametrize(("level", "expected"), [(RACK, RACKS), (BLOCK, RACKS + BLOCKS)])
def test_a_required_level_admits_its_domains_and_narrower_ones_first(level, expected):
    assert offered(required_level=level) == expected


@pytest.mark.parametrize(
    ("level", "expected"), [(RACK, [*RACKS, *BLOCKS, *CLUSTER]), (BLOCK, [*RACKS, *BLOCKS, *CLUSTER])]
)
def test_a_preferred_level_only_orders(level, expected):
    assert offered(preferred_level=level) == expected


def test_who_runs_already_is_bound_to_domains_that_hold_it():
    assert offered(Work(0, node=1), required_level=RACK) == [3]
    assert offered(Work(0, node=1), required_level=BLOCK) == [3, 1]
    assert offered(Work(0, node=0), Work(0, node=1), required_level=BLOCK) == [1]


def test_who_only_prefers_to_be_close_grows_outwards_from_where_it_is():
    assert offered(Work(0, node=2), preferred_level=RACK) == [5, 4, 0]
    assert offered(Work(0, node=0), Work(0, node=3), preferred_level=RACK) == [0]


def test_a_promise_binds_like_a_running_task():
    assert offered(Work(0, nominated=2), required_level=BLOCK) == [5, 4]


def test_who_is_torn_already_has_no_domain():
    assert offered(Work(0, node=0), Work(0, node=3), required_level=BLOCK) == []


def test_podgroups_that_start_together_share_a_domain_of_every_level_that_one_requires():
    assert offered(Work(1, node=3), required_level=BLOCK, unit=(0, 1)) == RACKS + BLOCKS


def test_all_domains_are_offered_in_every_profile():
    assert offered(policy=VOLCANO, required_level=RACK) == RACKS


def test_none_stands_for_no_level():
    assert offered(required_level=NONE, preferred_level=NONE) == CLUSTER
