"""Whether a gang fits, and where its tasks go."""

from weakref import ref

import numpy as np
import pytest

from pipeline.cluster.arrays import UNLIMITED
from pipeline.cluster.rules.constraints import allowed
from pipeline.placement.layout.packing import place_classes, slots_at, slots_less, slots_more
from pipeline.placement.layout.topology_packing import Packings
from pipeline.placement.need import need_of
from tests.support.placing import BLOCK, NOWHERE, RACK, Work, apart, placed


def classes(request, count, room, open_to=None):
    request, count, room = (np.array(values, np.int64) for values in (request, count, room))
    open_to = np.ones((len(count), len(room)), bool) if open_to is None else np.array(open_to, bool)
    return request, count, open_to, room


def fits(request, count, open_to, room):
    return place_classes(request, count, open_to, room).sum() == count.sum()


def arranged(snapshot, groups=(0,), start=0, stop=None, leaving=NOWHERE):
    stop = len(snapshot.nodes) if stop is None else stop
    need = need_of(snapshot, groups)
    room = snapshot.room.future.copy()
    for task in leaving:
        room[snapshot.tasks.node[task]] += snapshot.shapes.request[snapshot.tasks.shape[task]]
    found = Packings(need, allowed(snapshot, need.shapes), snapshot).on(start, stop).places(room[start:stop], leaving)
    return None if found is None else found.tolist()


def test_places_in_a_slice_go_with_what_keeps_them():
    snapshot = placed([4], [Work(0)])
    need = need_of(snapshot, (0,))
    packings = Packings(need, allowed(snapshot, need.shapes), snapshot)
    assert packings.on(0, 1).places(snapshot.room.future, NOWHERE) is not None
    kept = ref(packings.on(0, 1))
    del packings
    assert kept() is None  # without waiting for the collection of cycles


def test_one_shape_fits_exactly_if_its_slots_add_up():
    assert fits(*classes([[4, 1]], [3], [[8, 1], [9, 9]]))
    assert not fits(*classes([[4, 1]], [4], [[8, 1], [9, 9]]))


def test_sums_that_suffice_do_not_fit_where_no_node_has_a_slot():
    assert not fits(*classes([[8]], [1], [[4], [4]]))


def test_negative_room_counts_only_where_the_shape_asks_for_it():
    assert fits(*classes([[4, 0]], [1], [[4, -7]]))
    assert not fits(*classes([[4, 1]], [1], [[4, -7]]))


def test_nothing_wanted_fits_anywhere():
    assert fits(*classes([[4]], [0], [[0]]))
    assert place_classes(*classes([[4]], [0], [[0]])).tolist() == [[0]]


def test_a_closed_node_takes_nothing():
    assert not fits(*classes([[1]], [1], [[5], [0]], [[False, True]]))


def test_the_fullest_nodes_are_filled_first_and_node_order_breaks_ties():
    assert place_classes(*classes([[2]], [4], [[8], [2], [4], [4]])).tolist() == [[0, 1, 2, 1]]


def test_the_biggest_shape_goes_first_so_that_small_ones_do_not_take_whole_nodes():
    request, count, open_to, room = classes([[1], [8]], [4, 1], [[8], [4]])
    assert place_classes(request, count, open_to, room).tolist() == [[0, 4], [1, 0]]


def test_a_shape_with_little_choice_gets_it_when_the_first_order_fails():
    request, count, open_to, room = classes([[2], [3]], [1, 1], [[3], [3]], [[True, False], [True, True]])
    assert fits(request, count, open_to, room)
    assert place_classes(request, count, open_to, room).tolist() == [[1, 0], [0, 1]]


def test_a_shape_that_few_nodes_are_open_to_gets_them_when_both_other_orders_fail():
    """Three whole-node tasks may use a tainted node, and the fourth, of the same size, may not."""
    request, count, open_to, room = classes([[4], [4]], [3, 1], [[4]] * 4, [[True] * 4, [True] * 3 + [False]])
    assert fits(request, count, open_to, room)
    assert place_classes(request, count, open_to, room).tolist() == [[0, 1, 1, 1], [1, 0, 0, 0]]


def test_as_many_as_possible_are_placed_when_not_all_fit():
    assert place_classes(*classes([[4]], [9], [[8], [5]])).tolist() == [[2, 1]]


@pytest.mark.parametrize("request_", [1, 3, 7, 1000, (1 << 40) + 1])
@pytest.mark.parametrize("have", [0, 1, 999, (1 << 53) - 1, (1 << 53) + 1, UNLIMITED])
def test_slots_are_exact_integers(request_, have):
    most = 1 << 40
    found = slots_at(np.array([[request_]]), 0, np.array([[have]]), 0, most)
    assert found == min(have // request_, most)


@pytest.mark.parametrize("seed", range(20))
def test_columns_beyond_a_request_are_cards_that_take_tasks_one_by_one(seed):
    draw, ask, most = np.random.default_rng(seed), np.array([[0, 2, 3]]), int(np.random.default_rng(seed).integers(9))
    before, after = np.sort(draw.integers(-3, 14, (2, 1, 6)), axis=0)

    def counted(room):
        return min(room[0, 1] // 2, room[0, 2] // 3, int(np.maximum(room[0, 3:] // 3, 0).sum()), most)

    low, high = max(counted(before), 0), max(counted(after), 0)
    assert [slots_at(ask, 0, room, 0, most) for room in (before, after)] == [low, high]
    assert slots_more(ask, 0, after, 0, most, low) == high
    assert slots_less(ask, 0, before, 0, most, high) == low


def test_columns_that_do_not_match_are_refused_with_what_was_found():
    with pytest.raises(ValueError, match=r"found request \(1, 2\), count \(1,\), allowed \(1, 3\), room \(1, 2\)"):
        place_classes(np.ones((1, 2), np.int64), np.ones(1, np.int64), np.ones((1, 3), bool), np.ones((1, 2), np.int64))


def test_neighbours_in_rank_share_nodes():
    snapshot = placed([2, 2, 2], [Work(0)] * 5, groups=[{"min_available": 5}])
    assert arranged(snapshot) == [0, 0, 1, 1, 2]


def test_only_the_minimum_is_arranged_and_only_inside_the_slice():
    snapshot = placed([2, 2, 2], [Work(0)] * 5, groups=[{"min_available": 3}])
    assert arranged(snapshot, start=1, stop=3) == [1, 1, 2]
    assert arranged(snapshot, start=1, stop=2) is None


def test_each_subgroup_lies_in_one_rack_of_its_own_choice():
    work = [Work(0, subgroup=0)] * 3 + [Work(0, subgroup=1)] * 2
    snapshot = placed(
        [1, 1, 1, 1, 1],
        work,
        racks=[2, 3],
        groups=[{"min_available": 5}],
        subgroups=[(0, -1, 3, RACK), (0, -1, 2, RACK)],
    )
    assert arranged(snapshot) == [2, 3, 4, 0, 1]


def test_a_subgroup_that_fits_no_rack_is_not_torn_apart():
    work = [Work(0, subgroup=0)] * 3
    snapshot = placed([1] * 4, work, racks=[2, 2], groups=[{"min_available": 3}], subgroups=[(0, -1, 3, RACK)])
    assert arranged(snapshot) is None


def test_nested_parts_lie_inside_the_domain_of_the_part_around_them():
    tree = [(0, -1, 0, BLOCK), (0, 0, 2, RACK), (0, 0, 2, RACK)]
    work = [Work(0, subgroup=1)] * 2 + [Work(0, subgroup=2)] * 2
    snapshot = placed([2, 1, 1, 2, 2, 2], work, racks=[1, 2, 1, 2], groups=[{"min_available": 4}], subgroups=tree)
    found = arranged(snapshot)
    assert found is not None
    assert {len(set(np.searchsorted([1, 3, 4, 6], found[i : i + 2], side="right"))) for i in (0, 2)} == {1}
    assert max(found) < 3 or min(found) >= 3


def test_a_part_whose_tasks_run_stays_in_their_rack():
    work = [Work(0, node=3), Work(0), Work(0)]
    snapshot = placed([4, 4, 2, 2], work, racks=[2, 2], groups=[{"min_available": 3, "required_level": RACK}])
    assert arranged(snapshot) == [2, 3]
    assert arranged(snapshot, start=0, stop=2) is None


def test_a_part_may_move_when_the_tasks_that_held_it_leave():
    work = [Work(0, node=3), Work(0, cpu=2), Work(0, cpu=2)]
    snapshot = placed([2, 2, 1, 2], work, racks=[2, 2], groups=[{"min_available": 3, "required_level": RACK}])
    assert arranged(snapshot) is None
    assert arranged(snapshot, leaving=np.array([0])) == [0, 1]


def test_a_preferred_level_is_kept_if_possible_and_given_up_if_not():
    group = {"min_available": 3, "preferred_level": RACK}
    assert arranged(placed([1, 1, 1, 1, 1], [Work(0)] * 3, racks=[2, 3], groups=[group])) == [2, 3, 4]
    assert arranged(placed([1, 1, 1, 1], [Work(0)] * 3, racks=[2, 2], groups=[group])) == [0, 1, 2]


def test_podgroups_of_a_gang_group_each_lie_in_a_rack():
    group = {"min_available": 2, "required_level": RACK}
    snapshot = placed([1] * 4, [Work(0), Work(0), Work(1), Work(1)], racks=[2, 2], groups=[group, group])
    assert arranged(snapshot, groups=(0, 1)) in ([0, 1, 2, 3], [2, 3, 0, 1])


def test_tasks_that_repel_each_other_get_a_node_each():
    work = [Work(0, labels=(("app", "x"),), constraint=apart(app="x"))] * 3
    assert arranged(placed([4, 4, 4], work, groups=[{"min_available": 3}])) == [0, 1, 2]
    assert arranged(placed([4, 4], work, groups=[{"min_available": 3}])) is None


def test_tasks_that_repel_each_other_get_a_zone_each():
    work = [Work(0, labels=(("app", "x"),), constraint=apart("zone", app="x"))] * 2
    zones = [{"zone": "a"}, {"zone": "a"}, {"zone": "b"}]
    assert arranged(placed([4, 4, 4], work, groups=[{"min_available": 2}], labels=zones)) == [0, 2]


def test_a_running_task_keeps_those_away_that_it_repels_until_it_leaves():
    work = [Work(1, node=0, constraint=apart(app="x")), Work(0, labels=(("app", "x"),))]
    snapshot = placed([4, 1], work, groups=[{}, {}])
    assert arranged(snapshot) == [1]
    assert arranged(snapshot, stop=1) is None
    assert arranged(snapshot, stop=1, leaving=np.array([0])) == [0]


def test_tasks_of_one_shape_with_different_labels_are_told_apart():
    work = [
        Work(1, node=0, constraint=apart(app="x")),
        Work(0, labels=(("app", "x"),)),
        Work(0, labels=(("app", "y"),)),
    ]
    assert arranged(placed([2, 1], work, groups=[{"min_available": 2}, {}])) == [1, 0]
