"""What gangs with parts in regions cost at least, against every set of victims there is."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.cluster.arrays import NONE, frozen
from pipeline.placement.layout.regions_of_parts import NOT_ASKED
from pipeline.placement.need import need_of
from pipeline.solvers.bundles import lower_bounds
from pipeline.solvers.bundles.bundling.kinds import HOPELESS
from pipeline.solvers.bundles.bundling.records import BREAKING
from pipeline.solvers.bundles.region_bounds import _least_missing
from tests.support.placing import RACK, Work, placed
from tests.support.racked_crowds import RACKS, crowd, lost, search_on
from tests.support.twins import uncompiled


@st.composite
def crowds(draw):
    """A gang of parts, equal or of several sizes with tasks of one or two cores; weights; cores of each part."""
    one = st.lists(st.integers(1, 2), min_size=1, max_size=3)
    equal = st.tuples(st.integers(1, 3), st.integers(1, 3)).map(lambda said: [[1] * said[0]] * said[1])
    parts = draw(equal | st.lists(one, min_size=1, max_size=3))
    return *crowd(draw, parts, [1] * draw(st.integers(0, 1))), [sum(tasks) for tasks in parts]


def bounded(search):
    """The bounds of all domains, those without work, and the levels."""
    topology, seats = search.snapshot.topology, np.full(len(search.snapshot.podgroups), NONE, np.int32)
    slices = topology.start.copy(), topology.stop.copy()  # writable, as those of some domains are
    return lower_bounds.bound_domains(
        search.site, search.asked_of_regions or NOT_ASKED, *slices, search.terms, search.kinds, seats, False
    )


def ways(snapshot, start, stop, parts):
    """Every set of victims with which racks have the cores of all parts, and all nodes those of the gang."""
    tasks, rack = snapshot.tasks, np.arange(len(RACKS)).repeat(RACKS)[start:stop]
    inside = np.flatnonzero((tasks.podgroup != 0) & (tasks.node >= start) & (tasks.node < stop))
    for count in range(len(inside) + 1):
        for victims in combinations(inside.tolist(), count):
            rows, room = np.array(victims, np.int64), snapshot.room.future[:, 0] // 1000
            np.add.at(room, tasks.node[rows], snapshot.request[rows][:, 0] // 1000)
            slots = np.bincount(rack, weights=np.maximum(room[start:stop], 0), minlength=len(RACKS))
            fits = any(
                (np.bincount(where, weights=parts, minlength=len(RACKS)) <= slots).all()
                for where in product(range(len(RACKS)), repeat=len(parts))
            )
            if fits and slots.sum() >= need_of(snapshot, (0,)).total[0] // 1000:
                yield rows


@given(crowds())
def test_no_set_of_victims_of_a_preempt_is_cheaper_than_its_bound(drawn):
    snapshot, weights, parts = drawn
    found, topology = bounded(search_on(snapshot, weights, by_priority=True))[0], snapshot.topology
    for domain in range(len(topology)):
        head = int(found.head[domain])
        least = ((int(found.priority[domain]), float(found.work[domain])),)
        for rows in ways(snapshot, int(topology.start[domain]), int(topology.stop[domain]), parts):
            broken, surplus = lost(snapshot, weights, rows)
            assert head != HOPELESS
            if head >= BREAKING:
                assert least <= tuple((priority, work + 1e-9) for priority, work in broken)
            elif head and not broken:
                assert least <= tuple((priority, work + 1e-9) for priority, work in surplus)


@given(crowds())
def test_no_set_of_victims_of_a_reclaim_is_cheaper_than_its_bound(drawn):
    snapshot, weights, parts = drawn
    rank = frozen([0, 2, 1, 3], np.int64)
    found, topology = bounded(search_on(snapshot, weights, by_priority=False, queue_rank=rank))[0], snapshot.topology
    for domain in range(len(topology)):
        head, work = int(found.head[domain]), float(found.work[domain])
        for rows in ways(snapshot, int(topology.start[domain]), int(topology.stop[domain]), parts):
            (broken, _), groups = lost(snapshot, weights, rows), snapshot.tasks.podgroup[rows]
            assert (head, work) <= (int(rank[groups].max(initial=0)), sum(loses for _, loses in broken) + 1e-9)


def test_regions_that_lack_room_each_ask_for_more_than_the_domain_as_a_whole():
    """Four cores are idle, two in each of two racks: enough for four tasks, but not for a part of three and one."""
    work = [Work(0, subgroup=0)] * 3 + [Work(0)] + [Work(1, cpu=2, node=0), Work(2, cpu=2, node=2)]
    groups = [{"min_available": 4}, {"priority": 3}, {"priority": 5}]
    snapshot = placed([4, 0, 4], work, racks=[2, 1], groups=groups, subgroups=[(0, NONE, 3, RACK)])
    weights, without = np.ones(3), placed([4, 0, 4], [Work(0)] * 4 + work[4:], racks=[2, 1], groups=groups)
    block = 1
    assert bounded(search_on(without, weights, by_priority=True))[0].head[block] == 0
    found = bounded(search_on(snapshot, weights, by_priority=True))[0]
    assert (found.head[block] >= BREAKING, found.priority[block]) == (True, 3)


@pytest.mark.parametrize(
    ("part", "running", "least", "weights", "ranks"),
    [
        (4, (4, 2), (1, 2), (1.0, 5.0), (1, 1)),  # three of the first are surplus, and a fourth breaks it alone
        (5, (2, 4), (2, 1), (0.1, 5.0), (1, 2)),  # the surplus of the second, and the first, which is of a fairer queue
    ],
)
def test_what_breaks_in_a_reclaim_only_frees_what_all_surplus_leaves_to_be_freed(part, running, least, weights, ranks):
    """A rack of six cores is full of two podgroups, and another one has no core."""
    work = [Work(0, subgroup=0)] * part + [Work(1, node=0)] * running[0] + [Work(2, node=0)] * running[1]
    groups = [{"min_available": minimum} for minimum in (part, *least)]
    snapshot = placed([6, 0], work, racks=[1, 1], groups=groups, subgroups=[(0, NONE, part, RACK)])
    weighed, rank = np.array([1.0, *weights]), frozen([0, *ranks], np.int64)
    found = bounded(search_on(snapshot, weighed, by_priority=False, queue_rank=rank))[0]
    head, work = min(
        (int(rank[snapshot.tasks.podgroup[rows]].max()), sum(loses for _, loses in lost(snapshot, weighed, rows)[0]))
        for rows in ways(snapshot, 0, 2, [part])
    )
    assert (found.head[0], found.work[0]) == (head, pytest.approx(work, abs=1e-5))


@pytest.mark.parametrize("seed", range(40))
def test_equal_parts_lack_what_they_lack_where_they_lack_least(seed):
    rng = np.random.default_rng(seed)
    racks, size, many = rng.integers(1, 4), rng.integers(1, 4), rng.integers(1, 4)
    idle = rng.integers(0, 5, racks)
    held, wanted = idle + rng.integers(0, 9, racks), []
    for where in product(range(racks), repeat=many):
        taken = np.bincount(where, minlength=racks) * size
        if (taken <= held).all():
            wanted.append(np.maximum(taken - idle, 0).sum())
    if wanted:
        amount = np.array([size] * many + [0])
        assert _least_missing(held.astype(float), idle.astype(float), amount) == min(wanted)


@given(crowds())
def test_the_compiled_bounds_and_their_plain_twin_agree(drawn):
    snapshot, weights, _ = drawn
    for by_priority in (True, False):
        search = search_on(snapshot, weights, by_priority=by_priority)
        compiled = bounded(search)
        with uncompiled():
            plain = bounded(search)
        for one, other in zip(compiled, plain, strict=True):
            assert all(np.array_equal(mine, its) for mine, its in zip(one, other, strict=True))
