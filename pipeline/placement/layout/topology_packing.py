"""A node for every task of a gang's minimum: topology of its parts, anti-affinity, cards, rank order.

Parts with a level of their own (subgroups, podgroups of a gang group) go into one domain each: outer ones before the
parts inside them, the biggest sibling first, each into the tightest domain that takes it. A part that finds none moves
to the front and its siblings are placed anew: squeaky wheel optimisation (Joslin and Clements 1999), except that a
part moves once, so that the search ends.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, Bools, Ids, Longs, Rows, sealed
from pipeline.cluster.cards import freed_on_cards
from pipeline.cluster.orders import unique_inverse
from pipeline.cluster.rules.anti_affinity import Denials, Exclusions, concerns, denials, exclusions
from pipeline.cluster.snapshot import Snapshot
from pipeline.keeping import cached_property
from pipeline.placement.layout.one_by_one import few_enough, one_by_one
from pipeline.placement.layout.outline import Outline, Slice
from pipeline.placement.layout.packing import place_classes
from pipeline.placement.layout.parts import Group, groups_of, in_one_region_each
from pipeline.placement.layout.parts_in_regions import nodes_in_regions
from pipeline.placement.layout.region_slots import TRIALS_A_PART
from pipeline.placement.layout.regions_of_parts import NOT_ASKED, AskedOfRegions, may_find_regions
from pipeline.placement.layout.room_left import AskedOfRoom, RoomLeft, asked_of_room, room_left, share
from pipeline.placement.layout.settled_groups import NO_TREE, AskedPlaces, no_groups_placed, settled
from pipeline.placement.need import Need
from pipeline.records import replace


class TaskKinds(NamedTuple):
    """The kinds of tasks of a minimum: tasks of one kind are interchangeable.

    Attributes
    ----------
    of_task: int64[K]
        The kind of each task of the minimum.
    shape: int64[M]
        The row in ``Need.shapes`` of each kind.
    label_set: int32[M]
        The label set of each kind; only if anti-affinity matters.
    """

    of_task: Rows
    shape: Rows
    label_set: Ids


@dataclass(frozen=True)
class Packings:
    """Places for one need: what is the same in every slice of nodes is worked out once, and so is each slice.

    Attributes
    ----------
    allowed: bool[S, N]
        Nodes that each of ``need.shapes`` may use, anti-affinity aside.
    counted, asked
        See ``PackedNeed``.
    """

    need: Need
    allowed: Bools
    snapshot: Snapshot
    counted: bool = False
    asked: AskedOfRegions | None = None

    def on(self, start: int, stop: int) -> "Packing":
        """Places on the nodes ``start:stop``."""
        if (start, stop) not in self._known:
            allowed = np.ascontiguousarray(self.allowed[:, start:stop])
            self._known[start, stop] = Packing(self._of, allowed, start, stop)
        return self._known[start, stop]

    @cached_property
    def _of(self) -> "PackedNeed":
        return PackedNeed(self.need, self.snapshot, self.counted, self.asked)

    @cached_property
    def _known(self) -> "dict[tuple[int, int], Packing]":
        return {}


@dataclass(frozen=True)
class PackedNeed:
    """What is the same of a need in every slice of nodes.

    ``counted``: whether anti-affinity is counted as a resource in ``need`` and in the room. ``asked``: what parts of
    the need ask of regions: room that is too little is refused before it is tried. None: not known.
    """

    need: Need
    snapshot: Snapshot
    counted: bool
    asked: AskedOfRegions | None

    def outline(self, groups: list[Group], group_of_part: Rows, within: Slice) -> Outline:
        """The groups of the need in a slice; what is counted of them is the same wherever they ask for the same."""
        asked = tuple((one.parent, one.required, one.preferred, one.fixed.tobytes()) for one in groups)
        if asked not in self._outlines:
            group, kinds = group_of_part[self.need.part[: self.need.minimum]], self.kinds
            each = in_one_region_each(groups) if len(self.need.shapes) == 1 and not self._more_than_room else None
            alike = each is not None and len(each.around) == 0
            self._outlines[asked] = Outline(groups, group, kinds.of_task, len(kinds.shape), alike, within)
        known = self._outlines[asked]
        return known if known.within is within else known.in_slice(within)

    @cached_property
    def _outlines(self) -> dict[tuple[tuple[int, int, int, bytes], ...], Outline]:
        return {}

    @cached_property
    def is_new(self) -> bool:
        """Whether no task of the podgroups has a node, so that groups are the same for all victims."""
        have = self.snapshot.counts
        return not any(have.running[podgroup] or have.waiting[podgroup] for podgroup in self.need.podgroups)

    @cached_property
    def heeds_leaving(self) -> bool:
        """Whether victims matter beyond the room that they leave."""
        return not self.is_new or self._more_than_room

    @property
    def _more_than_room(self) -> bool:
        return self.repels or any(self.on_card.tolist())

    @cached_property
    def repels(self) -> bool:
        """Whether tasks of the need repel others or are repelled."""
        return not self.counted and concerns(self.snapshot, self.need.tasks[: self.need.minimum])

    @cached_property
    def kinds(self) -> TaskKinds:
        """The kinds of its tasks."""
        shape = self.need.shape[: self.need.minimum].astype(np.int64)
        if not self.repels:
            shapes = np.arange(len(self.need.shapes))
            return TaskKinds(shape, shapes, shapes.astype(np.int32))
        labels, many = self.snapshot.tasks.label_set, len(self.snapshot.vocabulary.label_sets)
        pairs = shape * many + labels[self.need.tasks[: self.need.minimum]]
        kinds, kind = unique_inverse(pairs)
        return TaskKinds(kind, kinds // many, (kinds % many).astype(np.int32))

    @cached_property
    def constraint_and_labels(self) -> tuple[Ids, Ids]:
        """int32[M], int32[M]: the constraint and the label set of each kind."""
        return self.snapshot.shapes.constraint[self.need.shapes[self.kinds.shape]], self.kinds.label_set

    @cached_property
    def on_card(self) -> Longs:
        """int64[M]: what tasks of each kind ask of a card."""
        return self.snapshot.shapes.on_card[self.need.shapes[self.kinds.shape]]


@dataclass(frozen=True)
class Packing:
    """Places for a need within one slice of nodes, asked for as victims go and return.

    Tasks of one part and shape (and label set, where anti-affinity matters) are interchangeable. In placement order
    they go to the chosen nodes in node order, so neighbours in rank share nodes, then racks, then blocks.

    Attributes
    ----------
    of
        What is the same in every slice.
    allowed: bool[S, n]
        Those nodes of the slice ``start:stop`` that each of ``need.shapes`` may use; n = stop - start.
    """

    of: PackedNeed
    allowed: Bools
    start: int
    stop: int

    def may_fit(self, room: Longs, leaving: Rows | None = None) -> bool:
        """Whether regions have enough for all parts; if not, there are no places.

        ``room``, ``leaving``: see ``places``; None: any victims may leave.
        """
        if self.of.asked is None:
            return True
        usable = self.allowed if leaving is None or not self.of.repels else self._open_after(leaving)
        return bool(may_find_regions(self.of.asked, usable, room, self.start))

    def _open_after(self, leaving: Rows) -> Bools:
        """bool[S, n]: nodes that each shape may use beside tasks that stay, if any of its kinds may."""
        usable, shape = np.zeros_like(self.allowed), self.of.kinds.shape
        np.logical_or.at(usable, shape, self.allowed[shape] & ~self._denials.after(leaving))
        return sealed(usable)

    @cached_property
    def _denials(self) -> Denials:
        return denials(self.of.snapshot, *self.of.constraint_and_labels, self.start, self.stop)

    @cached_property
    def _among(self) -> Exclusions:
        """How kinds repel each other, on the nodes of the slice; what others deny to them is not asked here."""
        found = exclusions(self.of.snapshot, *self.of.constraint_and_labels, NO_ROWS)
        return replace(found, domains=found.domains[:, self.start : self.stop])

    def places(self, room: Longs, leaving: Rows) -> Rows | None:
        """Find a node for each task of the minimum.

        Parameters
        ----------
        room: int64[n, R]
            What the slice's nodes have for the gang, victims already gone.
        leaving: int64[V]
            Task rows of victims; they neither repel other tasks nor keep their podgroup in its domain.

        Returns
        -------
        int64[minimum]: node rows for ``need.tasks[:minimum]``; None if none was found.
        """
        found = self._found(room, leaving) if self.may_fit(room, leaving) else None
        return None if found is None else found()

    def finds(self, room: Longs, leaving: Rows) -> bool:
        """Whether ``places`` finds a node for each task of the minimum, in room that regions do not refuse."""
        return not (self.of.repels and not self.may_fit(room, leaving)) and self._found(room, leaving) is not None

    def _found(self, room: Longs, leaving: Rows) -> Callable[[], Rows] | None:
        """What gives the nodes of the tasks; None if none were found."""
        need, topology, start, stop = self.of.need, self.of.snapshot.topology, self.start, self.stop
        outline = self._outline if self.of.is_new else self._outlined(leaving)
        if outline is None:  # a part has tasks outside the slice
            return None
        if outline.alike:
            if len(outline.groups) == 1:  # the usual gang: all its tasks are alike, and only resources decide
                taken = place_classes(need.request, need.count, self.allowed, room)[0]
                return partial(np.arange(start, stop).repeat, taken) if taken.sum() == need.minimum else None
            found = nodes_in_regions(need, outline.groups, outline.group, self.allowed, room, start, topology)
            if found is not None or not few_enough(need.minimum, stop - start):
                return found.copy if found is not None else None
        there = self._room(room, leaving)
        before = no_groups_placed(outline.tree, self._asked_of_room)
        taken, _ = settled(outline.tree, there, TRIALS_A_PART * len(outline.groups), before)
        if len(taken):
            return partial(outline.nodes, taken)
        found = one_by_one(topology, start, outline.groups, outline.group, outline.kind, there)
        return partial(np.add, start, found) if len(found) else None

    def nodes_of(self, taken: Longs) -> Rows | None:
        """int64[minimum]: the nodes of the tasks, given how many of each group and shape go to each, int64[G, S, n]."""
        return None if self._outline is None else self._outline.nodes(taken)

    @cached_property
    def asked_places(self) -> AskedPlaces | None:
        """The same; None as well where there are so few tasks that they are tried one by one."""
        return None if few_enough(self.of.need.minimum, self.stop - self.start) else self.asked_in_groups

    @cached_property
    def asked_in_groups(self) -> AskedPlaces | None:
        """What is asked of the slice, if only resources, cards, nodes and regions matter; None if anything else does.

        None as well where counts say where tasks go.
        """
        if self.of.repels or not (self.of.is_new or self.of.need.plain):  # else it is the same whatever leaves
            return None
        outline, regions = self._outline, self.of.asked or NOT_ASKED
        if outline is None or (outline.alike and len(outline.groups) > 1):
            return None
        trials = TRIALS_A_PART * len(outline.groups)
        return AskedPlaces(self.start, self.allowed, regions, outline.tree, self._asked_of_room, trials)

    def without_places(self, regions: AskedOfRegions) -> AskedPlaces:
        """What is asked of the slice where only slots and what ``regions`` have are counted."""
        need = self.of.need
        room = asked_of_room(need.request, np.zeros(len(need.shapes), np.int64), self.stop - self.start, None)
        return AskedPlaces(self.start, self.allowed, regions, NO_TREE, room, 0)

    @cached_property
    def _outline(self) -> Outline | None:
        return self._outlined(NO_ROWS)

    def _outlined(self, leaving: Rows) -> Outline | None:
        grouping = groups_of(self.of.need, self.of.snapshot, leaving, (self.start, self.stop))
        return None if grouping is None else self.of.outline(*grouping, self._slice)

    @cached_property
    def _slice(self) -> Slice:
        return Slice(self.of.snapshot.topology, self.start, self.stop)

    @cached_property
    def _asked_of_room(self) -> AskedOfRoom:
        among = self._among if self.of.repels else None
        return asked_of_room(self.of.need.request[self.of.kinds.shape], self.of.on_card, self.stop - self.start, among)

    @cached_property
    def _allowed_to_kinds(self) -> Bools:
        """bool[M, n]: nodes that each kind may use."""
        return self.allowed[self.of.kinds.shape]

    def _room(self, room: Longs, leaving: Rows) -> RoomLeft:
        """The room for each kind of task, cards and what is repelled included."""
        snapshot, usable, free = self.of.snapshot, self._allowed_to_kinds, np.zeros((len(room), 0), np.int64)
        if self.of.repels:
            usable = usable & ~self._denials.after(leaving)
        if len(self._asked_of_room.carded):
            free = snapshot.card_room.future[self.start : self.stop].copy()
            freed_on_cards(snapshot.tasks, snapshot.shapes, leaving, self.start, free)
        asked = self._asked_of_room
        biggest = np.argsort(-share(asked.request, room), kind="stable")
        return room_left(asked, usable, room, free, biggest)
