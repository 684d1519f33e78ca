"""One slice of nodes in which room is sought, and whether the need fits there with some tasks gone."""

from dataclasses import dataclass

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Longs, Rows
from pipeline.cluster.rules.minimum import towards_all
from pipeline.cluster.snapshot import Snapshot
from pipeline.keeping import cached_property
from pipeline.placement.layout.region_slots import NO_PARTS, PartsInRegions
from pipeline.placement.layout.regions_of_parts import NOT_ASKED
from pipeline.placement.layout.topology_packing import Packing
from pipeline.placement.need import Need
from pipeline.placement.room.counted_need import CountedNeed
from pipeline.placement.room.ground import Ground, ground_on
from pipeline.solvers.scenarios.slices.halves import (
    NO_LIMITS,
    Asked,
    Begun,
    Halves,
    Spare,
    begun,
    halves,
    some_return,
    too_few_return,
)
from pipeline.solvers.scenarios.slices.part_returns import Parts, parts_gone
from pipeline.solvers.scenarios.slices.part_slots import part_slots
from pipeline.solvers.scenarios.slices.slots_kernels import fullest, may_be_enough, returned, units_needed
from pipeline.solvers.scenarios.units import VictimUnits


@dataclass(frozen=True)
class NodeSlice:
    """A slice of nodes, with the need that is to be placed there.

    Attributes
    ----------
    counted
        The need.
    domain, start, stop
        The slice is that of the domain: node rows ``start:stop``.
    keeps
        Whether places are kept while units return, so that few tasks are placed anew. Then it may be that the need
        cannot be laid out anew at the end.
    """

    counted: CountedNeed
    domain: int
    start: int
    stop: int
    keeps: bool = False

    @property
    def snapshot(self) -> Snapshot:
        """The cluster."""
        return self.counted.snapshot

    @property
    def need(self) -> Need:
        """The need itself."""
        return self.counted.need

    @cached_property
    def _parts(self) -> PartsInRegions | None:
        return part_slots(self.counted, self.start, self.stop)

    @property
    def plain(self) -> bool:
        """Whether the tasks fit exactly if their slots add up."""
        return self._parts is not None

    @cached_property
    def _here(self) -> Bools:
        return np.ascontiguousarray(self.counted.open[:, self.start : self.stop])

    @property
    def _packing(self) -> Packing:
        return self.counted.packings.on(self.start, self.stop)

    @cached_property
    def _ground(self) -> Ground:
        tasks, columns = (self.snapshot.tasks.node, self.counted.form), self.counted.columns
        nodes, parts = (self.start, self.stop), self._parts or NO_PARTS
        return ground_on(nodes, tasks, columns, self.need.count, self.counted.open, NONE, parts)

    def room(self, leaving: Rows) -> Longs:
        """int64[n, R']: what the slice's nodes will have once ``leaving`` have gone, without their cards."""
        return self.counted.room(self.start, self.stop, leaving)

    def reached(self, units: VictimUnits) -> int:
        """How many leading units must go at least; NONE if all of them are too few. Exact if ``plain``."""
        return int(units_needed(self._ground, units.start, units.rows))

    def only_here(self, units: VictimUnits) -> VictimUnits:
        """The units without their tasks on other nodes."""
        node = self.snapshot.tasks.node[units.rows]
        return units.without((node < self.start) | (node >= self.stop))

    def spared(self, units: VictimUnits, leaving: Rows, quota: Longs, orders: Longs, many: Longs, upto: Longs) -> Bools:
        """bool[O, U]: which units return, in each order, after ``leaving`` have gone; only if ``plain``.

        See `slots_kernels.returned`.
        """
        return np.asarray(returned(self._ground, units.start, units.rows, leaving, quota, orders, many, upto))

    def parts_gone(self, parts: Parts, leaving: Rows) -> Bools:
        """bool[K]: which tasks of podgroups with surplus must go; only if ``plain``, see `part_returns.parts_gone`."""
        tasks, towards = self.snapshot.tasks, self.snapshot.once(towards_all)
        owners = tasks.podgroup, tasks.role, tasks.subgroup
        return np.asarray(parts_gone(self._ground, leaving, tuple(parts), towards, owners))

    def fits(self, leaving: Rows) -> bool:
        """Whether all tasks find a place once ``leaving`` have gone; places are only found where counts do not say."""
        if self.plain:
            return bool(may_be_enough(self._ground, self.counted.total, leaving))
        known, asked = self._fitting, leaving.tobytes()
        if asked not in known:
            enough = bool(may_be_enough(self._ground, self.counted.total, leaving))
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
        return bool(too_few_return(self._asked, units.start, units.rows, walk, int(most)))

    def some_return(
        self, units: VictimUnits, spare: Spare | None, order: Rows, walk: Halves, most: int, *, kept: bool
    ) -> bool:
        """Whether other units may return, see `halves.some_return`; without ``spare`` the law is asked about it."""
        asks, spare = spare is None or not self._decides, spare or NO_LIMITS
        return bool(some_return(self._asked, spare, units.start, units.rows, order, walk, most, kept, asks))

    @property
    def _decides(self) -> bool:
        """Whether `halves` says if the need fits."""
        return self.plain or len(self._asked.places.tree.own) > 0

    @cached_property
    def _asked(self) -> Asked:
        places = None if self.plain else self._packing.asked_places
        places = places or self._packing.without_places(self.counted.asked or NOT_ASKED)
        return Asked(self.counted.total, places, self.keeps)

    def fits_in(self, room: Longs, leaving: Rows) -> bool:
        """What ``fits`` says where `halves` has not refused it; ``room`` is that once ``leaving`` have gone."""
        if self._decides:
            return True
        known, asked = self._fitting, leaving.tobytes()
        if asked not in known:
            room = np.array(room[:, : self.counted.columns.without_cards], order="C")
            known[asked] = self._finds(room, leaving, regions=True)
        return known[asked]

    def _finds(self, room: Longs, leaving: Rows, *, regions: bool = False) -> bool:
        """Whether there are places; ``regions``: as far as other tasks repel none, those do not refuse the room."""
        if self.counted.loose:
            return self._placed(room, leaving) is not None
        return (regions or self._packing.may_fit(room)) and self._packing.finds(room, leaving)

    def place(self, leaving: Rows, *, emptiest: bool = False) -> Rows | None:
        """int64[K]: a node for each task once ``leaving`` have gone, or None.

        Of nodes with equally many slots, the one with the least idle room now comes first, so that idle room stays in
        one piece; with ``emptiest`` the one with the most, so that as few tasks as possible have to move.
        """
        return self._placed(self.room(leaving), leaving, emptiest)

    def _placed(self, room: Longs, leaving: Rows, emptiest: bool = False) -> Rows | None:
        found = self._biggest_first(room, emptiest) if self.counted.loose else None
        if found is None and not (self.counted.loose and self.plain):
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
        placed = fullest(self.need.request, shape, self._here, room, capacity, used, wanted, emptiest)
        return placed if len(placed) == wanted else None
