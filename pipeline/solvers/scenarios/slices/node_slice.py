"""One slice of nodes in which room is sought, and whether the need fits there with some tasks gone."""

from dataclasses import dataclass

import numpy as np

from pipeline.cluster.arrays import Bools, Longs, Rows, any_true, sizes
from pipeline.cluster.rules.anti_affinity import concerns
from pipeline.cluster.snapshot import Snapshot
from pipeline.keeping import cached_property
from pipeline.placement.layout.regions_of_parts import NOT_ASKED, AskedOfRegions
from pipeline.placement.layout.room_left import asked_of_room
from pipeline.placement.layout.settled_groups import NO_TREE, AskedPlaces
from pipeline.placement.layout.topology_packing import Packing, Packings
from pipeline.placement.need import Need
from pipeline.solvers.scenarios.slices.halves import Asked, Begun, Halves, begun, halves, some_return, too_few_return
from pipeline.solvers.scenarios.slices.limiting import limits_of
from pipeline.solvers.scenarios.slices.slots_kernels import (
    CountedSlice,
    SlotLimits,
    counted,
    leading,
    returned,
    suffices,
    with_slots,
)
from pipeline.solvers.scenarios.units import VictimUnits


@dataclass(frozen=True)
class NodeSlice:
    """A slice of nodes, with the need that is to be placed there.

    Attributes
    ----------
    allowed: bool[S, N]
        Nodes that each of the need's shapes may use, of all nodes.
    domain, start, stop
        The slice is that of the domain: node rows ``start:stop``.
    asked
        What parts of the need ask of regions; None: not known.
    keeps
        Whether places are kept while units return, so that few tasks are placed anew. Then it may be that the need
        cannot be laid out anew at the end.
    """

    snapshot: Snapshot
    need: Need
    allowed: Bools
    domain: int
    start: int
    stop: int
    asked: AskedOfRegions | None = None
    keeps: bool = False

    @cached_property
    def _loose(self) -> bool:
        """Whether only resources and nodes constrain the tasks."""
        cards = any_true(self.snapshot.shapes.on_card[self.need.shapes] > 0)
        return self.need.plain and not cards and not concerns(self.snapshot, self.need.tasks)

    @cached_property
    def _limits(self) -> tuple[SlotLimits, bool]:
        return limits_of(self.snapshot, self.need, self.start, self.stop)

    @property
    def plain(self) -> bool:
        """Whether the tasks fit exactly if their slots add up."""
        return self._limits[1]

    @cached_property
    def _here(self) -> Bools:
        return np.ascontiguousarray(self.allowed[:, self.start : self.stop])

    @cached_property
    def _packing(self) -> Packing:
        return Packings(self.need, self.allowed, self.snapshot, asked=self.asked).on(self.start, self.stop)

    @cached_property
    def _ground(self) -> CountedSlice:
        need, tasks, room = self.need, self.snapshot.tasks, self.snapshot.room.future[self.start : self.stop]
        held, limits = self.snapshot.shapes.request, self._limits[0]
        none = np.zeros(0, np.int64)
        return counted(
            CountedSlice(
                tasks.node, tasks.shape, held, self.start, need.request, need.count, self._here, room, limits,
                none[None], none, none,
            )
        )  # fmt: skip

    def room(self, leaving: Rows) -> Longs:
        """int64[n, R]: what the slice's nodes will have once ``leaving`` have gone."""
        snapshot, room = self.snapshot, self.snapshot.room.future[self.start : self.stop].copy()
        at = snapshot.tasks.node[leaving].astype(np.int64) - self.start
        inside = (at >= 0) & (at < len(room))
        snapshot.add_requests(leaving[inside], room, at[inside])
        return room

    def reached(self, units: VictimUnits) -> int:
        """How many leading units must go at least; NONE if all of them are too few. Exact if ``plain``."""
        return int(leading(self._ground, units.start, units.rows))

    def spared(self, units: VictimUnits, leaving: Rows, quota: Longs, orders: Longs, many: Longs, upto: Longs) -> Bools:
        """bool[O, U]: which units return, in each order, after ``leaving`` have gone; only if ``plain``.

        See `slots_kernels.returned`.
        """
        return np.asarray(returned(self._ground, units.start, units.rows, leaving, quota, orders, many, upto))

    def fits(self, leaving: Rows) -> bool:
        """Whether all tasks find a place once ``leaving`` have gone; places are only found where counts do not say."""
        if self.plain:
            return bool(suffices(self._ground, self.need.total, leaving))
        known, asked = self._fitting, leaving.tobytes()
        if asked not in known:
            enough = bool(suffices(self._ground, self.need.total, leaving))
            known[asked] = enough and self._finds(self.room(leaving), leaving)
        return known[asked]

    @cached_property
    def _fitting(self) -> dict[bytes, bool]:
        """What ``fits`` said; orders of return ask about the same tasks again and again."""
        return {}

    def by_halves(self, units: VictimUnits, leaving: Rows, order: Rows) -> Halves:
        """The slice after ``leaving`` have gone, as units return to it in an order (int64[K])."""
        known, asked = self._begun, leaving.tobytes()
        if asked not in known:  # orders of return are tried one after the other
            known.clear()
            known[asked] = begun(self._ground, self._asked, leaving)
        return halves(known[asked], len(units), leaving, order)

    @cached_property
    def _begun(self) -> dict[bytes, Begun]:
        """The last slice of ``by_halves`` before any unit is back."""
        return {}

    def too_few_return(self, units: VictimUnits, leaving: Rows, most: int) -> bool:
        """Whether more than ``most`` of the units that leave can never return; false where slots decide."""
        if self.plain:
            return False
        walk = self.by_halves(units, leaving, np.arange(len(units)))
        return bool(too_few_return(self._ground, self._asked, units.start, units.rows, walk, most))

    def some_return(self, units: VictimUnits, order: Rows, walk: Halves, most: int, *, kept: bool, asks: bool) -> bool:
        """Whether other units may return, see `halves.some_return`; ``asks``: whether the law is asked about it."""
        asks = asks or not self._decides
        return bool(some_return(self._ground, self._asked, units.start, units.rows, order, walk, most, kept, asks))

    @property
    def _decides(self) -> bool:
        """Whether `halves` says if the need fits."""
        return self.plain or len(self._asked.places.tree.own) > 0

    @cached_property
    def _asked(self) -> Asked:
        places = None if self.plain else self._packing.asked_places
        return Asked(self.need.total, places or self._only_regions, self.keeps)

    @property
    def _only_regions(self) -> AskedPlaces:
        need, regions = self.need, self.asked or NOT_ASKED
        room = asked_of_room(need.request, np.zeros(len(need.shapes), np.int64), self.stop - self.start, None)
        return AskedPlaces(self.start, self._here, regions, NO_TREE, room, 0)

    def fits_in(self, room: Longs, leaving: Rows) -> bool:
        """What ``fits`` says where `halves` has not refused it; ``room`` is that once ``leaving`` have gone."""
        if self._decides:
            return True
        known, asked = self._fitting, leaving.tobytes()
        if asked not in known:
            known[asked] = self._finds(room.copy(), leaving, regions=True)
        return known[asked]

    def _finds(self, room: Longs, leaving: Rows, *, regions: bool = False) -> bool:
        """Whether there are places; ``regions``: as far as other tasks repel none, those do not refuse the room."""
        if self._loose:
            return self._placed(room, leaving) is not None
        return (regions or self._packing.may_fit(room)) and self._packing.finds(room, leaving)

    def place(self, leaving: Rows, *, emptiest: bool = False) -> Rows | None:
        """int64[K]: a node for each task once ``leaving`` have gone, or None.

        Of nodes with equally many slots, the one with the least idle room now comes first, so that idle room stays in
        one piece; with ``emptiest`` the one with the most, so that as few tasks as possible have to move.
        """
        return self._placed(self.room(leaving), leaving, emptiest)

    def _placed(self, room: Longs, leaving: Rows, emptiest: bool = False) -> Rows | None:
        found = self._biggest_first(room, emptiest) if self._loose else None
        if found is None and not (self._loose and self.plain):
            return self._packing.places(room, leaving)
        return found

    def _biggest_first(self, room: Longs, emptiest: bool) -> Rows | None:
        """Shape after shape on the fullest nodes that take it; neighbours in rank share nodes."""
        need, places, shapes = self.need, np.empty(self.need.minimum, np.int64), self._by_share(room)
        room = room if len(shapes) == 1 else room.copy()
        for shape in shapes:
            nodes = self._fullest(room, shape, int(need.count[shape]), emptiest)
            if nodes is None:
                return None
            places[need.shape[: need.minimum] == shape] = self.start + nodes
            if shape != shapes[-1]:  # after which the room is not asked about
                np.subtract.at(room, nodes, need.request[shape])
        return places

    def _by_share(self, room: Longs) -> list[int]:
        """The shapes, the one that asks for the largest part of the room first."""
        if len(self.need.shapes) == 1:
            return [0]
        share = (self.need.request / np.maximum(room.sum(axis=0), 1)).max(axis=1)
        return list(np.lexsort((np.arange(len(share)), -share)).tolist())

    def _fullest(self, room: Longs, shape: int, wanted: int, emptiest: bool) -> Rows | None:
        """int64[wanted]: nodes of the slice for tasks of one shape, ascending; None if there are too few slots."""
        now = self.snapshot.room
        capacity, used = now.capacity[self.start : self.stop], now.used[self.start : self.stop]
        nodes, there, spare = with_slots(self.need.request, shape, self._here, room, capacity, used)
        order = np.lexsort((-spare if emptiest else spare, there))
        taken = sizes(np.minimum(there[order].cumsum(), wanted))
        placed = nodes[order].repeat(taken)
        placed.sort()
        return placed if len(placed) == wanted else None
