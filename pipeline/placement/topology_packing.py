"""A node for every task of a gang's minimum: topology of its parts, anti-affinity, cards, rank order.

Parts with a level of their own (subgroups, podgroups of a gang group) go into one domain each: outer ones before the
parts inside them, the biggest sibling first, each into the tightest domain that takes it. A part that finds none moves
to the front and its siblings are settled anew: squeaky wheel optimisation (Joslin and Clements 1999), except that
here a part moves once, so that it ends.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from pipeline.cluster.anti_affinity import Exclusions, exclusions, repels
from pipeline.cluster.arrays import NONE, Bools, Floats, Longs, Rows
from pipeline.cluster.cards import freed_on_cards, packed, slots_on_cards
from pipeline.cluster.resources import slots
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import BOUND, PENDING, RUNNING
from pipeline.cluster.topology import Topology
from pipeline.placement.need import Need, Part
from pipeline.placement.packing import place_classes

#: Regions tried per part before the arrangement is given up; nested parts could else try every combination.
_TRIALS_A_PART = 16
#: In a list of parts to settle: the tasks that are in none of them.
_OWN = -1


def arrange(
    need: Need, allowed: Bools, room: Longs, start: int, stop: int, snapshot: Snapshot, leaving: Rows
) -> Rows | None:
    """Find a node for each task of the minimum, all of them within one slice of nodes.

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
        int64[V]: task rows of victims; they neither repel nor hold their podgroup in its domain.

    Returns
    -------
    int64[minimum]: node rows for ``need.tasks[:minimum]``; None if no arrangement was found.
    """
    grouping = _group(need, snapshot, start, stop, leaving)
    if grouping is None:
        return None
    groups, group_of = grouping
    if repels(snapshot):
        kind, space = _told_apart(need, allowed, room, start, stop, snapshot, leaving)
    else:
        kind, space = need.shape[: need.minimum].astype(np.int64), _Slice(need.request, allowed, room.copy())
    on_card = snapshot.shapes.on_card[snapshot.tasks.shape[need.tasks[: need.minimum]]]
    if on_card.any():
        free = snapshot.card_room.future[start:stop].copy()
        freed_on_cards(snapshot.tasks, snapshot.shapes, leaving, start, free)
        space.lay_cards(kind, on_card, free)
    group = group_of[need.part[: need.minimum]]
    own = np.zeros((len(groups), len(space.request)), np.int64)
    np.add.at(own, (group, kind), 1)
    arranger = _Arranger(snapshot.topology, start, groups, own, space)
    if not arranger.settle(0, 0, stop - start):
        return None
    nodes = np.empty(need.minimum, np.int64)
    for g, k in zip(*np.nonzero(own), strict=True):
        first, taken = arranger.taken[int(g)]
        nodes[(group == g) & (kind == k)] = start + first + np.repeat(np.arange(taken.shape[1]), taken[k])
    return nodes


def unbound(need: Need, snapshot: Snapshot, start: int, stop: int) -> bool:
    """Whether no part of the minimum must or should lie in a domain narrower than the slice: classes decide then."""
    grouping = _group(need, snapshot, start, stop, np.empty(0, np.int64))
    return grouping is not None and len(grouping[0]) == 1


# -- the parts that are bound to a level ---------------------------------------------------------------------------


@dataclass(frozen=True)
class _Group:
    """Parts that go into one domain together; the first group is the gang in the whole slice.

    Attributes
    ----------
    parent
        Index of the group around it, NONE for the first.
    required, preferred
        Level rows; NONE without one, or where the slice lies in one domain of that level anyway.
    fixed: int64[F]
        Nodes on which tasks of these parts already run, or which they are promised.
    """

    parent: int
    required: int
    preferred: int
    fixed: Rows


def _group(need: Need, snapshot: Snapshot, start: int, stop: int, leaving: Rows) -> tuple[list[_Group], Rows] | None:
    """Sort the parts into groups, and say for each part which: None if one of them is held outside the slice."""
    many = np.bincount(need.part[: need.minimum], minlength=len(need.parts))
    for p in range(len(need.parts) - 1, -1, -1):
        if need.parts[p].parent != NONE:
            many[need.parts[p].parent] += many[p]
    groups, of = [_Group(NONE, NONE, NONE, np.empty(0, np.int64))], np.zeros(len(need.parts), np.int64)
    for p, part in enumerate(need.parts):
        of[p] = 0 if part.parent == NONE else of[part.parent]
        if many[p] == 0 or part.required_level == part.preferred_level == NONE:
            continue
        fixed = _held_by(part, snapshot, leaving)
        required, preferred = part.required_level, part.preferred_level
        around = _around(snapshot.topology, required, start, stop)
        if around != NONE:
            if not _holds(snapshot.topology, np.array([around]), fixed).all():
                return None
            required = NONE
        if _around(snapshot.topology, preferred, start, stop) != NONE:
            preferred = NONE
        if required != NONE or preferred != NONE:
            groups.append(_Group(int(of[p]), required, preferred, fixed))
            of[p] = len(groups) - 1
    return groups, of


def _held_by(part: Part, snapshot: Snapshot, leaving: Rows) -> Rows:
    """Nodes of the part's tasks that run or are promised a node, subgroups inside it included."""
    tasks, table = snapshot.tasks, snapshot.subgroups
    rows = snapshot.tasks_of(part.podgroup)
    place = np.where(tasks.status[rows] == PENDING, tasks.nominated[rows], tasks.node[rows])
    held = np.isin(tasks.status[rows], (PENDING, BOUND, RUNNING)) & (place != NONE)
    if not held.any():
        return np.empty(0, np.int64)
    held &= ~np.isin(rows, leaving)
    if part.subgroup != NONE:
        inside = {part.subgroup}
        for row in range(part.subgroup + 1, int(snapshot.subgroup_start[part.podgroup + 1])):
            if int(table.parent[row]) in inside:
                inside.add(row)
        held &= np.isin(tasks.subgroup[rows], sorted(inside))
    nodes: Rows = place[held].astype(np.int64)
    return nodes


def _around(topology: Topology, level: int, start: int, stop: int) -> int:
    """The domain of the level that holds the whole slice, or NONE."""
    if level == NONE:
        return NONE
    rows = topology.at_level(level)
    holding = rows[(topology.start[rows] <= start) & (topology.stop[rows] >= stop)]
    return int(holding[0]) if len(holding) else NONE


def _holds(topology: Topology, domains: Rows, nodes: Rows) -> Bools:
    """bool[D]: domains that hold all of ``nodes``."""
    if len(nodes) == 0:
        return np.ones(len(domains), bool)
    return np.asarray((topology.start[domains] <= nodes.min()) & (topology.stop[domains] > nodes.max()))


# -- kinds of tasks where anti-affinity tells tasks of one shape apart -------------------------------------------------


def _told_apart(
    need: Need, allowed: Bools, room: Longs, start: int, stop: int, snapshot: Snapshot, leaving: Rows
) -> tuple[Rows, "_Slice"]:
    """The kind (shape and label set) of each task of the minimum, and the slice for these kinds."""
    pairs = np.stack([need.shape[: need.minimum], snapshot.tasks.label_set[need.tasks[: need.minimum]]], axis=1)
    kinds, kind = np.unique(pairs, axis=0, return_inverse=True)
    constraint = snapshot.shapes.constraint[need.shapes[kinds[:, 0]]]
    found = exclusions(snapshot, constraint, kinds[:, 1], leaving)
    usable = allowed[kinds[:, 0]] & ~found.excluded[:, start:stop]
    among = Exclusions(found.excluded, found.conflict, found.keys, found.domains[:, start:stop])
    return kind.reshape(-1), _Slice(need.request[kinds[:, 0]], usable, room.copy(), among)


class _Slice:
    """The slice while the gang is laid out: what is left of it. Lives as long as one call of ``arrange``.

    Attributes
    ----------
    request: int64[M, R]
        By kind of task.
    usable: bool[M, n]
        Nodes open to each kind; shrinks as tasks that repel it are placed.
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
        """Say what the tasks, given by their kinds, ask of cards, and what is free of each: int64[n, D]."""
        self.on_card[kind] = on_card
        self._cards, self._cards_left = free, free.copy()

    def state(self) -> tuple[Any, ...]:
        """What ``restore`` needs to undo all placements since."""
        return self.usable, self.left.copy(), self._cards_left.copy(), self._parts.copy()

    def restore(self, state: tuple[Any, ...]) -> None:
        """Take back all placements since ``state``, which stays good for another time."""
        self.usable, self.left, self._cards_left, self._parts = state[0], *(column.copy() for column in state[1:])

    def slots(self, kind: int) -> Longs:
        """int64[n + 1]: running sum over the nodes of the slots for the kind, anti-affinity among the gang ignored."""
        running = np.zeros(len(self.left) + 1, np.int64)
        np.cumsum(self._slots(kind, 0, len(self.left)), out=running[1:])
        return running

    def _slots(self, kind: int, first: int, last: int) -> Longs:
        there = slots(self.request[kind], self.left[first:last]) * self.usable[kind, first:last]
        if self.on_card[kind]:
            there = np.minimum(there, slots_on_cards(int(self.on_card[kind]), self._cards_left[first:last]))
        return there

    def place(self, count: Longs, first: int, last: int) -> Longs | None:
        """Place ``count`` int64[M] tasks on nodes ``first:last``; how many went where: int64[M, last - first]."""
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
        there, request = self._slots(kind, first, last), self.request[kind]
        open_to = np.flatnonzero(there)
        if len(open_to) == 0 or self._among is None:
            return NONE
        node = first + int(open_to[np.argmin(there[open_to])])
        if not self._hold(node, int(self.on_card[kind]), 1):
            return NONE
        self.left[node] -= request
        usable = self.usable.copy()
        for bit, domains in enumerate(self._among.domains):
            if domains[node] != NONE:
                shut = (self._among.conflict[kind] >> bit & 1).astype(bool)
                usable &= ~(shut[:, None] & (domains == domains[node]))
        self.usable = usable
        return node

    def _place_on_cards(self, kind: int, count: int, first: int, taken: Longs) -> bool:
        """Place tasks of one kind, fullest nodes first; whether all of them found a card."""
        there = self._slots(kind, first, first + taken.shape[1])
        nodes = np.flatnonzero(there)
        nodes = nodes[np.argsort(there[nodes], kind="stable")]
        here = np.diff(np.minimum(np.cumsum(there[nodes]), count), prepend=0)
        if here.sum() < count:
            return False
        nodes, here = nodes[here > 0], here[here > 0]
        taken[kind, nodes] += here
        self.left[first + nodes] -= here[:, None] * self.request[kind]
        parts = zip((first + nodes).tolist(), here.tolist(), strict=True)
        return all(self._hold(node, int(self.on_card[kind]), many) for node, many in parts)

    def _hold(self, node: int, amount: int, many: int) -> bool:
        """Give tasks parts of the node's cards; all of its tasks are laid out anew, so the biggest still come first."""
        if amount == 0:
            return True
        parts = self._parts.get(node, ()) + (amount,) * many
        on = packed(np.array(parts, np.int64), self._cards[node], spread=False)
        if on is None:
            return False
        self._parts[node] = parts
        self._cards_left[node] = self._cards[node]
        np.subtract.at(self._cards_left[node], on, parts)
        return True


# -- the search ----------------------------------------------------------------------------------------------------


class _Arranger:
    """Settles groups in regions; a region is a range ``first:last`` of the slice's nodes."""

    def __init__(self, topology: Topology, start: int, groups: list[_Group], own: Longs, space: _Slice) -> None:
        self._topology, self._start, self._groups, self._own, self._slice = topology, start, groups, own, space
        self._trials = _TRIALS_A_PART * len(groups)
        self._total = own.copy()
        self._inside: list[list[int]] = [[] for _ in groups]
        for g in range(len(groups) - 1, 0, -1):
            self._total[groups[g].parent] += self._total[g]
            self._inside[groups[g].parent].append(g)
        for inside in self._inside:
            inside.sort(key=lambda g: (-float(self._total[g] @ space.share), g))
        #: Per group the first node of its region and how many of its own tasks went where, int64[M, nodes].
        self.taken: dict[int, tuple[int, Longs]] = {}

    def settle(self, group: int, first: int, last: int) -> bool:
        """Place a group and all inside it in a region; leaves the slice as it was if that fails."""
        before, moved = self._slice.state(), set[int]()
        todo = self._inside[group] + ([_OWN] if self._own[group].any() else [])
        while True:
            failed = next((g for g in todo if not self._settle_one(g, group, first, last)), None)
            if failed is None:
                return True
            self._slice.restore(before)
            if failed in moved or failed == todo[0] or self._trials <= 0:
                return False
            moved.add(failed)
            todo = [failed, *(g for g in todo if g != failed)]

    def _settle_one(self, inner: int, group: int, first: int, last: int) -> bool:
        if inner == _OWN:
            taken = self._slice.place(self._own[group], first, last)
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
        """Regions that might take the group: domains of the preferred level, then of the required one; tight first."""
        wanted, whole = self._groups[group], np.array([[first, last]])
        required = whole if wanted.required == NONE else self._cut(whole, wanted.required, wanted.fixed)
        ordered = self._tightest(group, required)
        if wanted.preferred != NONE:
            ordered = self._tightest(group, self._cut(required, wanted.preferred, wanted.fixed)) + ordered
        return list(dict.fromkeys(ordered))

    def _cut(self, regions: Longs, level: int, fixed: Rows) -> Longs:
        """What the level's domains that hold ``fixed`` have in common with each region: int64[P, 2]."""
        rows = self._topology.at_level(level)
        rows = rows[_holds(self._topology, rows, fixed)]
        lower = np.maximum(regions[:, 0, None], self._topology.start[rows] - self._start)
        upper = np.minimum(regions[:, 1, None], self._topology.stop[rows] - self._start)
        return np.stack([lower[lower < upper], upper[lower < upper]], axis=1)

    def _tightest(self, group: int, regions: Longs) -> list[tuple[int, int]]:
        """Regions with slots for every kind of the group, those with fewest for its biggest kind first."""
        kinds = np.flatnonzero(self._total[group])
        enough, have = np.ones(len(regions), bool), np.zeros(len(regions), np.int64)
        for kind in sorted(kinds, key=lambda k: (self._slice.share[k], -k)):
            running = self._slice.slots(int(kind))
            have = running[regions[:, 1]] - running[regions[:, 0]]
            enough &= have >= self._total[group, kind]
        order = np.lexsort((regions[:, 0], have))
        return [(int(lower), int(upper)) for lower, upper in regions[order[enough[order]]]]
