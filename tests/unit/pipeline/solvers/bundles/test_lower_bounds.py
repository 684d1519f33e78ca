"""What domains offer at best; each figure against every set of victims there is."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.cluster.constraints import allowed
from pipeline.cluster.tables import RUNNING
from pipeline.decision.price import NO_PRIORITY, in_units, needed_by
from pipeline.placement.need import need_of
from pipeline.placement.packing import fits
from pipeline.solvers.bundles import bound_kernels as footprints
from pipeline.solvers.bundles.lower_bounds import bounds
from tests.support.placing import Work, placed


def bounded(snapshot, weights=None):
    need = need_of(snapshot, (0,))
    candidate = (snapshot.tasks.status == RUNNING) & (snapshot.tasks.podgroup != 0)
    weights = np.ones(len(snapshot.podgroups)) if weights is None else np.array(weights)
    domains = np.arange(len(snapshot.topology))
    return bounds(snapshot, need, allowed(snapshot, need.shapes), candidate, domains, weights)


def test_slots_with_and_without_evictions_are_counted_in_every_domain():
    snapshot = placed(
        [4, 4, 2], [Work(0, cpu=2)] * 3 + [Work(1, cpu=2, node=0)], racks=[1, 2], groups=[{"min_available": 3}, {}]
    )
    found = bounded(snapshot)
    assert found.room[:, 0].tolist() == [4, 4, 1, 3]
    assert found.reachable[:, 0].tolist() == [5, 5, 2, 3]


def test_a_rigid_gang_must_break_where_nothing_is_idle():
    work = [Work(0)] * 2 + [Work(1, node=0)] * 2 + [Work(2, node=0)] * 2
    groups = [{"min_available": 2}, {"min_available": 2}, {"min_available": 2, "priority": 7}]
    found = bounded(placed([4], work, groups=groups))
    assert (found.gangs[0], found.priority[0]) == (1, 0)
    assert found.lost_work[0] == pytest.approx(1.0, abs=1e-5)


def test_surplus_frees_room_without_breaking_a_gang():
    work = [Work(0)] * 2 + [Work(1, node=0)] * 3 + [Work(2, node=0)]
    assert bounded(placed([4], work, groups=[{"min_available": 2}, {"min_available": 1}, {}])).gangs[0] == 0


def test_the_priority_that_victims_must_reach_is_where_those_below_free_too_little():
    work = [Work(0)] * 2 + [Work(1, node=0), Work(2, node=0), Work(3, node=0)]
    groups = [{"min_available": 2}, {"priority": 1}, {"priority": 5}, {"priority": 9}]
    assert bounded(placed([3], work, groups=groups)).priority[0] == 5


def test_a_broken_gang_costs_what_it_has_elsewhere_too():
    work = [Work(0)] * 2 + [Work(1, node=0)] * 2 + [Work(1, node=1)] * 2
    snapshot = placed([2, 2], work, racks=[1, 1], groups=[{"min_available": 2}, {"min_available": 4}])
    assert bounded(snapshot).lost_work[2] == pytest.approx(2.0, abs=1e-5)


def test_a_gang_that_is_broken_already_costs_nothing():
    work = [Work(0)] * 2 + [Work(1, node=0)] * 2
    found = bounded(placed([2], work, groups=[{"min_available": 2}, {"min_available": 4, "priority": 3}]))
    assert (found.gangs[0], found.priority[0], found.lost_work[0]) == (0, 3, 0.0)


def test_a_domain_with_room_costs_nothing():
    found = bounded(placed([4], [Work(0), Work(1, node=0)], groups=[{}, {}]))
    assert (found.gangs[0], found.priority[0], found.lost_work[0]) == (0, NO_PRIORITY, 0.0)


def test_no_domains_have_no_bounds():
    snapshot = placed([4], [Work(0)])
    need = need_of(snapshot, (0,))
    none = np.zeros(0, np.int64)
    found = bounds(snapshot, need, allowed(snapshot, need.shapes), np.zeros(1, bool), none, np.ones(1))
    assert found.reachable.shape == (0, 1)


@st.composite
def crowds(draw):
    """A few nodes in two racks, full of small podgroups, and a gang that waits."""
    cores = draw(st.lists(st.integers(2, 5), min_size=4, max_size=4))
    left = list(cores)
    work = [Work(0, cpu=draw(st.integers(1, 3)))] * draw(st.integers(1, 3))
    groups = [{"min_available": len(work)}]
    groups += [{"min_available": draw(st.integers(0, 4)), "priority": draw(st.integers(0, 3))} for _ in range(3)]
    for _ in range(draw(st.integers(1, 8))):
        task = Work(draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.integers(0, 3)))
        if left[task.node] >= task.cpu:
            left[task.node] -= task.cpu
            work.append(task)
    weights = [1.0, *(draw(st.sampled_from([0.0, 0.5, 1.0, 7.25])) for _ in range(3))]
    return placed(cores, work, racks=[2, 2], racks_a_block=1, groups=groups), weights


def truths(snapshot, weights, start, stop):
    """(gangs broken, highest priority, lost work) of every set of victims that makes room in ``start:stop``.

    As in a price: a gang that breaks loses all it has everywhere, one that was broken before loses nothing.
    """
    tasks, need = snapshot.tasks, need_of(snapshot, (0,))
    unit = in_units(snapshot.shapes.request, needed_by(need.total))[tasks.shape] * np.array(weights)[tasks.podgroup]
    inside = np.flatnonzero((tasks.podgroup != 0) & (tasks.node >= start) & (tasks.node < stop))
    have, minimum = snapshot.standing.running, snapshot.podgroups.min_available
    for many in range(len(inside) + 1):
        for victims in combinations(inside.tolist(), many):
            rows = np.array(victims, np.int64)
            room = snapshot.room.future.copy()
            np.add.at(room, tasks.node[rows], snapshot.request[rows])
            if not fits(need.request, need.count, np.ones((1, stop - start), bool), room[start:stop]):
                continue
            gone = np.bincount(tasks.podgroup[rows], minlength=len(have))
            breaks = (have >= minimum) & (have - gone < minimum)
            single = rows[~breaks[tasks.podgroup[rows]] & (have >= minimum)[tasks.podgroup[rows]]]
            lost = unit[single].sum() + unit[breaks[tasks.podgroup] & (tasks.status == RUNNING)].sum()
            priority = snapshot.podgroups.priority[tasks.podgroup[rows]].max(initial=NO_PRIORITY)
            yield int(breaks.sum()), int(priority), float(lost)


@given(crowds())
def test_no_set_of_victims_is_cheaper_than_its_bound(crowd):
    snapshot, weights = crowd
    found = bounded(snapshot, weights)
    count = need_of(snapshot, (0,)).count
    for domain in range(len(snapshot.topology)):
        start, stop = int(snapshot.topology.start[domain]), int(snapshot.topology.stop[domain])
        ways = list(truths(snapshot, weights, start, stop))
        assert bool(ways) == bool((found.reachable[domain] >= count).all())
        for gangs, priority, lost in ways:
            assert found.gangs[domain] <= gangs
            assert found.priority[domain] <= priority
            assert found.lost_work[domain] <= lost + 1e-9
        if bool((found.room[domain] >= count).all()):
            assert (found.gangs[domain], found.lost_work[domain]) == (0, 0.0)


@given(crowds())
def test_the_compiled_sweep_and_its_plain_twin_agree(crowd):
    snapshot, _ = crowd
    tasks, need = snapshot.tasks, need_of(snapshot, (0,))
    unit = in_units(snapshot.shapes.request, needed_by(need.total))
    columns = (tasks.podgroup, tasks.shape, tasks.node, snapshot.shapes.request, unit, 0)
    atom = np.array([0, 0, 1, 1], np.int32)
    candidate = tasks.status == RUNNING
    compiled = footprints.sweep(atom, 2, candidate, *columns)
    plain = footprints.sweep.py_func(atom, 2, candidate, *columns)
    assert all(np.array_equal(one, other) for one, other in zip(compiled, plain, strict=True))
