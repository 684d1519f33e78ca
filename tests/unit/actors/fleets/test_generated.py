"""The fleet that measurements run on."""

import numpy as np
import pytest

from actors.fleets.generated import GangSpec, generate
from pipeline.cluster.arrays import NONE
from pipeline.placement.need import need_of
from tests.support.encoded import encoded


@pytest.fixture(scope="module")
def fleet():
    return generate(2_000, GangSpec(64, 8, "pod"), seed=3)


def test_the_same_seed_gives_the_same_bytes_and_another_seed_another_fleet():
    assert encoded(generate(100, seed=5).snapshot) == encoded(generate(100, seed=5).snapshot)
    assert encoded(generate(100, seed=5).snapshot) != encoded(generate(100, seed=6).snapshot)


def test_it_is_full_to_99_percent_of_its_devices_and_no_node_is_overfull(fleet):
    room = fleet.snapshot.room
    assert (room.idle >= 0).all()
    assert room.idle[:, 3].sum() <= 0.01 * 8 * 2_000
    assert 9 <= len(fleet.snapshot.tasks) / 2_000 <= 12


def test_its_domains_nest_and_leave_no_node_out(fleet):
    topology = fleet.snapshot.topology
    inner = topology.parent != NONE
    outer = topology.parent[inner]
    assert (topology.start[inner] >= topology.start[outer]).all()
    assert (topology.stop[inner] <= topology.stop[outer]).all()
    for level in range(topology.levels):
        rows = topology.at_level(level)
        assert topology.start[rows].tolist() == [0, *topology.stop[rows][:-1]]
        assert topology.stop[rows][-1] == 2_000


def test_its_podgroups_are_rigid_elastic_broken_and_loose(fleet):
    counts, groups = fleet.snapshot.counts, fleet.snapshot.podgroups
    running = counts.running > 0
    spare = (counts.ready - groups.min_available)[running]
    assert 0.6 < np.mean(spare == 0) < 0.95
    assert (spare < 0).any()
    assert (spare > 0).any()


def test_its_gang_waits_whole_with_a_level_of_its_own(fleet):
    need = need_of(fleet.snapshot, (fleet.gang,))
    assert (need.minimum, need.request[0, 3], need.parts[0].required_level) == (64, 8, 0)
