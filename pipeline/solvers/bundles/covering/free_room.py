"""The nodes of one domain while victims are tried, and whether the gang really places on them.

For one shape slots are exact, also where parts of the gang go into one region each. For several shapes, anti-affinity,
cards and parts with another topology of their own they are only necessary, and the gang is placed to be sure.
"""

from collections.abc import Callable
from typing import Protocol, TypeVar

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, NONE, Bools, Longs, Rows
from pipeline.cluster.counted.counting import add_requests
from pipeline.keeping import cached_property
from pipeline.placement.kept_places import KeptPlaces, find_places, no_places
from pipeline.placement.layout.packing import place_classes
from pipeline.placement.layout.regions_of_parts import NOT_ASKED
from pipeline.placement.layout.room_left import NOTHING_ASKED
from pipeline.placement.layout.settled_groups import NO_TREE, AskedPlaces
from pipeline.placement.layout.topology_packing import Packing, Packings
from pipeline.placement.room.counted_need import packings_of
from pipeline.placement.room.ground import come_back, ground_on, lead, leave, suffices
from pipeline.solvers.bundles.bundling.bundle_search import BundleSearch
from pipeline.solvers.bundles.bundling.records import Bundles, Units
from pipeline.solvers.bundles.covering.cover import reprieve
from pipeline.solvers.bundles.covering.returns import go_again, placed_return


class Leaving(Protocol):
    """Entries that leave, with all victims that this means; which these are is worked out where it is asked for."""

    @property
    def victims(self) -> Rows:
        """int64[V]: all victims, ascending."""
        ...


Left = TypeVar("Left", bound=Leaving)


def _packings(search: BundleSearch) -> Packings:
    """Places for the need in slices of nodes, as far as they are known before room is."""
    closes = search.repulsion is not None and search.repulsion.only_closes
    asked = search.asked_of_regions
    return packings_of(search.need, search.columns, search.open, search.snapshot, asked, closes=closes)


class FreeRoom:
    """The room for a gang in one domain, during one selection.

    Parameters
    ----------
    gone: int64[C]
        Entries that have left.

    Attributes
    ----------
    exact
        Whether slots alone decide if the minimum can be placed.
    """

    def __init__(self, search: BundleSearch, domain: int, gone: Rows = NO_ROWS) -> None:
        snapshot, columns, site, repulsion = search.snapshot, search.columns, search.site, search.repulsion
        interchangeable = bool(search.interchangeable(np.array([domain]))[0])
        self._search, self._need, self._allowed = search, search.need, search.open
        #: Entries that deny nodes to the gang while they stay; no rows if there are none.
        self._denies = np.zeros(0, bool) if repulsion is None else repulsion.denies[snapshot.occupancy.task]
        self._first, self._last = nodes = search.nodes_of(domain)
        self._carded = columns.cards > 0
        self.exact = interchangeable and len(self._need.shapes) == 1
        tasks = snapshot.placed.node, columns.form
        self.ground = ground_on(nodes, tasks, columns, site.wanted, site.allowed, site.scarce, site.parts)
        #: Whether the places that are kept were found in the room that there is at present.
        self._placed = False
        self._used: Longs = self.ground.room[:0]
        if len(gone):
            self.leave(gone)

    @property
    def asked(self) -> AskedPlaces:
        """What the gang asks of the nodes; without groups where slots decide, or matters what is not counted."""
        slots = self.exact or (self._need.plain and not self._carded)
        found, regions = None if slots else self._packing.asked_in_groups, self._search.asked_of_regions or NOT_ASKED
        usable = np.ascontiguousarray(self._allowed[:, self._first : self._last])
        return found or AskedPlaces(self._first, usable, regions, NO_TREE, NOTHING_ASKED, 0)

    @property
    def enough(self) -> bool:
        """Whether each shape alone has enough slots."""
        return not np.count_nonzero(self.ground.total < self._need.count)

    def leave(self, some: Rows) -> None:
        """Let entries of these nodes leave."""
        self._placed = False
        leave(some, self.ground)

    def placed_nodes(self, leaving: Rows) -> Rows | None:
        """int64[minimum]: at present a node row for each task of the minimum; ``leaving`` int64[V]: all victims."""
        if self._places is not None:
            asked, kept = self._places
            found = self._placed or find_places(asked, kept, self.ground.room)
            return self._packing.nodes_of(kept.taken) if found else None
        if not self._search.only_slots:
            return self._packing.places(self._room, leaving)
        allowed = self._allowed[:, self._first : self._last]
        taken = place_classes(self.ground.request, self._need.count, allowed, self.ground.room)[0]
        return np.arange(self._first, self._last).repeat(taken) if taken.sum() == self._need.minimum else None

    @property
    def _room(self) -> Longs:
        """int64[n, R]: what nodes have at present, without their cards, which are placed apart."""
        return np.ascontiguousarray(self.ground.room[:, : self._search.columns.without_cards])

    @property
    def _packing(self) -> Packing:
        return self._search.once(_packings).on(self._first, self._last)

    def places(self, leaving: Leaving) -> bool:
        """Whether the minimum can be placed at present; the placement is kept."""
        if self.exact or not self.enough:
            return self.enough and (len(self.ground.by_region.parts.size) == 0 or bool(suffices(self.ground)))
        if self._places is not None:
            self._placed = bool(find_places(*self._places, self.ground.room))
            return self._placed
        need, nodes = self._need, self._nodes(leaving)
        if nodes is None:
            return False
        if not self._carded:  # ``_used`` says nothing of cards, so every return is in doubt
            self._used = np.zeros_like(self.ground.room)
            add_requests(self._used, nodes - self._first, need.shape[: need.minimum], self.ground.request, 1)
        return True

    def may_take_back(self, some: Rows) -> bool:
        """Whether the minimum can be placed if entries that left return; true where that is not known at once."""
        if self._places is None:
            return True
        come_back(some, self.ground)
        found = bool(find_places(*self._places, self.ground.room))
        self.leave(some)
        return found

    @cached_property
    def _places(self) -> tuple[AskedPlaces, KeptPlaces] | None:
        """The places of tasks, if only resources, cards, nodes and regions matter to them."""
        asked = None if self.exact else self._packing.asked_places
        return None if asked is None else (asked, no_places(asked))

    def _nodes(self, leaving: Leaving) -> Rows | None:
        """As ``placed_nodes``; victims are listed only where something besides their room matters."""
        if not self._packing.of.heeds_leaving:
            return self.placed_nodes(NO_ROWS)
        return self.placed_nodes(leaving.victims) if self._packing.may_fit(self._room) else None

    def cover(
        self,
        bundles: Bundles,
        left: Callable[[int], Left],
        permits: Callable[[Left], bool] | None = None,
        least: int = 0,
    ) -> int:
        """Let the fewest leading bundles leave with which the minimum can be placed; NONE if there is no such number.

        The number is found by doubling and halving from the number at which slots suffice, or from ``least``; the
        number below it does not do.

        Parameters
        ----------
        left
            What leaves with some number of bundles.
        permits
            Asked about what leaves as well.
        """
        low = int(lead(bundles.stop, bundles.entry, self.ground))
        if low == NONE:
            return NONE

        def works(count: int) -> bool:
            if permits is None and self._places is not None:  # whatever it is that leaves
                self._placed = bool(find_places(*self._places, self.ground.room))
                return self._placed
            leaving = left(count)
            return self.places(leaving) and (permits is None or permits(leaving))

        low = at = self._go(low, max(low, least), bundles)
        step = 1
        while not works(at):
            if at == bundles.many:
                return NONE
            low, high = at + 1, min(at + step, bundles.many)
            step *= 2
            at = self._go(at, high, bundles)
        high = at
        while low < high:
            at = self._go(at, (low + high) // 2, bundles)
            if works(at):
                high = at
            else:
                low = at + 1
        if at != high:
            self._go(at, high, bundles)
            if not works(high):  # keeps the placement; it worked before
                return NONE
        return high

    def _go(self, at: int, to: int, bundles: Bundles) -> int:
        """From ``at`` leading bundles gone to ``to``."""
        edge = (int(bundles.stop[at - 1]) if at else 0, int(bundles.stop[to - 1]) if to else 0)
        if to >= at:
            self.leave(bundles.entry[edge[0] : edge[1]])
        else:
            self._placed = False
            come_back(bundles.entry[edge[1] : edge[0]], self.ground)
        return to

    def reprieve(
        self,
        units: Units,
        left: Callable[[Bools], Left] | None,
        permits: Callable[[Left], bool] | None = None,
    ) -> Bools:
        """Reprieve units one by one while the minimum can be placed: bool[U], which returned.

        Without ``left`` slots decide, and one pass suffices, since slots only fall as units return. With it, passes
        are repeated until no unit can return.

        Parameters
        ----------
        left
            What leaves once some units (bool[U]) have returned.
        permits
            Asked about every return as well.
        """
        returned, many = np.zeros(len(units.stop), np.bool_), len(units.stop)
        self._placed = False
        while True:
            before, at = int(returned.sum()), 0
            while True:
                at = self._next_return(at, units, returned, slots_decide=left is None, asks=permits is not None)
                if at == many:
                    break
                returned[at] = True
                if left is not None and not self._may_leave(left(returned), permits):
                    returned[at] = False
                    self._go_again(units.entry[units.stop[at - 1] if at else 0 : units.stop[at]])
                at += 1
            if left is None or int(returned.sum()) == before or (permits is None and self._places is not None):
                return returned

    def _next_return(self, begin: int, units: Units, returned: Bools, *, slots_decide: bool, asks: bool) -> int:
        """The next unit from ``begin`` on whose return is in doubt; those before it are decided."""
        if self._places is not None and not slots_decide:
            return int(placed_return(begin, units, returned, asks, *self._places, self.ground))
        used = self._used[:0] if asks else self._used
        return int(reprieve(begin, units, returned, slots_decide, used, self._denies, self.ground))

    def _may_leave(self, leaving: Left, permits: Callable[[Left], bool] | None) -> bool:
        """Whether no more need leave: the minimum can be placed, and what else is asked permits it."""
        return (self._places is not None or self.places(leaving)) and (permits is None or permits(leaving))

    def _go_again(self, some: Rows) -> None:
        """Undo the return of entries."""
        if self._places is None:
            self.leave(some)
        else:
            go_again(some, *self._places, self.ground)
