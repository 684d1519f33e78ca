"""In which domain a search begins, and which are left out because their bundles make too little room for a price."""

import numpy as np
import pytest

from pipeline.cluster.arrays import frozen
from pipeline.cluster.tables import RUNNING
from pipeline.decision.price import Price
from pipeline.solvers.bundles.bundle_room import bundles_may_reach, in_order_of_room
from pipeline.solvers.bundles.lower_bounds import cost_bounds
from tests.support.builders import searching
from tests.support.placing import Work, placed
from tests.support.twins import uncompiled


def strewn(**said):
    """A search for three cores, two of them on one node, in two racks that are full.

    The first rack has three nodes with a core each of podgroup 1, of priority 1, and of podgroup 2, of priority 3. The
    other one has two nodes of podgroup 3, of priority 2.
    """
    work = [Work(0, 2), Work(0, 1)] + [Work(group, 1, node) for node in range(3) for group in (1, 2)]
    work += [Work(3, 2, node) for node in (3, 4)]
    minima, priorities = said.pop("minima", (2, 3, 3, 2)), (0, 1, 3, 2)
    groups = [{"min_available": m, "priority": p} for m, p in zip(minima, priorities, strict=True)]
    snapshot = placed([2] * 5, work, racks=[3, 2], groups=groups)
    candidate = (snapshot.tasks.status == RUNNING) & (snapshot.tasks.podgroup != 0)
    return searching(snapshot, 0, candidate=frozen(candidate, bool), **{"by_priority": True, **said})


def racks_of(search):
    topology = search.snapshot.topology
    return np.array([domain for domain in range(len(topology)) if topology.slice_of(domain) in {(0, 3), (3, 5)}])


def first(search):
    """The first node of the rack that is looked at first, by sums and by room."""
    racks = racks_of(search)
    bounds = cost_bounds(search, racks)
    by_sums = np.lexsort((bounds.work, bounds.head))
    by_room = in_order_of_room(search, racks, bounds.head, by_sums)
    assert sorted(by_room.tolist()) == [0, 1]
    return [search.snapshot.topology.slice_of(int(racks[order[0]]))[0] for order in (by_sums, by_room)]


def broken(priority, work=100.0):
    return Price(0, 0, ((priority, work),), (), priority, 1, 0, 0)


def test_a_domain_whose_room_is_strewn_waits_until_those_that_make_room_at_a_lower_level_were_looked_at():
    assert first(strewn()) == [0, 3]


def test_the_same_holds_in_reclaim_by_the_ranks_of_queues():
    assert first(strewn(by_priority=False, queue_rank=frozen([0, 0, 3, 2], np.int64))) == [0, 3]


def test_surplus_that_makes_no_room_without_breaks_does_not_come_first():
    """Podgroup 1 can lose all its tasks without breaking, which frees one core on each node."""
    assert first(strewn(minima=(2, 0, 3, 2))) == [0, 3]


def test_a_domain_is_left_out_where_its_bundles_make_no_room_up_to_the_level_of_the_price():
    search = strewn()
    one, other = racks_of(search)[np.argsort(search.snapshot.topology.start[racks_of(search)])]
    assert [bundles_may_reach(search, int(one), broken(priority)) for priority in (1, 2, 3)] == [False, False, True]
    assert [bundles_may_reach(search, int(other), broken(priority)) for priority in (1, 2, 3)] == [False, True, True]
    assert not bundles_may_reach(search, int(one), broken(3, 0.1))
    assert not bundles_may_reach(search, int(other), Price(0, 0, (), ((3, 9.0),), 3, 1, 0, 0))


@pytest.mark.parametrize("frees", [0, 1])
def test_a_domain_is_not_left_out_where_surplus_chosen_by_the_slots_that_it_frees_makes_room(frees):
    """Podgroup 1 can spare one of two tasks of a core each. Only one of them frees two cores on its node."""
    work = [Work(0, 2), Work(0, 4), Work(1, 1, 0), Work(1, 1, 1), Work(2, 1, 1 - frees)]
    groups = [{"min_available": 2}, {"min_available": 1, "priority": 1}, {"min_available": 1, "priority": 3}]
    snapshot = placed([2, 2, 4], work, racks=[3], groups=groups)
    candidate = (snapshot.tasks.status == RUNNING) & (snapshot.tasks.podgroup != 0)
    search = searching(snapshot, 0, candidate=frozen(candidate, bool), by_priority=True)
    assert bundles_may_reach(search, 0, Price(0, 0, (), ((1, 9.0),), 1, 1, 0, 0))


def test_the_compiled_order_and_its_plain_twin_agree():
    for search in (strewn(), strewn(by_priority=False, queue_rank=frozen([0, 0, 3, 2], np.int64))):
        compiled = first(search)
        with uncompiled():
            assert first(search) == compiled
