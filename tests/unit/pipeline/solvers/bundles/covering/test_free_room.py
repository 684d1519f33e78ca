"""The nodes of one domain while victims leave: where slots alone decide, tasks go where the general way puts them."""

import numpy as np
import pytest

from actors.benchmarks.figures import attempt_on
from actors.fleets.generated import GangSpec, generate
from actors.fleets.mixed import MIXED
from pipeline.cluster.arrays import NO_ROWS
from pipeline.placement.layout.topology_packing import Packing
from pipeline.placement.need import need_of
from pipeline.propose import host_of
from pipeline.solvers.bundles.bundling.terms import BundleSearch
from pipeline.solvers.bundles.covering.free_room import FreeRoom
from pipeline.solvers.bundles.search import search_of
from tests.support.builders import Gang, Task, cluster, searching


def search_for(gang: GangSpec, mixed: str | None = None) -> BundleSearch:
    fleet = generate(40, gang)
    attempt = attempt_on(fleet if mixed is None else MIXED[mixed](fleet, gang=True))
    return search_of(attempt, host_of(attempt), need_of(attempt.snapshot, attempt.podgroups, surplus=False))


@pytest.mark.parametrize("tasks", [1, 8, 30, 100, 400])
@pytest.mark.parametrize("gpus", [1, 8])
def test_tasks_that_are_alike_go_where_the_general_way_puts_them(tasks: int, gpus: int) -> None:
    search = search_for(GangSpec(tasks, gpus))
    assert search.only_slots
    topology, draw = search.snapshot.topology, np.random.default_rng(tasks)
    for domain in range(len(topology.start)):
        first, last = search.nodes_of(domain)
        free = FreeRoom(search, domain)
        here = np.flatnonzero((search.snapshot.placed.node >= first) & (search.snapshot.placed.node < last))
        free.leave(draw.permutation(here)[: draw.integers(0, len(here) + 1)])
        packing = Packing(search.need, search.open[:, first:last], first, last, search.snapshot)
        found, general = free.arranged(NO_ROWS), packing.places(free.ground.room, NO_ROWS)
        assert (None if found is None else found.tolist()) == (None if general is None else general.tolist())


@pytest.mark.parametrize("mixed", ["shapes", "subgroups", "cards", "affinity"])
def test_slots_alone_do_not_say_where_a_gang_goes_that_asks_for_more(mixed: str) -> None:
    assert not search_for(GangSpec(16, 1), mixed).only_slots


def test_a_gang_with_tasks_in_another_rack_is_placed_in_the_general_way() -> None:
    gang = Gang([Task(0, gpu=1), Task(gpu=1)], minimum=2, required_level=0)
    snapshot = cluster([{"gpu": 4}] * 2, [gang], racks=(1, 1))
    search = searching(snapshot, 0)
    assert not search.only_slots
    assert FreeRoom(search, 2).arranged(NO_ROWS) is None
    beside = FreeRoom(search, 1).arranged(NO_ROWS)
    assert beside is not None
    assert beside.tolist() == [0]
