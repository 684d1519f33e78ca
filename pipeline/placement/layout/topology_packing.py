"""A node for every task of a gang's minimum: topology of its parts, anti-affinity, cards, rank order.

Parts with a level of their own (subgroups, podgroups of a gang group) go into one domain each: outer ones before the
parts inside them, the biggest sibling first, each into the tightest domain that takes it. A part that finds none moves
to the front and its siblings are placed anew: squeaky wheel optimisation (Joslin and Clements 1999), except that a
part moves once, so that the search ends.
"""

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Longs, Rows, frozen
from pipeline.cluster.cards import freed_on_cards
from pipeline.cluster.rules.anti_affinity import Exclusions, concerns, exclusions
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.topology import Topology
from pipeline.placement.layout.one_by_one import few_enough, one_by_one
from pipeline.placement.layout.packing import place_classes
from pipeline.placement.layout.parts import Group, groups_of, in_one_region_each
from pipeline.placement.layout.region_slots import TRIALS_A_PART
from pipeline.placement.layout.regions_of_parts import in_order, placed_in_regions
from pipeline.placement.layout.room_left import RoomLeft
from pipeline.placement.need import Need

#: In a list of parts to place: the tasks that are in none of them.
_OWN = -1


def pack(
    need: Need, allowed: Bools, room: Longs, start: int, stop: int, snapshot: Snapshot, leaving: Rows,
    *, counted: bool = False,
) -> Rows | None:  # fmt: skip
    """Find a node for each task of the minimum within one slice of nodes.

    Tasks of one part and shape (and label set, where anti-affinity matters) are interchangeable. In placement order
    they go to the chosen nodes in node order, so neighbours in rank share nodes, then racks, then blocks.

    Parameters
    ----------
    allowed
        bool[S, n]: nodes of the slice that each of ``need.shapes`` may use, anti-affinity aside.
    room
        int64[n, R]: what the slice's nodes have for the gang, victims already gone.
    start, stop
        The slice is the node rows ``start:stop``; n = stop - start.
    leaving
        int64[V]: task rows of victims; they neither repel other tasks nor keep their podgroup in its domain.
    counted
        Whether anti-affinity is counted as a resource in ``need`` and ``room``.

    Returns
    -------
    int64[minimum]: node rows for ``need.tasks[:minimum]``; None if none was found.
    """
    grouping = groups_of(need, snapshot, leaving, (start, stop))
    if grouping is None:
        return None
    groups, group_of = grouping
    on_card = snapshot.shapes.on_card[need.shapes][need.shape[: need.minimum]]
    repels = not counted and concerns(snapshot, need.tasks[: need.minimum])
    alike = len(need.shapes) == 1 and not on_card.any() and not repels
    each = in_one_region_each(groups) if alike else None
    if each is not None and len(each.around) == 0:
        if len(groups) == 1:  # the usual gang: all its tasks are alike, and only resources decide
            taken = place_classes(need.request, need.count, allowed, room)[0]
            return np.arange(start, stop).repeat(taken) if taken.sum() == need.minimum else None
        found = _in_regions(need, groups, group_of, allowed, room, start, snapshot.topology)
        if found is not None or not few_enough(need.minimum, stop - start):
            return found
    kind, room_left = need.shape[: need.minimum].astype(np.int64), RoomLeft(need.request, allowed, room.copy())
    if repels:
        kind, room_left = _told_apart(need, allowed, room, start, stop, snapshot, leaving)
    if on_card.any():
        free = snapshot.card_room.future[start:stop].copy()
        freed_on_cards(snapshot.tasks, snapshot.shapes, leaving, start, free)
        room_left.lay_cards(kind, on_card, free)
    group = group_of[need.part[: need.minimum]]
    own = np.zeros((len(groups), len(room_left.request)), np.int64)
    np.add.at(own, (group, kind), 1)
    packer = _Packer(snapshot.topology, start, groups, own, room_left)
    if not packer.settle(0, 0, stop - start):
        found = one_by_one(snapshot.topology, start, groups, group, kind, room_left)
        return start + found if len(found) else None
    nodes = np.empty(need.minimum, np.int64)
    for g, k in zip(*np.nonzero(own), strict=True):
        first, taken = packer.taken[int(g)]
        nodes[(group == g) & (kind == k)] = start + first + np.repeat(np.arange(taken.shape[1]), taken[k])
    return nodes


def _in_regions(
    need: Need, groups: list[Group], group_of: Rows, allowed: Bools, room: Longs, start: int, topology: Topology
) -> Rows | None:
    """The nodes of tasks that are alike, in groups that require one level: see ``placed_in_regions``."""
    regions = topology.at_level(groups[1].required)
    regions = regions[(topology.start[regions] >= start) & (topology.stop[regions] <= start + len(room))]
    regions = in_order(topology, regions)
    group = group_of[need.part[: need.minimum]]
    size = np.bincount(group, minlength=len(groups))
    order = (-size[1:]).argsort(kind="stable")
    # Columns of one kind, so that one compiled specialisation serves all calls.
    taken = placed_in_regions(
        frozen(need.request, np.int64), frozen(allowed, np.bool_), frozen(room, np.int64),
        frozen(size[1:][order], np.int32), int(size[0]), frozen(topology.start[regions] - start, np.int64),
        frozen(topology.stop[regions] - start, np.int64),
    )  # fmt: skip
    if len(taken) == 0:
        return None
    nodes, each = np.empty(need.minimum, np.int64), np.arange(start, start + len(room))
    for row, g in enumerate([*(order + 1).tolist(), 0]):
        nodes[group == g] = each.repeat(taken[row])
    return nodes


def _told_apart(
    need: Need, allowed: Bools, room: Longs, start: int, stop: int, snapshot: Snapshot, leaving: Rows
) -> tuple[Rows, RoomLeft]:
    """The kind of each task of the minimum (shape and label set), and the room for them beside what repels them."""
    rows, shape = need.tasks[: need.minimum], need.shape[: need.minimum].astype(np.int64)
    pairs = np.stack([shape, snapshot.tasks.label_set[rows]], axis=1)
    kinds, kind = np.unique(pairs, axis=0, return_inverse=True)
    constraint = snapshot.shapes.constraint[need.shapes[kinds[:, 0]]]
    found = exclusions(snapshot, constraint, kinds[:, 1], leaving)
    usable = allowed[kinds[:, 0]] & ~found.excluded[:, start:stop]
    among = Exclusions(found.excluded, found.conflict, found.keys, found.domains[:, start:stop])
    return kind.reshape(-1), RoomLeft(need.request[kinds[:, 0]], usable, room.copy(), among)


# -- the search ----------------------------------------------------------------------------------------------------


class _Packer:
    """Places groups in regions; a region is a range ``first:last`` of the slice's nodes."""

    def __init__(self, topology: Topology, start: int, groups: list[Group], own: Longs, room_left: RoomLeft) -> None:
        self._topology, self._start, self._groups, self._own, self._room = topology, start, groups, own, room_left
        self._trials = TRIALS_A_PART * len(groups)  # otherwise nested parts could try every combination
        self._total = own.copy()
        self._inside: list[list[int]] = [[] for _ in groups]
        for g in range(len(groups) - 1, 0, -1):
            self._total[groups[g].parent] += self._total[g]
            self._inside[groups[g].parent].append(g)
        for inside in self._inside:
            inside.sort(key=lambda g: (-float(self._total[g] @ room_left.share), g))
        #: Per group the first node of its region and how many of its own tasks went where, int64[M, nodes].
        self.taken: dict[int, tuple[int, Longs]] = {}

    def settle(self, group: int, first: int, last: int) -> bool:
        """Place a group and its inner groups in a region; undone if that fails."""
        before, moved = self._room.state(), set[int]()
        todo = self._inside[group] + ([_OWN] if self._own[group].any() else [])
        while True:
            failed = next((g for g in todo if not self._settle_one(g, group, first, last)), None)
            if failed is None:
                return True
            self._room.restore(before)
            if failed in moved or failed == todo[0] or self._trials <= 0:
                return False
            moved.add(failed)
            todo = [failed, *(g for g in todo if g != failed)]

    def _settle_one(self, inner: int, group: int, first: int, last: int) -> bool:
        if inner == _OWN:
            taken = self._room.place(self._own[group], first, last)
            if taken is not None:
                self.taken[group] = (first, taken)
            return taken is not None
        for lower, upper in self._regions(inner, first, last):
            if self._trials <= 0:
                return False
            self._trials -= 1
            if self.settle(inner, lower, upper):
                return True
        return False

    def _regions(self, group: int, first: int, last: int) -> list[tuple[int, int]]:
        """Regions that might take the group: domains of the preferred, then of the required level; tightest first."""
        wanted, whole = self._groups[group], np.array([[first, last]])
        required = whole if wanted.required == NONE else self._cut(whole, wanted.required, wanted.fixed)
        ordered = self._tightest(group, required)
        if wanted.preferred != NONE:
            ordered = self._tightest(group, self._cut(required, wanted.preferred, wanted.fixed)) + ordered
        return list(dict.fromkeys(ordered))

    def _cut(self, regions: Longs, level: int, fixed: Rows) -> Longs:
        """Intersections of each region with the level's domains that hold ``fixed``: int64[P, 2]."""
        rows = self._topology.holding(self._topology.at_level(level), fixed)
        lower = np.maximum(regions[:, 0, None], self._topology.start[rows] - self._start)
        upper = np.minimum(regions[:, 1, None], self._topology.stop[rows] - self._start)
        return np.stack([lower[lower < upper], upper[lower < upper]], axis=1)

    def _tightest(self, group: int, regions: Longs) -> list[tuple[int, int]]:
        """Regions with slots for every kind of the group, fewest slots for its biggest kind first."""
        kinds = np.flatnonzero(self._total[group])
        enough, have = np.ones(len(regions), bool), np.zeros(len(regions), np.int64)
        for kind in sorted(kinds, key=lambda k: (self._room.share[k], -k)):
            running = self._room.slots(int(kind))
            have = running[regions[:, 1]] - running[regions[:, 0]]
            enough &= have >= self._total[group, kind]
        order = np.lexsort((regions[:, 0], have))
        return [(int(lower), int(upper)) for lower, upper in regions[order[enough[order]]]]
