"""Groups of a gang are tried in regions in plain Python, task by task and column by column: an oracle for kernels."""

from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Floats, Longs, Rows, sizes
from pipeline.cluster.cards import packed_on_cards, slots_on_cards
from pipeline.cluster.resources import slots
from pipeline.cluster.rules.anti_affinity import Exclusions
from pipeline.cluster.topology import Topology
from pipeline.placement.layout.packing import place_classes
from pipeline.placement.layout.parts import Group
from pipeline.placement.layout.region_slots import TRIALS_A_PART
from pipeline.placement.layout.room_left import RoomLeft
from pipeline.placement.layout.settled_groups import OWN


def tried_out(topology: Topology, start: int, groups: list[Group], own: Longs, given: RoomLeft) -> Longs | None:
    """How many tasks of each kind of each group go to each node, int64[G, M, n]; None if no way was found."""
    among = Exclusions(given.usable, given.conflict, ("",) * len(given.domains), given.domains)
    room = Room(given.request, given.usable.copy(), given.left.copy(), among)
    room.on_card = given.on_card
    room.lay_cards(np.arange(len(given.on_card)), given.on_card, given.cards.copy())
    packer, nodes = Packer(topology, start, groups, own, room), len(given.left)
    if not packer.settle(0, 0, nodes):
        return None
    taken = np.zeros((*own.shape, nodes), np.int64)
    for g, (first, some) in packer.taken.items():
        taken[g, :, first : first + some.shape[1]] = some * (own[g] > 0)[:, None]
    return taken


class _Saved(NamedTuple):
    """The room left at one moment."""

    usable: Bools
    left: Longs
    cards_left: Longs
    parts: dict[int, tuple[int, ...]]


class Room:
    """The room left on a slice of nodes while a gang is placed on it, during one call of ``pack``.

    Attributes
    ----------
    request: int64[M, R]
        By kind of task.
    usable: bool[M, n]
        Nodes open to each kind; fewer as tasks that repel it are placed.
    left: int64[n, R]
    """

    def __init__(self, request: Longs, usable: Bools, left: Longs, among: Exclusions | None = None) -> None:
        self.request, self.usable, self.left, self._among = request, usable, left, among
        self._repelled = np.zeros(len(request), bool) if among is None else (among.conflict != 0).any(axis=1)
        self.on_card = np.zeros(len(request), np.int64)
        self._cards = self._cards_left = np.zeros((len(left), 0), np.int64)
        self._parts: dict[int, tuple[int, ...]] = {}
        total = np.maximum(np.maximum(left, 0).sum(axis=0), 1)
        #: float64[M]: the largest share of the room that one task of the kind takes.
        self.share: Floats = (request / total).max(axis=1, initial=0.0)

    def lay_cards(self, kind: Rows, on_card: Longs, free: Longs) -> None:
        """Set what tasks of the kinds ``kind`` (int64[K]) ask of a card, and what each card has free (int64[n, D])."""
        self.on_card[kind] = on_card
        self._cards, self._cards_left = free, free.copy()

    def state(self) -> _Saved:
        """What ``restore`` needs to undo later placements."""
        return _Saved(self.usable, self.left.copy(), self._cards_left.copy(), self._parts.copy())

    def restore(self, state: _Saved) -> None:
        """Undo all placements since ``state``, which can be used again."""
        self.usable, self.left = state.usable, state.left.copy()
        self._cards_left, self._parts = state.cards_left.copy(), state.parts.copy()

    def slots(self, kind: int) -> Longs:
        """int64[n + 1]: running sum over the nodes of the slots for the kind, anti-affinity within the gang aside."""
        running = np.zeros(len(self.left) + 1, np.int64)
        np.cumsum(self._slots(kind, 0, len(self.left)), out=running[1:])
        return running

    def _slots(self, kind: int, first: int, last: int) -> Longs:
        there = slots(self.request[kind], self.left[first:last]) * self.usable[kind, first:last]
        if self.on_card[kind]:
            there = np.minimum(there, slots_on_cards(int(self.on_card[kind]), self._cards_left[first:last]))
        return there

    def place(self, count: Longs, first: int, last: int) -> Longs | None:
        """Place ``count`` int64[M] tasks on nodes ``first:last``; returns how many on each: int64[M, last - first]."""
        taken = np.zeros((len(count), last - first), np.int64)
        for kind in sorted(np.flatnonzero(self._repelled & (count > 0)), key=lambda k: (-self.share[k], k)):
            for _ in range(count[kind]):
                node = self._place_apart(int(kind), first, last)
                if node == NONE:
                    return None
                taken[kind, node - first] += 1
        on_cards = np.flatnonzero(~self._repelled & (self.on_card > 0) & (count > 0))
        for kind in sorted(on_cards, key=lambda k: (-self.on_card[k], k)):
            if not self._place_on_cards(int(kind), int(count[kind]), first, taken):
                return None
        rest = np.where(self._repelled | (self.on_card > 0), 0, count)
        if rest.any():
            placed = place_classes(self.request, rest, self.usable[:, first:last], self.left[first:last])
            if placed.sum() < rest.sum():
                return None
            self.left[first:last] -= placed.T @ self.request
            taken += placed
        return taken

    def _place_apart(self, kind: int, first: int, last: int) -> int:
        """Place one task that repels others of the gang, on the fullest node that takes it; NONE if none does."""
        there = self._slots(kind, first, last)
        open_to = np.flatnonzero(there)
        if len(open_to) == 0:
            return NONE
        node = first + int(open_to[np.argmin(there[open_to])])
        return node if self.put(kind, node) else NONE

    def put(self, kind: int, node: int) -> bool:
        """Place one task of a kind on a node if it is open to it and takes it."""
        if not self._slots(kind, node, node + 1)[0] or not self._hold(node, int(self.on_card[kind]), 1):
            return False
        self.left[node] -= self.request[kind]
        if self._among is None:
            return True
        usable = self.usable.copy()
        for bit, domains in enumerate(self._among.domains):
            if domains[node] != NONE:
                shut = (self._among.conflict[kind] >> bit & 1).astype(bool)
                usable &= ~(shut[:, None] & (domains == domains[node]))
        self.usable = usable
        return True

    def _place_on_cards(self, kind: int, count: int, first: int, taken: Longs) -> bool:
        """Place tasks of one kind, fullest nodes first; returns whether all of them found a card."""
        there = self._slots(kind, first, first + taken.shape[1])
        nodes = np.flatnonzero(there)
        nodes = nodes[np.argsort(there[nodes], kind="stable")]
        here = sizes(np.minimum(np.cumsum(there[nodes]), count))
        if here.sum() < count:
            return False
        nodes, here = nodes[here > 0], here[here > 0]
        taken[kind, nodes] += here
        self.left[first + nodes] -= here[:, None] * self.request[kind]
        parts = zip((first + nodes).tolist(), here.tolist(), strict=True)
        return all(self._hold(node, int(self.on_card[kind]), many) for node, many in parts)

    def _hold(self, node: int, amount: int, many: int) -> bool:
        """Give tasks parts of the node's cards; all its tasks get cards anew, so that the biggest come first."""
        if amount == 0:
            return True
        parts = self._parts.get(node, ()) + (amount,) * many
        on = packed_on_cards(
            np.array(parts, np.int64), np.zeros(len(parts), np.int64), self._cards[node : node + 1], False
        )
        if (on == NONE).any():
            return False
        self._parts[node] = parts
        self._cards_left[node] = self._cards[node]
        np.subtract.at(self._cards_left[node], on, parts)
        return True


class Packer:
    """Places groups in regions; a region is a range ``first:last`` of the slice's nodes."""

    def __init__(self, topology: Topology, start: int, groups: list[Group], own: Longs, room_left: Room) -> None:
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
        todo = self._inside[group] + ([OWN] if self._own[group].any() else [])
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
        if inner == OWN:
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
        rows = self._topology.at_level(level)
        rows = self._topology.holding(rows, fixed)
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
