"""Placement by classes against an oracle that tries every way."""

from functools import cache
from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipeline.cluster.rules.constraints import allowed
from pipeline.placement.layout import packing as placement
from pipeline.placement.layout.packing import place_classes
from pipeline.placement.layout.topology_packing import Packings
from pipeline.placement.need import need_of
from tests.support.placing import NOWHERE, RACK, Work, placed
from tests.support.twins import uncompiled


@st.composite
def packings(draw, shapes=3):
    """Requests, counts, allowed nodes and room, small enough for the oracle."""
    many, nodes = draw(st.integers(1, shapes)), draw(st.integers(1, 3))
    request = draw(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 2)), min_size=many, max_size=many))
    room = draw(st.lists(st.tuples(st.integers(-2, 6), st.integers(0, 5)), min_size=nodes, max_size=nodes))
    open_to = draw(st.lists(st.lists(st.booleans(), min_size=nodes, max_size=nodes), min_size=many, max_size=many))
    count = draw(st.lists(st.integers(0, 4), min_size=many, max_size=many))
    return np.array(request), np.array(count), np.array(open_to), np.array(room)


def possible(request, count, open_to, room):
    """Whether any assignment of tasks to nodes fits: exhaustive search."""
    tasks = [shape for shape, many in enumerate(count) for _ in range(many)]

    @cache
    def rest(done, left):
        if done == len(tasks):
            return True
        shape = tasks[done]
        for node, have in enumerate(left):
            if open_to[shape][node] and all(a <= h for a, h in zip(request[shape], have, strict=True) if a > 0):
                less = tuple(int(h - a) for a, h in zip(request[shape], have, strict=True))
                if rest(done + 1, (*left[:node], less, *left[node + 1 :])):
                    return True
        return False

    return rest(0, tuple(tuple(int(x) for x in row) for row in room))


def fits(request, count, open_to, room):
    return (place_classes(request, count, open_to, room).sum(axis=1) == count).all()


@given(packings(shapes=1))
def test_one_shape_is_placed_exactly(packing):
    assert fits(*packing) == possible(*packing)


@given(packings())
def test_several_shapes_are_never_said_to_fit_when_they_do_not(packing):
    if fits(*packing):
        assert possible(*packing)


@given(packings())
def test_counts_never_overfill_a_node(packing):
    request, count, open_to, room = packing
    taken = place_classes(*packing)
    assert (taken.sum(axis=1) <= count).all()
    assert not taken[~open_to].any()
    used = taken.T @ request
    assert ((used <= room) | (used == 0)).all()


@given(packings())
def test_the_compiled_kernels_and_their_plain_twins_agree(packing):
    compiled = placement.placed_classes(*packing)
    with uncompiled():
        assert np.array_equal(placement.placed_classes(*packing), compiled)


@given(
    cores=st.lists(st.integers(0, 4), min_size=6, max_size=6),
    parts=st.lists(st.tuples(st.integers(1, 3), st.integers(1, 2)), min_size=1, max_size=3),
)
def test_an_arrangement_keeps_every_part_in_its_rack_and_every_node_within_its_room(cores, parts):
    work = [Work(0, cpu=cpu, subgroup=part) for part, (many, cpu) in enumerate(parts) for _ in range(many)]
    snapshot = placed(
        cores, work, racks=[2, 2, 2], groups=[{"min_available": len(work)}],
        subgroups=[(0, -1, many, RACK) for many, _ in parts],
    )  # fmt: skip
    need = need_of(snapshot, (0,))
    nodes = Packings(need, allowed(snapshot, need.shapes), snapshot).on(0, 6).places(snapshot.room.future, NOWHERE)
    if nodes is None:
        return
    used = np.zeros_like(snapshot.room.idle)
    np.add.at(used, nodes, snapshot.request[need.tasks])
    assert (used <= snapshot.room.idle).all()
    for part in np.unique(need.part):
        assert len(set((nodes[need.part == part] // 2).tolist())) == 1


@given(
    cores=st.lists(st.integers(0, 3), min_size=4, max_size=4), many=st.lists(st.integers(1, 4), min_size=1, max_size=2)
)
def test_parts_of_equal_tasks_find_their_racks_whenever_there_is_a_way(cores, many):
    work = [Work(0, subgroup=part) for part, tasks in enumerate(many) for _ in range(tasks)]
    snapshot = placed(
        cores, work, racks=[2, 2], groups=[{"min_available": len(work)}],
        subgroups=[(0, -1, tasks, RACK) for tasks in many],
    )  # fmt: skip
    need = need_of(snapshot, (0,))
    found = Packings(need, allowed(snapshot, need.shapes), snapshot).on(0, 4).places(snapshot.room.future, NOWHERE)
    room = (sum(cores[:2]), sum(cores[2:]))
    fitting = any(
        all(sum(tasks for tasks, at in zip(many, racks, strict=True) if at == rack) <= room[rack] for rack in (0, 1))
        for racks in product((0, 1), repeat=len(many))
    )
    assert (found is not None) == fitting
