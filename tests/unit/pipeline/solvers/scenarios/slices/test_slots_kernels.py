"""Units that must go and units that may return, counted in slots, against the same worked out anew for every step."""

from typing import NamedTuple

import numpy as np
import pytest

from pipeline.cluster.arrays import NONE
from pipeline.cluster.resources import slots
from pipeline.placement.layout.region_slots import ANY, NO_PARTS, PartsInRegions
from pipeline.placement.room.ground import Ground, _counted, ground_on
from pipeline.placement.room.room_columns import RoomColumns
from pipeline.solvers.scenarios.slices.slots_kernels import fullest, may_be_enough, returned, units_needed, with_slots
from tests.support.twins import uncompiled


class Fleet(NamedTuple):
    """Nodes 2 to 6 of 9, and tasks in units that may go; some of them run elsewhere."""

    ground: Ground
    start: np.ndarray
    rows: np.ndarray

    def unit(self, at):
        return self.rows[self.start[at] : self.start[at + 1]]

    def fits(self, gone):
        ground, room, asks = self.ground, self.ground.room.copy(), self.ground.request.shape[1]
        for row in gone:
            at = ground.node[row] - ground.first
            if 0 <= at < len(room):
                room[at] += ground.held[ground.shape[row]]
        there = np.array(
            [slots(ground.request[s], room[:, :asks]) * ground.allowed[s, 2:7] for s in range(len(ground.wanted))]
        )
        if room.shape[1] > asks:
            on_cards = [(np.maximum(room[:, asks:], 0) // request[-1]).sum(axis=1) for request in ground.request]
            there = np.minimum(there, on_cards)
        there = np.minimum(there, ground.wanted[:, None])
        if parts := len(ground.by_region.parts.size):
            return sum(there[0, one].sum() // 2 for one in (slice(2), slice(3, 5))) >= parts
        return (there.sum(axis=1) >= ground.wanted).all()


@pytest.fixture(params=range(60))
def fleet(request):
    """One after the other no cards and parts, cards, parts of two in two regions, both; one shape, or two of them."""
    rng = np.random.default_rng(request.param)
    carded, parted = request.param % 4 in {1, 3}, request.param % 4 > 1
    shapes = 2 if request.param % 8 < 2 else 1
    cards = 2 if carded else 0
    held = rng.integers(0, 5, (3, 3 + cards))
    asked, wanted = rng.integers(1, 5, (shapes, 3)), rng.integers(1, 9, shapes)
    allowed, room = rng.random((shapes, 9)) < 0.8, rng.integers(-2, 4, (9, 3 + cards))
    node, form = rng.integers(0, 9, 20).astype(np.int32), rng.integers(0, 3, 20).astype(np.int32)
    parts = NO_PARTS
    if parted:
        wanted = 2 * rng.integers(1, 5, 1)
        size, region = np.full(wanted[0] // 2, 2, np.int32), np.repeat(np.int32([0, 1, NONE, 2, 3]), [2, 2, 1, 2, 2])
        parts = PartsInRegions(size, 2, True, ANY, size[:0], region, size[:0])
    columns = RoomColumns(asked, held, np.arange(3), form, room, room, room, cards)
    said = wanted, allowed, NONE
    ground = ground_on((2, 7), (node, form), columns, *said, parts)
    with uncompiled():
        plain = _counted.py_func((2, 7), asked, *said, room, parts)
    assert [one.tolist() for one in plain[:3]] == [one.tolist() for one in ground[8:11]]
    return Fleet(ground, np.array([0, 1, 4, 5, 9, 10, 14, 20]), rng.permutation(20))


def test_the_leading_units_are_the_fewest_without_which_the_tasks_fit(fleet):
    enough = [many for many in range(8) if fleet.fits(fleet.rows[: fleet.start[many]])]
    assert units_needed(fleet.ground, fleet.start, fleet.rows) == (enough[0] if enough else NONE)
    with uncompiled():
        assert units_needed.py_func(fleet.ground, fleet.start, fleet.rows) == (enough[0] if enough else NONE)


def test_what_leaves_suffices_where_it_fits_and_the_sums_are_enough(fleet):
    for many in range(8):
        gone, room = fleet.rows[: fleet.start[many]], fleet.ground.room.copy()
        for row in gone:
            if 0 <= fleet.ground.node[row] - 2 < len(room):
                room[fleet.ground.node[row] - 2] += fleet.ground.held[fleet.ground.shape[row]]
        total, open_to = fleet.ground.wanted @ fleet.ground.request, fleet.ground.allowed[:, 2:7].any(axis=0)
        expected = fleet.fits(gone) and (np.maximum(room[open_to, : len(total)], 0).sum(axis=0) >= total).all()
        assert may_be_enough(fleet.ground, total, gone) == expected
        with uncompiled():
            assert may_be_enough.py_func(fleet.ground, total, gone) == expected


def returning(fleet, order, many, quota):
    """The units that return in one order after the leading ones have gone; those that stay count as well."""
    upto = int(fleet.start[many])
    gone, back = set(fleet.rows[:upto].tolist()), np.arange(7) >= many
    held = fleet.ground.held[:, : len(quota)]
    left = quota + held[fleet.ground.shape[fleet.rows[:upto]]].sum(axis=0)
    for unit in order[order < many]:
        mine = fleet.unit(unit)
        more = held[fleet.ground.shape[mine]].sum(axis=0)
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
    ground = fleet.ground._replace(allowed=fleet.ground.allowed[:, 2:7].copy())
    used = np.random.default_rng(1).integers(0, 9, (5, 3))
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
    ground = fleet.ground._replace(allowed=fleet.ground.allowed[:, 2:7].copy())
    used = np.random.default_rng(2).integers(0, 9, (5, 3))
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
