"""A need with all that is counted of it on nodes, for solvers that let victims go and return."""

from dataclasses import dataclass

import numpy as np

from pipeline.cluster.arrays import Bools, Ids, Longs, Rows, frozen, mask_of, sealed
from pipeline.cluster.counted.counting import add_requests
from pipeline.cluster.rules.anti_affinity import states_terms
from pipeline.cluster.snapshot import Snapshot
from pipeline.keeping import cached_property
from pipeline.placement.layout.regions_of_parts import AskedOfRegions, asked_of_regions
from pipeline.placement.layout.topology_packing import Packings
from pipeline.placement.need import Need
from pipeline.placement.room.card_columns import asks_for_cards, with_cards
from pipeline.placement.room.repulsion import Repulsion, repulsion_of
from pipeline.placement.room.room_columns import RoomColumns, room_columns
from pipeline.records import replace


def packings_of(
    need: Need, columns: RoomColumns, opened: Bools, snapshot: Snapshot, asked: AskedOfRegions | None, *, closes: bool
) -> Packings:
    """Places for a need in slices of nodes, in room without cards.

    ``opened`` bool[S, N] are the nodes that each shape may use; ``closes``: whether the columns count anti-affinity.
    """
    if columns.request is not need.request:
        need = replace(need, request=frozen(columns.request[:, : columns.without_cards], np.int64))
    return Packings(need, opened, snapshot, closes, asked)


@dataclass(frozen=True)
class CountedNeed:
    """A need, and what may leave for it.

    Attributes
    ----------
    allowed: bool[S, N]
        Nodes that each of the need's shapes may use, anti-affinity aside.
    may_leave: int64[K]
        Tasks that may leave; the nodes that they close to the need are counted in ``columns`` where that is possible.
    """

    snapshot: Snapshot
    need: Need
    allowed: Bools
    may_leave: Rows

    @cached_property
    def _repulsion(self) -> Repulsion | None:
        if not states_terms(self.snapshot):
            return None
        return repulsion_of(self.snapshot, self.need, mask_of(self.may_leave, len(self.snapshot.tasks)))

    @property
    def _closes(self) -> bool:
        return self._repulsion is not None and self._repulsion.only_closes

    @property
    def counts_all(self) -> bool:
        """Whether only what is counted, nodes and parts matter: if tasks repel each other, it is counted."""
        return self._repulsion is None or self._closes

    @property
    def loose(self) -> bool:
        """Whether only resources and nodes matter."""
        return self.need.plain and self._repulsion is None and not self.columns.cards

    @cached_property
    def open(self) -> Bools:
        """bool[S, N]: ``allowed``, without nodes that anti-affinity denies whatever leaves."""
        return self.allowed if self._repulsion is None else frozen(self.allowed & ~self._repulsion.denied, np.bool_)

    @cached_property
    def columns(self) -> RoomColumns:
        """What is counted of nodes, tasks and the need."""
        closing = self._repulsion.closing if self._repulsion is not None and self._closes else ()
        columns = room_columns(self.snapshot, self.need, closing)
        return with_cards(columns, self.snapshot, self.need) if asks_for_cards(self.snapshot, self.need) else columns

    @cached_property
    def total(self) -> Longs:
        """int64[R']: what the minimum asks for together, by column."""
        return sealed(self.need.count @ self.columns.request)

    @cached_property
    def form(self) -> Ids:
        """int32[T]: the form of each task, for those that hold nodes; else its shape."""
        if self.columns.form is self.snapshot.placed.shape:
            return self.snapshot.tasks.shape
        form = self.snapshot.tasks.shape.copy()
        form[self.snapshot.occupancy.task] = self.columns.form
        return sealed(form)

    @cached_property
    def asked(self) -> AskedOfRegions | None:
        """What parts of the need ask of regions; None if none of them requires a level."""
        return asked_of_regions(self.need, self.columns.request[:, : self.columns.without_cards], self.snapshot)

    def room(self, start: int, stop: int, leaving: Rows) -> Longs:
        """int64[n, R']: the columns but for cards of a slice of nodes once ``leaving`` (int64[V]) have gone."""
        columns = self.columns
        room = np.array(columns.future[start:stop, : columns.without_cards], order="C")
        at = self.snapshot.tasks.node[leaving].astype(np.int64) - start
        inside = (at >= 0) & (at < len(room))
        add_requests(room, at[inside], self.form[leaving[inside]], columns.held, 1)
        return room

    def wide(self, room: Longs, start: int, leaving: Rows) -> Longs:
        """The same where the resources of these nodes are known: ``room`` int64[n, R]."""
        if self.columns.without_cards == room.shape[1]:
            return room
        return np.concatenate([room, self.room(start, start + len(room), leaving)[:, room.shape[1] :]], axis=1)

    @cached_property
    def packings(self) -> Packings:
        """Places in slices of nodes."""
        return packings_of(self.need, self.columns, self.open, self.snapshot, self.asked, closes=self._closes)
