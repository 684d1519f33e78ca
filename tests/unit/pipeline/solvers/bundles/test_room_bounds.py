"""Which domains are left out by their room for a price, against every set of victims with which the gang has places."""

from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipeline.cluster.arrays import NONE, frozen
from pipeline.decision.price import Price, price_of
from pipeline.placement.need import need_of
from pipeline.solvers.bundles.room_bounds import may_be_cheap
from tests.support.placing import Work, placed
from tests.support.racked_crowds import RACKS, crowd, search_on
from tests.support.twins import uncompiled


@st.composite
def crowds(draw):
    """A gang of one or two cores a task, of which some may be in parts; and weights."""
    sizes = st.lists(st.integers(1, 2), min_size=1, max_size=2)
    parts = draw(st.lists(sizes, max_size=2))
    return crowd(draw, parts, draw(st.lists(st.integers(1, 2), min_size=0 if parts else 2, max_size=2)))


def has_places(room, waiting, racks):
    """Whether each of some tasks (cores and part) finds a node in the ``room`` by node, those of a part in one rack."""
    if not waiting:
        return True
    (cpu, part), rest = waiting[0], waiting[1:]
    for node in range(len(room)):
        rack = int(np.searchsorted(np.cumsum(RACKS), node, side="right"))
        if room[node] < cpu or racks.get(part, rack) != rack:
            continue
        room[node] -= cpu
        found = has_places(room, rest, racks if part == NONE else {**racks, part: rack})
        room[node] += cpu
        if found:
            return True
    return False


def priced(snapshot, weights, domain, queue_rank=None):
    """The prices of all sets of victims in a domain with which the gang has places there."""
    tasks, (start, stop) = snapshot.tasks, snapshot.topology.slice_of(domain)
    waiting = [
        (int(snapshot.request[row, 0]) // 1000, int(tasks.subgroup[row])) for row in np.flatnonzero(tasks.podgroup == 0)
    ]
    waiting.sort(reverse=True)
    inside = np.flatnonzero((tasks.podgroup != 0) & (tasks.node >= start) & (tasks.node < stop)).tolist()
    for rows in (np.array(some, np.int64) for count in range(len(inside) + 1) for some in combinations(inside, count)):
        room = snapshot.room.future[:, 0] // 1000
        np.add.at(room, tasks.node[rows], snapshot.request[rows][:, 0] // 1000)
        room[:start], room[stop:] = 0, 0
        if has_places(room.tolist(), waiting, {}):
            yield price_of(snapshot, rows, need_of(snapshot, (0,)).total, weights, queue_rank, domain)


@given(crowds())
def test_no_domain_is_left_out_in_preempt_in_which_a_set_of_victims_costs_as_little_as_the_price(drawn):
    snapshot, weights = drawn
    search = search_on(snapshot, weights, by_priority=True)
    for domain in range(len(snapshot.topology)):
        assert all(may_be_cheap(search, domain, price) for price in set(priced(snapshot, weights, domain)))


@given(crowds())
def test_no_domain_is_left_out_in_reclaim_in_which_a_set_of_victims_costs_as_little_as_the_price(drawn):
    snapshot, weights = drawn
    rank = frozen([0, 2, 1, 3], np.int64)
    search = search_on(snapshot, weights, by_priority=False, queue_rank=rank)
    for domain in range(len(snapshot.topology)):
        assert all(may_be_cheap(search, domain, price) for price in set(priced(snapshot, weights, domain, rank)))


def at_priority(work, priority=3):
    """A price of podgroups that break at one priority."""
    return Price(0, 0, ((priority, work),), (), priority, 1, 0, 0)


def test_a_domain_is_left_out_where_what_may_go_at_the_price_leaves_room_on_too_many_nodes():
    """Once what is cheap has gone, each of three nodes has one core: enough in sum, but not for two on one node."""
    work = [Work(0, 2), Work(0, 1)] + [Work(group, 1, node) for node in range(3) for group in (1, 2)]
    groups = [{"min_available": 2}, {"min_available": 3, "priority": 1}, {"min_available": 3, "priority": 3}]
    search = search_on(placed([2, 2, 2], work, racks=[3], groups=groups), np.ones(3), by_priority=True)
    assert not may_be_cheap(search, 0, at_priority(100.0, priority=1))
    assert may_be_cheap(search, 0, at_priority(100.0))


def test_a_domain_is_left_out_where_one_podgroup_that_has_to_break_loses_more_than_the_price():
    """Both podgroups lose three cores where three are needed, which is one unit; the one is not enough alone."""
    work = [Work(0, 2), Work(0, 1)] + [Work(group, 1, node) for node in range(3) for group in (1, 2)]
    groups = [{"min_available": 2}, {"min_available": 3, "priority": 3}, {"min_available": 3, "priority": 3}]
    snapshot = placed([2, 2, 2], work, racks=[3], groups=groups)
    search = search_on(snapshot, np.array([1.0, 1.0, 5.0]), by_priority=True)
    least = price_of(snapshot, np.arange(2, 8), need_of(snapshot, (0,)).total, search.lost_work, None, 0).broken[0][1]
    assert may_be_cheap(search, 0, at_priority(least))
    assert not may_be_cheap(search, 0, at_priority(least * 0.5))


@given(crowds(), st.integers(0, 3), st.sampled_from([0.0, 0.5, 2.0]))
def test_the_compiled_bound_and_its_plain_twin_agree(drawn, priority, work):
    snapshot, weights = drawn
    search = search_on(snapshot, weights, by_priority=True)
    for domain in range(len(snapshot.topology)):
        compiled = may_be_cheap(search, domain, at_priority(work, priority))
        with uncompiled():
            assert may_be_cheap(search, domain, at_priority(work, priority)) == compiled
