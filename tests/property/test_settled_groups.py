"""Groups of a gang in regions: kernels against the same search in plain Python."""

import numpy as np
import pytest
from hypothesis import given

from pipeline.cluster.arrays import NONE
from pipeline.cluster.rules.constraints import allowed
from pipeline.placement.layout import topology_packing
from pipeline.placement.layout.regions_of_parts import asked_of_regions
from pipeline.placement.need import need_of
from tests.support.grouped_gangs import APART, crowded, gangs
from tests.support.placing import NOWHERE, RACK, Work, placed
from tests.support.tried_out import tried_out
from tests.support.twins import uncompiled


@given(gangs())
def test_they_go_where_trying_it_out_in_python_puts_them(snapshot):
    need, nodes = need_of(snapshot, (0,)), len(snapshot.nodes)
    packing = topology_packing.Packings(need, allowed(snapshot, need.shapes), snapshot).on(0, nodes)
    room, outline = packing._room(snapshot.room.future, NOWHERE), packing._outline
    assert outline is not None
    tree = outline.tree
    oracle = tried_out(snapshot.topology, 0, outline.groups, tree.own, room)
    trials = topology_packing.TRIALS_A_PART * len(outline.groups)
    before = topology_packing.no_groups_placed(tree, packing._asked_of_room)
    with uncompiled():
        again, _ = topology_packing.settled(tree, packing._room(snapshot.room.future, NOWHERE), trials, before)
    found, _ = topology_packing.settled(tree, room, trials, before)
    assert found.tolist() == again.tolist() == ([] if oracle is None else oracle.tolist())


@given(gangs())
def test_regions_that_are_refused_for_a_gang_take_it_in_no_way(snapshot):
    need, nodes = need_of(snapshot, (0,)), len(snapshot.nodes)
    asked, open_to = asked_of_regions(need, need.request, snapshot), allowed(snapshot, need.shapes)
    for start, stop in ((0, nodes), (0, nodes // 2), (nodes // 2, nodes)):
        known = topology_packing.Packings(need, open_to, snapshot, asked=asked).on(start, stop)
        room = snapshot.room.future[start:stop]
        with uncompiled():
            again = known.may_fit(room)
        assert known.may_fit(room) == again
        places = topology_packing.Packings(need, open_to, snapshot).on(start, stop).places(room, NOWHERE)
        assert known.may_fit(room) or places is None


@given(crowded())
def test_nodes_that_tasks_deny_count_for_no_part_until_these_leave(given_case):
    snapshot, leaving = given_case
    need, nodes = need_of(snapshot, (0,)), len(snapshot.nodes)
    asked, open_to = asked_of_regions(need, need.request, snapshot), allowed(snapshot, need.shapes)
    for start, stop in ((0, nodes), (0, nodes // 2), (nodes // 2, nodes)):
        known = topology_packing.Packings(need, open_to, snapshot, asked=asked).on(start, stop)
        room = snapshot.room.future[start:stop].copy()
        for gone in (NOWHERE, leaving, NOWHERE):
            if not known.may_fit(room, gone):
                assert topology_packing.Packings(need, open_to, snapshot).on(start, stop).places(room, gone) is None
            assert known.may_fit(room) or not known.may_fit(room, gone)


def test_a_rack_whose_nodes_repel_a_part_is_refused():
    """Two racks for two parts of two tasks; a task that repels them runs in one."""
    runs = Work(1, 0, node=0, labels=(("app", "a"),))
    work = [Work(0, subgroup=part, constraint=APART[0]) for part in (0, 0, 1, 1)]
    subgroups = [(0, NONE, 2, RACK)] * 2
    snapshot = placed([2, 1, 1, 1], [*work, runs], racks=[2, 2], groups=[{"min_available": 4}, {}], subgroups=subgroups)
    need = need_of(snapshot, (0,))
    asked = asked_of_regions(need, need.request, snapshot)
    packing = topology_packing.Packings(need, allowed(snapshot, need.shapes), snapshot, asked=asked).on(0, 4)
    room = snapshot.room.future.copy()
    assert packing.may_fit(room)
    assert not packing.may_fit(room, NOWHERE)
    assert packing.may_fit(room, np.array([4]))


def test_regions_are_refused_by_what_parts_of_one_size_or_larger_ask_for():
    """Four racks of four cores take a part of four cores and four of two; not one of four and four of three."""
    for parts, fits in (
        ([[2, 2], [1, 1], [1, 1], [1, 1], [1, 1]], True),
        ([[2, 2], [1, 2], [1, 2], [2, 1], [1, 2]], False),
    ):
        work = [Work(0, cpu, subgroup=part) for part, tasks in enumerate(parts) for cpu in tasks]
        subgroups = [(0, NONE, len(tasks), RACK) for tasks in parts]
        groups = [{"min_available": len(work)}]
        snapshot = placed([4] * 4, work, racks=[1] * 4, groups=groups, subgroups=subgroups)
        need = need_of(snapshot, (0,))
        asked = asked_of_regions(need, need.request, snapshot)
        places = topology_packing.Packings(need, allowed(snapshot, need.shapes), snapshot, asked=asked).on(0, 4)
        assert places.may_fit(snapshot.room.future) == fits


@pytest.mark.parametrize("level", [NONE, RACK])
def test_kinds_beyond_the_minimum_ask_for_nothing(level):
    work = [Work(0, 1, subgroup=0), Work(0, 2, subgroup=1), Work(0, 3, subgroup=1)]
    subgroups = [(0, NONE, 1, level), (0, NONE, 1, RACK)]
    snapshot = placed([2, 2, 2], work, racks=[1, 1, 1], groups=[{"min_available": 2}], subgroups=subgroups)
    need = need_of(snapshot, (0,))
    assert (need.minimum, len(need.shapes)) == (2, 3)
    places = topology_packing.Packings(need, allowed(snapshot, need.shapes), snapshot).on(0, 3)
    assert places.places(snapshot.room.future, NOWHERE) is not None
