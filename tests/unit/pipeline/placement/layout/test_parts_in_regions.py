"""Parts that go into one region each, counted in slots: against every way to place them, and against trying it out."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.cluster.arrays import NONE, frozen
from pipeline.cluster.rules.constraints import allowed
from pipeline.placement.layout import parts_in_regions as in_regions
from pipeline.placement.layout import region_slots as counted
from pipeline.placement.layout import topology_packing
from pipeline.placement.layout.parts import regions_at
from pipeline.placement.layout.parts_in_regions import parts_in_regions
from pipeline.placement.layout.region_slots import PartsInRegions
from pipeline.placement.need import need_of
from tests.support.placing import BLOCK, NOWHERE, RACK, Work, apart, placed
from tests.support.twins import uncompiled

RACKS = (2, 3, 1, 2)
NODES = sum(RACKS)
REGION = np.arange(len(RACKS)).repeat(RACKS)

sizes = st.lists(st.integers(1, 5), min_size=1, max_size=5).map(lambda them: sorted(them, reverse=True))
many_slots = st.lists(st.integers(0, 5), min_size=NODES, max_size=NODES)


def waiting(parts, cores=(9,) * NODES, more=(), level=RACK, **said):
    """A gang whose parts each lie in one domain of ``level``; and ``more`` tasks."""
    work = [Work(0, subgroup=part) for part, many in enumerate(parts) for _ in range(many)] + list(more)
    groups = [{"min_available": len(work), **said}]
    return placed(cores, work, racks=RACKS, groups=groups, subgroups=[(0, NONE, many, level) for many in parts])


def ways(size, slots):
    """Whether there is a way to place parts in regions with so many slots."""
    return any(
        (np.bincount(where, weights=size, minlength=len(slots)) <= slots).all()
        for where in product(range(len(slots)), repeat=len(size))
    )


def parts_of(size, region=REGION):
    none = frozen([], np.int32)
    return PartsInRegions(
        frozen(size, np.int32), min(size), len(set(size)) == 1, counted.ANY, none, frozen(region, np.int32), none
    )


def there(size, slots, region=REGION):
    return counted.region_slots(parts_of(size, region), 0, len(slots), np.array(slots, np.int64))


@given(sizes, many_slots)
def test_parts_fit_only_where_there_is_a_way_and_always_if_they_are_of_one_size(size, slots):
    with uncompiled():
        found, regions = counted.parts_fit(there(size, slots)), there(size, slots).slots
    possible = ways(size, regions)
    assert possible or not found
    if size[0] == size[-1]:
        assert found == possible


small_parts = st.lists(st.integers(1, 5), min_size=2, max_size=6).map(lambda them: sorted(them, reverse=True))


@given(small_parts.filter(lambda size: sum(size) <= 8), many_slots)
def test_parts_of_up_to_eight_tasks_together_fit_if_and_only_if_there_is_a_way(size, slots):
    with uncompiled():
        assert counted.parts_fit(there(size, slots)) == ways(size, there(size, slots).slots)


def test_tasks_that_must_not_share_a_region_are_parts_of_one_each_at_most_one_in_each():
    found = in_regions.apart_in_regions(3, np.array([7, 7, 4, 4, 9]))
    assert found is not None
    assert (found.size.tolist(), found.region.tolist()) == ([1, 1, 1], [0, 0, 1, 1, 2])
    with uncompiled():
        fit = [counted.parts_fit(counted.region_slots(found, 0, 5, np.array(slots))) for slots in (
            [2, 2, 0, 1, 1], [3, 3, 0, 3, 0],
        )]  # fmt: skip
        in_one = counted.region_slots(found, 0, 2, np.array([5, 5]))
    assert fit == [True, False]
    assert not counted.parts_fit(in_one)


@pytest.mark.parametrize("domains", [[0, 1, 0], [0, NONE, 1], [NONE, NONE, NONE]])
def test_domains_that_are_no_slices_of_all_nodes_are_no_regions(domains):
    assert in_regions.apart_in_regions(2, np.array(domains)) is None


@given(sizes, many_slots, st.lists(st.tuples(st.integers(0, NODES - 1), st.integers(0, 5)), max_size=6))
def test_slots_that_change_node_by_node_are_counted_as_if_anew(size, slots, changes):
    with uncompiled():
        kept = there(size, slots)
        for node, now in changes:
            counted.add_slots(kept, node, now - slots[node])
            slots[node] = now
        anew = there(size, slots)
    assert kept.slots.tolist() == anew.slots.tolist()
    assert kept.whole.tolist() == anew.whole.tolist() == [sum(many // size[-1] for many in anew.slots.tolist())]


def test_nodes_in_no_region_take_no_part_and_one_region_around_all_nodes_asks_nothing():
    with uncompiled():
        assert there([1], [5, 2, 3], [NONE, 4, 5]).slots.tolist() == [2, 3]
        assert not len(there([1], [5, 2], [3, 3]).parts.size)
        assert len(there([1], [5, 2], [3, NONE]).parts.size) == 1
        assert not counted.parts_fit(there([1], [5, 2], [NONE, NONE]))


def test_a_part_that_finds_no_region_moves_to_the_front():
    # The biggest first, each in the tightest region: 4 in the second, 3 and 3 in the first; 2 finds none.
    order, region = counted.chosen_regions(np.array([4, 3, 3, 2]), np.array([7, 5]), np.array([80]))
    assert (order.tolist(), region.tolist()) == ([3, 0, 1, 2], [0, 0, 1, 1])
    assert not len(counted.chosen_regions(np.array([3, 3]), np.array([5, 0]), np.array([80]))[0])


@given(sizes, st.lists(st.integers(0, 6), min_size=NODES, max_size=NODES), st.integers(0, 3))
def test_tasks_go_where_trying_it_out_puts_them(size, cores, rest):
    snapshot = waiting(size, cores, [Work(0)] * rest)
    need = need_of(snapshot, (0,))
    asked = need, allowed(snapshot, need.shapes), snapshot
    found = topology_packing.Packings(*asked).on(0, NODES).places(snapshot.room.future, NOWHERE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(topology_packing, "in_one_region_each", lambda _: None)
        tried = topology_packing.Packings(*asked).on(0, NODES).places(snapshot.room.future, NOWHERE)
    assert (found is None) == (tried is None)
    assert found is None or found.tolist() == tried.tolist()


@given(sizes, st.lists(st.integers(0, 6), min_size=NODES, max_size=NODES), st.integers(0, 3))
def test_the_compiled_kernels_and_their_plain_twins_agree(size, cores, rest):
    edges = np.append(0, np.cumsum(RACKS))
    request, open_to, room = np.array([[1]]), np.ones((1, NODES), bool), np.array(cores)[:, None]
    asked = request, open_to, room, np.array(size, np.int32), rest, edges[:-1], edges[1:]
    parts = parts_of(size)
    placing = in_regions.placed_in_regions(*asked)
    slots = counted.region_slots(parts, 0, NODES, room[:, 0].copy())
    with uncompiled():
        assert in_regions.placed_in_regions(*asked).tolist() == placing.tolist()
        again = counted.region_slots(parts, 0, NODES, room[:, 0].copy())
    assert [np.asarray(one).tolist() for one in again[1:]] == [np.asarray(one).tolist() for one in slots[1:]]


def test_slots_say_whether_parts_of_equal_tasks_fit_that_require_one_level():
    snapshot = waiting([3, 3])
    parts = parts_in_regions(need_of(snapshot, (0,)), snapshot)
    assert parts is not None
    assert (parts.size.tolist(), parts.region.tolist()) == ([3, 3], REGION.tolist())


@pytest.mark.parametrize(
    "change",
    [
        {"level": NONE}, {"preferred_level": BLOCK},
        {"more": [Work(0, cpu=2, subgroup=0)]}, {"more": [Work(0, node=0, subgroup=0)]},
        {"more": [Work(0, subgroup=0, constraint=apart(app="a"), labels=(("app", "a"),))]},
    ],
)  # fmt: skip
def test_elsewhere_they_are_placed_to_be_sure(change):
    snapshot = waiting(**({"parts": [3, 3]} | change))
    assert parts_in_regions(need_of(snapshot, (0,)), snapshot) is None


def nested(cores, outers):
    """A gang of outer parts, each in one block of two racks, of parts in one rack each."""
    tree, work = [], []
    for inner in outers:
        above = len(tree)
        tree.append((0, NONE, 0, BLOCK))
        for many in inner:
            work += [Work(0, subgroup=len(tree))] * many
            tree.append((0, above, many, RACK))
    groups = [{"min_available": len(work)}]
    return placed(cores, work, racks=[1] * len(cores), racks_a_block=2, groups=groups, subgroups=tree)


outer_parts = st.lists(st.lists(st.integers(1, 6), min_size=1, max_size=3), min_size=1, max_size=3)


@given(outer_parts, st.lists(st.integers(0, 14), min_size=6, max_size=6), st.booleans())
def test_parts_inside_parts_fit_exactly_where_trying_it_out_finds_places(outers, cores, all_like):
    outers = [[9, 9] for _ in outers] if all_like else [[many + 3 for many in inner] for inner in outers]
    snapshot = nested(cores, outers)
    need = need_of(snapshot, (0,))
    parts = parts_in_regions(need, snapshot)
    if parts is None:
        assert need.minimum <= 8
        return
    packings = topology_packing.Packings(need, allowed(snapshot, need.shapes), snapshot)
    for start, stop in ((0, 6), (0, 2), (2, 4), (3, 4)):
        room = snapshot.room.future[start:stop]
        with uncompiled():
            here = counted.region_slots(parts, start, stop, room[:, 0] // 1000)
            found = counted.parts_fit(here) and int(room[:, 0].sum()) // 1000 >= need.minimum
        assert found == (packings.on(start, stop).places(room, NOWHERE) is not None)


@pytest.mark.parametrize(
    "tree",
    [
        [(0, NONE, 0, BLOCK), (0, 0, 6, RACK), (0, NONE, 6, RACK)],
        [(0, NONE, 0, BLOCK), (0, 0, 6, RACK), (0, 0, 6, NONE)],
        [(0, NONE, 0, RACK), (0, 0, 6, RACK), (0, NONE, 6, BLOCK)],
    ],
)
def test_parts_inside_some_outer_parts_only_are_placed_to_be_sure(tree):
    work = [Work(0, subgroup=1)] * 6 + [Work(0, subgroup=2)] * 6
    snapshot = placed([9] * NODES, work, racks=RACKS, groups=[{"min_available": 12}], subgroups=tree)
    assert parts_in_regions(need_of(snapshot, (0,)), snapshot) is None


def test_outer_parts_inside_one_that_must_lie_in_one_domain_too_are_placed_to_be_sure():
    tree = [(0, NONE, 0, BLOCK), (0, 0, 0, BLOCK), (0, 1, 6, RACK), (0, 0, 0, BLOCK), (0, 3, 6, RACK)]
    work = [Work(0, subgroup=2)] * 6 + [Work(0, subgroup=4)] * 6
    snapshot = placed(
        [6, 0, 6, 0], work, racks=[1] * 4, racks_a_block=2, groups=[{"min_available": 12}], subgroups=tree
    )
    need = need_of(snapshot, (0,))
    assert parts_in_regions(need, snapshot) is None
    packings = topology_packing.Packings(need, allowed(snapshot, need.shapes), snapshot)
    assert packings.on(0, 4).places(snapshot.room.future, NOWHERE) is None


def test_domains_without_nodes_are_no_regions():
    snapshot = placed([6, 6, 6], [Work(0)], racks=[1, 0, 1, 1], racks_a_block=2)
    assert regions_at(snapshot, RACK).tolist() == [0, 1, 2]
