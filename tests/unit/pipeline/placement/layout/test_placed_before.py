"""What became of groups in regions before: it is the same as what would be worked out, and is not worked out again."""

from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipeline.cluster.arrays import NONE
from pipeline.cluster.rules.constraints import allowed
from pipeline.placement.layout import placed_before, topology_packing
from pipeline.placement.need import need_of
from tests.support.grouped_gangs import with_cards
from tests.support.placing import NOWHERE, RACK, Work, placed
from tests.support.twins import uncompiled


def packing_of(snapshot):
    need = need_of(snapshot, (0,))
    packings = topology_packing.Packings(need, allowed(snapshot, need.shapes), snapshot)
    return packings.on(0, len(snapshot.nodes))


def laid_out(packing, room, before):
    """The places, and what is left where there are some; in what ``before`` knows, or None: nothing is known."""
    tree, there = packing._outline.tree, packing._room(room, NOWHERE)
    if before is None:
        before = topology_packing.no_groups_placed(tree, packing._asked_of_room)
    taken, _ = topology_packing.settled(tree, there, 200, before)
    left = (there.left, there.cards_left, there.held, there.slots) if len(taken) else ()
    return [one.tolist() for one in (taken, *left)]


def one_row_of(before):
    return placed_before.PlacedBefore(*(column[:1] for column in before))


def in_racks(parts, cores):
    """Three racks of two nodes of some cores; parts in a rack each, whose tasks ask for some cores."""
    work = [Work(0, cpu, subgroup=part) for part, tasks in enumerate(parts) for cpu in tasks]
    subgroups = [(0, NONE, len(tasks), RACK) for tasks in parts]
    return placed(cores, work, racks=[2] * 3, groups=[{"min_available": len(work)}], subgroups=subgroups)


@given(st.data())
def test_groups_go_where_they_would_if_nothing_was_known(data):
    parts = data.draw(st.lists(st.lists(st.sampled_from([1, 1, 2]), min_size=1, max_size=3), min_size=1, max_size=4))
    snapshot = in_racks(parts, data.draw(st.lists(st.integers(1, 4), min_size=6, max_size=6)))
    packing = packing_of(with_cards(data.draw, snapshot) if data.draw(st.booleans()) else snapshot)
    before = topology_packing.no_groups_placed(packing._outline.tree, packing._asked_of_room)
    if data.draw(st.booleans()):  # only what is compared tells groups and rooms apart
        before = one_row_of(before)
    room = snapshot.room.future.copy()
    for node in data.draw(st.lists(st.integers(0, 5), min_size=4, max_size=8)):
        assert laid_out(packing, room, before) == laid_out(packing, room, None)
        room[node, 0] = 1000 * data.draw(st.integers(0, 4))


def test_other_room_in_the_same_rack_is_told_apart():
    packing = packing_of(in_racks([(1, 1, 2)], [3, 3, 0, 0, 0, 0]))
    before = topology_packing.no_groups_placed(packing._outline.tree, packing._asked_of_room)
    before = one_row_of(before)
    for cores in product(range(4), repeat=2):
        room = packing.of.snapshot.room.future.copy()
        room[:2, 0] = np.array(cores) * 1000
        assert laid_out(packing, room, before) == laid_out(packing, room, None)


def test_what_met_the_same_room_before_is_not_placed_anew(monkeypatch):
    packing = packing_of(in_racks([(1, 1, 2), (1, 1, 1), (2,)], [3] * 6))
    before = topology_packing.no_groups_placed(packing._outline.tree, packing._asked_of_room)
    placings, room = [], packing.of.snapshot.room.future.copy()
    with uncompiled():
        place = placed_before.place

        def counted(*asked):
            placings.append(asked[2:4])
            return place(*asked)

        with monkeypatch.context() as patched:
            patched.setattr(placed_before, "place", counted)
            found = laid_out(packing, room, before)
            assert len(placings) == 3
            assert laid_out(packing, room, before) == found
            assert len(placings) == 3
            room[placings[0][0]] -= 1  # what goes into a rack that did not change is known
            changed = laid_out(packing, room, before)
            assert 3 < len(placings) < 6
        assert changed == laid_out(packing, room, None)


def test_nodes_with_more_cards_than_are_compared_have_groups_placed_anew(monkeypatch):
    packing = packing_of(in_racks([(1, 1, 2), (1, 1, 1), (2,)], [3] * 6))
    monkeypatch.setattr(placed_before, "_CARDS", 0)
    there = packing._room(packing.of.snapshot.room.future, NOWHERE)
    there = there._replace(carded=np.zeros(1, np.int64), cards=np.zeros((6, 1), np.int64))
    before = topology_packing.no_groups_placed(packing._outline.tree, packing._asked_of_room)
    with uncompiled():
        assert not placed_before._may_know(there, 0, 2, before)
        assert placed_before._may_know(there._replace(carded=NOWHERE), 0, 2, before)
