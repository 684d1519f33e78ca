"""Units that must go and units that may return, counted in slots, against the same worked out anew for every step."""

from typing import NamedTuple

import numpy as np
import pytest

from pipeline.cluster.arrays import NONE
from pipeline.cluster.resources import slots
from pipeline.solvers.scenarios.slices.slots_kernels import (
    CountedSlice,
    _counted,
    counted,
    fullest,
    leading,
    returned,
    suffices,
    with_slots,
)
from tests.support.twins import uncompiled


class Fleet(NamedTuple):
    """Nodes 2 to 6 of 9, and tasks in units that may go; some of them run elsewhere."""

    ground: CountedSlice
    start: np.ndarray
    rows: np.ndarray

    def unit(self, at):
        return self.rows[self.start[at] : self.start[at + 1]]

    def fits(self, gone):
        ground, room, asks = self.ground, self.ground.room.copy(), self.ground.request.shape[1]
        for row in gone:
            at = ground.node[row] - ground.first
            if 0 <= at < len(room):
                room[at] += ground.held[ground.form[row]]
        there = np.array(
            [slots(ground.request[s], room[:, :asks]) * ground.allowed[s] for s in range(len(ground.wanted))]
        )
        if room.shape[1] > asks:
            on_cards = [(np.maximum(room[:, asks:], 0) // request[-1]).sum(axis=1) for request in ground.request]
            there = np.minimum(there, on_cards)
        there = np.minimum(there, ground.wanted[:, None])
        if ground.each:
            each, region = ground.each, ground.region
            in_parts = [there[0, region == one].sum() // each * each for one in np.unique(region[region != NONE])]
            return sum(in_parts) >= ground.wanted[0]
        return (there.sum(axis=1) >= ground.wanted).all()


def empty(ground):
    return ground._replace(slots=ground.slots * 0, total=ground.total * 0, regions=ground.regions * 0)


@pytest.fixture(params=range(60))
def fleet(request):
    """One after the other no cards and parts, cards, parts of two in two regions, both; one shape, or two of them."""
    rng = np.random.default_rng(request.param)
    carded, parted = request.param % 4 in {1, 3}, request.param % 4 > 1
    shapes = 2 if request.param % 8 < 2 else 1
    cards = 2 if carded else 0
    held = rng.integers(0, 5, (3, 3 + cards))
    asked, wanted = rng.integers(1, 5, (shapes, 3)), rng.integers(1, 9, shapes)
    allowed, room = rng.random((shapes, 5)) < 0.8, rng.integers(-2, 4, (5, 3 + cards))
    node, form = rng.integers(0, 9, 20).astype(np.int32), rng.integers(0, 3, 20).astype(np.int32)
    none = np.zeros(0, np.int64)
    parts = (np.array([0, 0, NONE, 3, 3]), 2) if parted else (none, 0)
    ground = CountedSlice(node, form, held, 2, asked, wanted, allowed, room, *parts, none[None], none, none)
    ground = counted(ground)
    with uncompiled():
        assert [part.tolist() for part in _counted.py_func(empty(ground))] == [part.tolist() for part in ground[-3:]]
    return Fleet(ground, np.array([0, 1, 4, 5, 9, 10, 14, 20]), rng.permutation(20))


def test_the_leading_units_are_the_fewest_without_which_the_tasks_fit(fleet):
    enough = [many for many in range(8) if fleet.fits(fleet.rows[: fleet.start[many]])]
    assert leading(fleet.ground, fleet.start, fleet.rows) == (enough[0] if enough else NONE)
    with uncompiled():
        assert leading.py_func(fleet.ground, fleet.start, fleet.rows) == (enough[0] if enough else NONE)


def test_what_leaves_suffices_where_it_fits_and_the_sums_are_enough(fleet):
    for many in range(8):
        gone, room = fleet.rows[: fleet.start[many]], fleet.ground.room.copy()
        for row in gone:
            if 0 <= fleet.ground.node[row] - 2 < len(room):
                room[fleet.ground.node[row] - 2] += fleet.ground.held[fleet.ground.form[row]]
        total, open_to = fleet.ground.wanted @ fleet.ground.request, fleet.ground.allowed.any(axis=0)
        expected = fleet.fits(gone) and (np.maximum(room[open_to, : len(total)], 0).sum(axis=0) >= total).all()
        assert suffices(fleet.ground, total, gone) == expected
        with uncompiled():
            assert suffices.py_func(fleet.ground, total, gone) == expected


def returning(fleet, order, many, quota):
    """The units that return in one order after the leading ones have gone; those that stay count as well."""
    upto = int(fleet.start[many])
    gone, back = set(fleet.rows[:upto].tolist()), np.arange(7) >= many
    held = fleet.ground.held[:, : len(quota)]
    left = quota + held[fleet.ground.form[fleet.rows[:upto]]].sum(axis=0)
    for unit in order[order < many]:
        mine = fleet.unit(unit)
        more = held[fleet.ground.form[mine]].sum(axis=0)
        if (more <= left).all() and fleet.fits(gone - set(mine.tolist())):
            gone, left, back[unit] = gone - set(mine.tolist()), left - more, True
    return back.tolist()


def asked(fleet, counts, orders, quota):
    many = np.repeat(counts, len(orders))
    every = np.concatenate([orders] * len(counts))
    return fleet.ground, fleet.start, fleet.rows, fleet.rows, quota, every, many, fleet.start[many]


ORDERS = np.array([np.arange(7), np.arange(7)[::-1], [3, 0, 6, 1, 5, 2, 4]])


@pytest.mark.parametrize("counts", [[7], [3, 4, 7]])
def test_units_return_in_each_order_as_long_as_the_tasks_fit_and_the_quota_lasts(fleet, counts):
    quota = np.array([-8, -12, 1 << 40])
    said = asked(fleet, counts, ORDERS, quota)
    expected = [returning(fleet, order, many, quota) for many in counts for order in ORDERS]
    assert returned(*said).tolist() == expected


def test_compiled_and_plain_twins_return_the_same_units(fleet):
    said = asked(fleet, [5, 7], ORDERS, np.array([-10, -15, -5]))
    compiled = returned(*said).tolist()
    with uncompiled():
        assert returned.py_func(*said).tolist() == compiled


def test_nodes_that_take_tasks_are_told_with_their_slots_and_what_would_fill_them(fleet):
    ground, used = fleet.ground, np.random.default_rng(1).integers(0, 9, (5, 3))
    room = ground.room[:, :3].copy()
    capacity = used + np.maximum(room, 0)
    nodes, there, spare = with_slots(ground.request, 0, ground.allowed, room, capacity, used)
    expected = slots(ground.request[0], room) * ground.allowed[0]
    assert nodes.tolist() == np.flatnonzero(expected).tolist()
    assert there.tolist() == expected[nodes].tolist()
    assert spare.tolist() == ((capacity - used)[nodes] / ground.request[0]).min(axis=1).tolist()
    with uncompiled():
        plain = with_slots.py_func(ground.request, 0, ground.allowed, room, capacity, used)
    assert [one.tolist() for one in plain] == [nodes.tolist(), there.tolist(), spare.tolist()]


@pytest.mark.parametrize("emptiest", [False, True])
def test_nodes_with_the_fewest_slots_are_filled_first_and_then_those_with_the_least_room(fleet, emptiest):
    ground, used = fleet.ground, np.random.default_rng(2).integers(0, 9, (5, 3))
    room = np.repeat(ground.room[:1, :3], 5, axis=0) + np.array([[40], [0], [40], [20], [0]])
    said = ground.request, 0, ground.allowed, room, used + np.maximum(room, 0), used
    nodes, there, spare = with_slots(*said)
    order = np.lexsort((-spare if emptiest else spare, there))
    every = nodes[order].repeat(there[order])
    for wanted in range(len(every) + 3):
        expected = sorted(every[:wanted].tolist())
        assert fullest(*said, wanted, emptiest).tolist() == expected
        with uncompiled():
            assert fullest.py_func(*said, wanted, emptiest).tolist() == expected
