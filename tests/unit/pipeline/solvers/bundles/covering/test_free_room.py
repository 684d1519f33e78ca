"""The nodes of one domain while victims leave: where slots alone decide, tasks go where the general way puts them."""

from dataclasses import dataclass

import numpy as np
import pytest

from actors.benchmarks.figures import attempt_on
from actors.fleets.generated import GangSpec, generate
from actors.fleets.mixed import MIXED
from pipeline.cluster.arrays import NO_ROWS, NONE, Bools, Rows
from pipeline.placement.layout.topology_packing import Packings
from pipeline.placement.need import need_of
from pipeline.placement.room.ground import leave, suffices, try_return, usable_of
from pipeline.propose import host_of
from pipeline.solvers.bundles.bundling.bundle_search import BundleSearch
from pipeline.solvers.bundles.bundling.records import Units
from pipeline.solvers.bundles.covering.free_room import FreeRoom
from pipeline.solvers.bundles.solver import search_of
from tests.support.builders import Gang, Task, cluster, searching


def search_for(gang: GangSpec, *mixed: str) -> BundleSearch:
    fleet = generate(40, gang, queues=0)
    for one in mixed:
        fleet = MIXED[one](fleet, gang=True)
    attempt = attempt_on(fleet)
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
        packing = Packings(search.need, search.open, search.snapshot).on(first, last)
        found, general = free.placed_nodes(NO_ROWS), packing.places(free.ground.room, NO_ROWS)
        assert (None if found is None else found.tolist()) == (None if general is None else general.tolist())


@pytest.mark.parametrize("mixed", ["shapes", "subgroups", "cards", "affinity"])
def test_slots_alone_do_not_say_where_a_gang_goes_that_asks_for_more(mixed: str) -> None:
    assert not search_for(GangSpec(16, 1), mixed).only_slots


@dataclass(frozen=True)
class Gone:
    """Entries that leave."""

    search: BundleSearch
    entry: Rows

    @property
    def victims(self) -> Rows:
        return np.sort(self.search.snapshot.occupancy.task[self.entry])

    def without(self, back: Bools) -> "Gone":
        """Those that leave once some (bool[K]) have returned."""
        return Gone(self.search, self.entry[~back])


def left_at_random(search: BundleSearch, domain: int, draw: np.random.Generator) -> tuple[FreeRoom, Gone]:
    """A domain after some of its candidates left."""
    first, last = search.nodes_of(domain)
    placed = search.snapshot.placed
    here = np.flatnonzero((placed.node >= first) & (placed.node < last) & search.terms.entries.candidate)
    gone = draw.permutation(here)[: draw.integers(0, len(here) + 1)]
    free = FreeRoom(search, domain)
    free.leave(gone)
    return free, Gone(search, gone)


@pytest.mark.parametrize("other", ["cards", "affinity"])
def test_slots_say_whether_subgroups_find_racks_if_their_tasks_share_cards_or_are_repelled(other: str) -> None:
    search = search_for(GangSpec(64, 1), "subgroups", other)
    assert search.parts is not None
    draw, seen = np.random.default_rng(1), set[bool]()
    for domain in np.flatnonzero(search.snapshot.topology.tier > 1).tolist() * 20:
        free, gone = left_at_random(search, domain, draw)
        assert free.exact
        places = free.places(gone)
        assert places == (free.placed_nodes(gone.victims) is not None)
        seen.add(places)
    assert seen == {True, False}


@pytest.mark.parametrize("mixed", [("shapes",), ("subgroups", "shapes")])
def test_with_what_returns_to_it_a_gang_of_several_shapes_is_placed(mixed: tuple[str, ...]) -> None:
    search = search_for(GangSpec(64, 1), *mixed)
    draw, returned = np.random.default_rng(2), 0
    for domain in np.flatnonzero(search.snapshot.topology.tier > 1).tolist() * 5:
        free, gone = left_at_random(search, domain, draw)
        if not free.places(gone):
            continue
        assert not free.exact
        each, room = np.arange(len(gone.entry)), free.ground.room.copy()
        units = Units(each + 1, gone.entry, np.full(len(each), NONE, np.int64), each)
        back = free.reprieve(units, gone.without)
        returned += int(back.sum())
        last = gone.without(back)
        assert free.placed_nodes(last.victims) is not None
        np.add.at(room, free.ground.node[gone.entry[back]] - free.ground.first, -free.ground.held[
            free.ground.shape[gone.entry[back]]
        ])  # fmt: skip
        assert (free.ground.room == room).all()
        for at in np.flatnonzero(~back).tolist():
            assert not still_places(search, domain, Gone(search, np.delete(gone.entry, [*np.flatnonzero(back), at])))
    assert returned > 0


@pytest.mark.parametrize("mixed", [("shapes",), ("shapes", "cards"), ("shapes", "affinity")])
def test_slots_that_shapes_would_have_to_share_are_counted_once_and_counts_follow_what_leaves_and_returns(
    mixed: tuple[str, ...],
) -> None:
    search = search_for(GangSpec(48, 1), *mixed)
    draw, shared = np.random.default_rng(3), 0
    for domain in np.flatnonzero(search.snapshot.topology.tier > 1).tolist() * 5:
        free, gone = left_at_random(search, domain, draw)
        ground = free.ground
        alone, together = bool((ground.total >= ground.wanted).all()), suffices(ground)
        shared += alone and not together
        assert together or not free.places(gone)
        before = np.empty((len(ground.wanted), len(gone.entry)), np.int64)
        for _ in range(8 if len(gone.entry) else 0):
            some = draw.permutation(gone.entry)[: draw.integers(1, len(gone.entry) + 1)]
            some = some[np.argsort(ground.node[some], kind="stable")]
            kept = [column.copy() for column in (ground.room, ground.slots, ground.total, ground.usable, ground.spare)]
            if try_return(some, before, ground):
                leave(some, ground)
            now = ground.room, ground.slots, ground.total, ground.usable, ground.spare
            assert all((one == other).all() for one, other in zip(kept, now, strict=True))
        usable, spare = usable_of(ground.request, ground.wanted, ground.scarce, ground.room, ground.slots)
        assert (usable.tolist(), spare.tolist()) == (ground.usable.tolist(), ground.spare.tolist())
    assert shared > 0


def still_places(search: BundleSearch, domain: int, gone: Gone) -> bool:
    free = FreeRoom(search, domain)
    free.leave(gone.entry)
    return free.places(gone)


def test_a_gang_with_tasks_in_another_rack_is_placed_in_the_general_way() -> None:
    gang = Gang([Task(0, gpu=1), Task(gpu=1)], minimum=2, required_level=0)
    snapshot = cluster([{"gpu": 4}] * 2, [gang], racks=(1, 1))
    search = searching(snapshot, 0)
    assert not search.only_slots
    assert FreeRoom(search, 2).placed_nodes(NO_ROWS) is None
    beside = FreeRoom(search, 1).placed_nodes(NO_ROWS)
    assert beside is not None
    assert beside.tolist() == [0]
