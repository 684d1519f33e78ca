"""What domains offer at best; each figure against every set of victims there is."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.cluster.arrays import NONE
from pipeline.placement.layout.packing import place_classes
from pipeline.placement.layout.regions_of_parts import NOT_ASKED
from pipeline.placement.need import need_of
from pipeline.policy import Purpose
from pipeline.solvers.bundles import lower_bounds
from pipeline.solvers.bundles.bundling.kinds import HOPELESS
from pipeline.solvers.bundles.bundling.records import BREAKING
from pipeline.solvers.bundles.lower_bounds import bounds_with_levels, cost_bounds, slot_bounds
from tests.support import racked_crowds
from tests.support.asking import plan
from tests.support.builders import cluster, gang
from tests.support.editing import with_quota
from tests.support.placing import Work, placed
from tests.support.racked_crowds import lost
from tests.support.twins import uncompiled


def search_on(snapshot, weights=None, **changed):
    weights = np.ones(len(snapshot.podgroups)) if weights is None else np.array(weights)
    return racked_crowds.search_on(snapshot, weights, by_priority=True, **changed)


def bounded(snapshot, weights=None, **changed):
    """What every domain costs at least: head, priority, work."""
    search = search_on(snapshot, weights, **changed)
    return cost_bounds(search, np.arange(len(snapshot.topology)))


def test_slots_with_and_without_evictions_are_needed_by_in_every_domain():
    snapshot = placed(
        [4, 4, 2], [Work(0, cpu=2)] * 3 + [Work(1, cpu=2, node=0)], racks=[1, 2], groups=[{"min_available": 3}, {}]
    )
    found = slot_bounds(search_on(snapshot), np.arange(len(snapshot.topology)))
    assert found.room[:, 0].tolist() == [4, 4, 1, 3]
    assert found.reachable[:, 0].tolist() == [5, 5, 2, 3]


def test_room_that_is_promised_to_others_is_not_offered_whatever_leaves():
    work = [Work(0)] * 2 + [Work(1, cpu=2, node=0), Work(2, cpu=3, nominated=0)]
    found = slot_bounds(search_on(placed([4], work, groups=[{"min_available": 2}, {}, {}])), np.arange(1))
    assert (found.room.tolist(), found.reachable.tolist()) == ([[0]], [[1]])


def test_a_rigid_gang_must_break_where_nothing_is_idle():
    work = [Work(0)] * 2 + [Work(1, node=0)] * 2 + [Work(2, node=0)] * 2
    groups = [{"min_available": 2}, {"min_available": 2}, {"min_available": 2, "priority": 7}]
    found = bounded(placed([4], work, groups=groups))
    assert (found.head[0] > 0, found.priority[0]) == (True, 0)
    assert found.work[0] == pytest.approx(1.0, abs=1e-5)


def test_surplus_frees_room_without_breaking_a_gang():
    work = [Work(0)] * 2 + [Work(1, node=0)] * 3 + [Work(2, node=0)]
    found = bounded(placed([4], work, groups=[{"min_available": 2}, {"min_available": 1}, {}]))
    assert 0 < found.head[0] < BREAKING


def test_surplus_of_the_lowest_priorities_comes_first_and_costs_what_it_loses():
    work = [Work(0)] * 4 + [Work(group, node=0) for group in (1, 1, 2, 2, 3, 3)]
    groups = [{"min_available": 4}, *({"min_available": 0, "priority": p} for p in (9, 2, 4))]
    found = bounded(placed([6], work, groups=groups), [1.0, 1.0, 5.0, 3.0])
    assert found.priority[0] == 4
    assert found.work[0] == pytest.approx(2 / 4 * 3.0, abs=1e-5)


def test_surplus_of_several_sizes_is_no_more_than_the_largest_tasks_hold():
    work = [Work(0, cpu=5)] + [Work(1, cpu=cpu, node=0) for cpu in (1, 3, 1)]
    found = bounded(placed([5], work, groups=[{"min_available": 1}, {"min_available": 1, "priority": 2}]))
    assert (found.head[0] > BREAKING, found.priority[0]) == (True, 2)
    assert found.work[0] == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize(("asked", "breaks"), [(300 + 299, False), (300 + 299 + 1, True)])
def test_of_hundreds_of_sizes_as_well_surplus_is_the_largest(asked, breaks):
    work = [Work(0, cpu=asked)] + [Work(1, cpu=cpu, node=0) for cpu in range(1, 301)]
    found = bounded(placed([300 * 301 // 2], work, groups=[{"min_available": 1}, {"min_available": 298}]))
    assert bool(found.head[0] > BREAKING) == breaks


def test_a_reclaim_takes_no_more_from_a_queue_than_it_may_lose():
    """Either queue holds enough, but must keep half of it; so the one that it is less fair to take from loses too."""
    low = [gang(1, on=0, gpu=1, queue=queue) for queue in (0, 0, 0, 0, 1, 1, 1, 1)]
    state = cluster([{"gpu": 8}], [*low, gang(3, queue=2, gpu=1)], queues=3)
    found = plan(with_quota(state, deserved={0: {"gpu": 2}, 1: {"gpu": 2}, 2: {"gpu": 3}}), 8, Purpose.RECLAIM)
    assert found.explanation.lower_bound is not None
    assert found.explanation.lower_bound.queue_rank == found.price.queue_rank > 0
    assert found.explanation.lower_bound.excess(found.price) == pytest.approx(0.0, abs=1e-5)


def test_the_priority_that_must_break_is_where_those_below_free_too_little():
    work = [Work(0)] * 2 + [Work(1, node=0), Work(2, node=0), Work(3, node=0)]
    groups = [{"min_available": 2}, *({"priority": p, "min_available": 1} for p in (1, 5, 9))]
    assert bounded(placed([3], work, groups=groups)).priority[0] == 5


def test_a_broken_gang_costs_what_it_has_elsewhere_too():
    work = [Work(0)] * 2 + [Work(1, node=0)] * 2 + [Work(1, node=1)] * 2
    snapshot = placed([2, 2], work, racks=[1, 1], groups=[{"min_available": 2}, {"min_available": 4}])
    assert bounded(snapshot).work[2] == pytest.approx(2.0, abs=1e-5)


def test_a_podgroup_that_holds_more_than_is_missing_is_paid_for_whole():
    work = [Work(0)] * 2 + [Work(1, node=0)] * 8
    assert bounded(placed([8], work, groups=[{"min_available": 2}, {"min_available": 8}])).work[0] == pytest.approx(
        8 / 2, abs=1e-5
    )


def test_a_gang_that_is_broken_already_costs_nothing():
    work = [Work(0)] * 2 + [Work(1, node=0)] * 2
    found = bounded(placed([2], work, groups=[{"min_available": 2}, {"min_available": 4, "priority": 3}]))
    assert found.head[0] < BREAKING
    assert (found.priority[0], found.work[0]) == (3, 0.0)


def test_a_domain_with_room_costs_nothing():
    found = bounded(placed([4], [Work(0), Work(1, node=0)], groups=[{}, {}]))
    assert (found.head[0], found.work[0]) == (0, 0.0)


def test_a_domain_where_all_candidates_free_too_little_has_no_selection():
    assert bounded(placed([2], [Work(0)] * 3, groups=[{"min_available": 3}])).head[0] == HOPELESS


def test_no_domains_have_no_bounds():
    search = search_on(placed([4], [Work(0)]))
    assert slot_bounds(search, np.zeros(0, np.int64)).reachable.shape == (0, 1)


@st.composite
def crowds(draw):
    """A few nodes in two racks, full of small podgroups, a gang that waits, and whether it takes whole nodes."""
    by_node = draw(st.booleans())
    cores = draw(st.lists(st.integers(2, 5), min_size=4, max_size=4))
    left = list(cores)
    work = [Work(0, cpu=3 if by_node else draw(st.integers(1, 3)))] * draw(st.integers(1, 3))
    groups = [{"min_available": len(work)}]
    groups += [{"min_available": draw(st.integers(0, 4)), "priority": draw(st.integers(0, 3))} for _ in range(3)]
    for _ in range(draw(st.integers(1, 8))):
        task = Work(draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.integers(0, 3)))
        if left[task.node] >= task.cpu:
            left[task.node] -= task.cpu
            work.append(task)
    weights = [1.0, *(draw(st.sampled_from([0.0, 0.5, 1.0, 7.25])) for _ in range(3))]
    return placed(cores, work, racks=[2, 2], racks_a_block=1, groups=groups), weights, by_node


def truths(snapshot, weights, start, stop):
    """What every set of victims that makes room in ``start:stop`` loses."""
    tasks, need = snapshot.tasks, need_of(snapshot, (0,))
    inside = np.flatnonzero((tasks.podgroup != 0) & (tasks.node >= start) & (tasks.node < stop))
    open_to = np.ones((1, stop - start), bool)
    for many in range(len(inside) + 1):
        for victims in combinations(inside.tolist(), many):
            rows, room = np.array(victims, np.int64), snapshot.room.future.copy()
            np.add.at(room, tasks.node[rows], snapshot.request[rows])
            if place_classes(need.request, need.count, open_to, room[start:stop]).sum() >= need.minimum:
                yield lost(snapshot, np.array(weights), rows)


@given(crowds())
def test_no_set_of_victims_is_cheaper_than_its_bound(crowd):
    snapshot, weights, by_node = crowd
    search, found = search_on(snapshot, weights), bounded(snapshot, weights, by_node=by_node)
    slots = slot_bounds(search, np.arange(len(snapshot.topology)))
    count = search.need.count
    for domain in range(len(snapshot.topology)):
        start, stop = int(snapshot.topology.start[domain]), int(snapshot.topology.stop[domain])
        ways = list(truths(snapshot, weights, start, stop))
        assert bool(ways) == bool((slots.reachable[domain] >= count).all())
        head, least = int(found.head[domain]), ((int(found.priority[domain]), float(found.work[domain])),)
        assert head != HOPELESS or not ways
        for broken, surplus in ways:
            if head >= BREAKING:
                assert least <= tuple((priority, loses + 1e-9) for priority, loses in broken)
            elif head and not broken:
                assert least <= tuple((priority, loses + 1e-9) for priority, loses in surplus)
        if bool((slots.room[domain] >= count).all()):
            assert found.head[domain] == 0


@given(crowds())
def test_the_compiled_bounds_and_their_plain_twin_agree(crowd):
    snapshot, weights, by_node = crowd
    search, domains = search_on(snapshot, weights, by_node=by_node), np.arange(len(snapshot.topology))
    slices = snapshot.topology.start[domains], snapshot.topology.stop[domains]
    said = (search.site, NOT_ASKED, *slices, search.terms, search.kinds)
    said = (*said, np.full(len(snapshot.podgroups), NONE, np.int32))
    compiled = lower_bounds.bound_domains(*said, False)
    with uncompiled():
        plain = lower_bounds.bound_domains(*said, False)
    for one, other in zip(compiled, plain, strict=True):
        assert all(np.array_equal(mine, its) for mine, its in zip(one, other, strict=True))


@given(crowds())
def test_bounds_without_work_have_the_same_leading_levels_and_work_is_found_from_them(crowd):
    snapshot, weights, by_node = crowd
    search, domains = search_on(snapshot, weights, by_node=by_node), np.arange(len(snapshot.topology))
    (heads, levels), bounds = bounds_with_levels(search, domains, heads_only=True), cost_bounds(search, domains)
    assert np.array_equal(heads.head, bounds.head)
    assert np.array_equal(heads.priority, bounds.priority)
    assert not heads.work.any()
    topology = snapshot.topology
    for domain, needed in enumerate(zip(*(column.tolist() for column in levels), strict=True)):
        nodes = int(topology.start[domain]), int(topology.stop[domain])
        with uncompiled():
            again = lower_bounds.bound_within(
                needed, search.site, *nodes, search.terms, search.kinds, search.seats(), heads_only=False
            )
        assert again == (bounds.head[domain], bounds.work[domain])


def test_a_node_that_is_cleared_costs_what_the_dearest_podgroup_on_it_does():
    work = [Work(0, cpu=4)] * 2 + [Work(1, cpu=2, node=node) for node in range(4)]
    work += [Work(2 + node, cpu=2, node=node) for node in range(4)]
    groups = [{"min_available": 2}, {"min_available": 4, "priority": 1}]
    groups += [{"min_available": 1, "priority": 2 + node} for node in range(4)]
    snapshot = placed([4] * 4, work, groups=groups)
    assert bounded(snapshot).priority[0] == 1
    assert bounded(snapshot, by_node=True).priority[0] == 3


def test_a_podgroup_that_stands_in_the_way_on_several_nodes_is_paid_for_once():
    work = [Work(0, cpu=4)] * 2 + [Work(1, cpu=4, node=0), Work(1, cpu=4, node=1), Work(2, cpu=4, node=2)]
    groups = [{"min_available": 2}, {"min_available": 2}, {"min_available": 1}]
    found = bounded(placed([4, 4, 4], work, groups=groups), [1.0, 3.0, 2.0], by_node=True)
    assert found.work[0] == pytest.approx(2.0 / 2 + 3.0 / 2, abs=1e-5)


def test_podgroups_on_more_nodes_than_must_be_cleared_are_paid_for_whole():
    """Two podgroups share all three nodes, one of which must be cleared, so both go."""
    work = [Work(0, cpu=4)] + [Work(group, cpu=2, node=node) for group in (1, 2) for node in range(3)]
    groups = [{"min_available": 1}, {"min_available": 3}, {"min_available": 3}]
    found = bounded(placed([4, 4, 4], work, groups=groups), [1.0, 4.0, 2.0], by_node=True)
    assert found.work[0] == pytest.approx(4.0 * 6 / 4 + 2.0 * 6 / 4, abs=1e-5)


def test_idle_resources_on_several_nodes_are_no_room_for_a_task_that_takes_a_whole_one():
    work = [Work(0, cpu=3), Work(1, cpu=2, node=0), Work(1, cpu=2, node=1)]
    snapshot = placed([4, 4], work, groups=[{}, {"min_available": 2, "priority": 3}])
    assert bounded(snapshot).head[0] == 0
    assert bounded(snapshot, by_node=True).priority[0] == 3
