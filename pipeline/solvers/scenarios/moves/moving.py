"""New nodes for victims: where they may start again, beside one another and beside what stays.

Podgroups and subgroups with a required level move into one domain of it, the tightest that takes them, or the one that
their other tasks hold. Tasks with anti-affinity go where it lets them.
"""

from dataclasses import dataclass
from enum import Enum

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Longs, Rows, distinct, is_among, paired, unpaired, without
from pipeline.cluster.orders import unique_inverse
from pipeline.cluster.rules.anti_affinity import Exclusions, concerned, exclusions
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.subgroups import in_subtree
from pipeline.placement.domains import with_required_level
from pipeline.plugins.host import Host
from pipeline.solvers.scenarios.moves.places_in_turn import places_in_turn
from pipeline.solvers.scenarios.moves.restarting import may_restart
from pipeline.solvers.scenarios.moves.rough_kinds import MoverKinds, RoughKinds, rough_kinds


class Stays(Enum):
    """Which victims keep their places.

    Attributes
    ----------
    FIRST
        All that fit beside the preemptor, before any other gets a place.
    IN_TURN
        Of those of one turn the ones that still fit, so that bigger victims find room where smaller ones were.
    BY_CHANCE
        Those whose turn leads them back: each gets the fullest node, which packs them closest.
    """

    FIRST = "first"
    IN_TURN = "in turn"
    BY_CHANCE = "by chance"


@dataclass(frozen=True)
class Moving:
    """Victims that are to get places.

    Attributes
    ----------
    rows: int64[M]
        Task rows, in the order in which they are placed.
    turn: int64[M]
        Their turns, ascending.
    may_stay
        Whether of those of one turn first those are placed that still fit where they are. Else none are.
    """

    rows: Rows
    turn: Longs
    may_stay: bool


@dataclass(frozen=True)
class Movers:
    """Victims that are to get places, and what they ask for.

    Attributes
    ----------
    rows, turn: int64[M]
        As in `Moving`.
    here: int64[2, M]
        The nodes and cards where they stay if they fit; NONE: nowhere.
    kind: int64[M]
        Tasks of one kind ask for the same and may use the same nodes.
    kinds, rough
        These kinds, and the rough ones of them.
    spreads
        Whether a task gets the emptiest card of its node that fits; else the fullest.
    """

    snapshot: Snapshot
    rows: Rows
    turn: Longs
    here: Longs
    kind: Rows
    kinds: MoverKinds
    rough: RoughKinds
    spreads: bool

    def placed(self, some: Rows, left: Longs, start: int, stop: int) -> Longs:
        """int64[2, M']: nodes in the slice, and cards there, for the tasks at ``some``; NONE where there is none.

        ``left`` is reduced.
        """
        who = self.turn[some], np.ascontiguousarray(self.here[:, some]), self.kind[some]
        return places_in_turn(*who, self.kinds, self.rough, self.spreads, left, start, stop)


def new_places(
    host: Host, moving: Moving, staying: Rows, nodes: Rows, left: Longs, preemptor: tuple[Rows, Rows]
) -> Longs:
    """int64[2, M]: nodes and cards on which victims start again, NONE for those that lose their place.

    Parameters
    ----------
    staying, nodes: int64[S]
        Victims that stay, and their nodes.
    preemptor: int64[P], int64[P]
        Its tasks, and their nodes.
    left: int64[N, R + D]
        Room of nodes and of their cards beside the preemptor and what stays; it is reduced.
    """
    snapshot, rows = host.context.snapshot, moving.rows
    result = np.full((2, len(rows)), NONE, np.int64)
    may = np.flatnonzero(may_restart(host, rows))
    if len(may) == 0:
        return result
    movers, owner = _movers(host, moving, may, preemptor), snapshot.tasks.podgroup[rows[may]]
    bound = snapshot.once(with_required_level)[owner]
    for podgroup in dict.fromkeys(owner[bound].tolist()):
        mine = np.flatnonzero(owner == podgroup)
        members = without(snapshot.tasks_of(podgroup), np.concatenate([rows, staying]))
        kept = np.concatenate([members, staying[snapshot.tasks.podgroup[staying] == podgroup]])
        where = np.concatenate([snapshot.place_of(members), nodes[snapshot.tasks.podgroup[staying] == podgroup]])
        whole = _MovingPart(movers, podgroup, NONE, kept[where != NONE], where[where != NONE])
        found = whole.placed(mine, left, 0, len(left))
        if found is not None:
            result[:, may[mine]], left[:] = found
    free = np.flatnonzero(~bound)
    result[:, may[free]] = movers.placed(free, left, 0, len(left))
    return result


@dataclass(frozen=True)
class _MovingPart:
    """A podgroup (``subgroup`` NONE) or a subgroup, and the nodes of its tasks that keep their places."""

    movers: Movers
    podgroup: int
    subgroup: int
    kept: Rows
    nodes: Rows

    def placed(self, some: Rows, left: Longs, start: int, stop: int) -> tuple[Longs, Longs] | None:
        """Nodes and cards in the slice for all its movers at ``some``, and what room they leave; or None."""
        for first, last in self._slices(some, left, start, stop):
            found = self._within(some, left.copy(), first, last)
            if found is not None:
                return found
        return None

    def _slices(self, some: Rows, left: Longs, start: int, stop: int) -> list[tuple[int, int]]:
        """Its domains in the slice; the slice if it has no level of its own.

        The first is the one where most of its movers may stay; of equals that with the least room.
        """
        snapshot = self.movers.snapshot
        topology, groups, parts = snapshot.topology, snapshot.podgroups, snapshot.subgroups
        level = groups.required_level[self.podgroup] if self.subgroup == NONE else parts.required_level[self.subgroup]
        if level == NONE:
            return [(start, stop)]
        domains = topology.at_level(int(level))
        domains = domains[(topology.start[domains] >= start) & (topology.stop[domains] <= stop)]
        domains = topology.holding(domains, self.nodes)
        room = left[:, : snapshot.shapes.request.shape[1]]
        share = (np.maximum(room, 0) / np.maximum(snapshot.capacity, 1)).sum(axis=1)
        total = np.array([share[topology.start[one] : topology.stop[one]].sum() for one in domains.tolist()])
        here = np.sort(self.movers.here[0, some])
        stays = np.searchsorted(here, topology.stop[domains]) - np.searchsorted(here, topology.start[domains])
        order = domains[np.lexsort((domains, total, -stays))]
        return topology.slices_of(order)

    def _within(self, some: Rows, left: Longs, start: int, stop: int) -> tuple[Longs, Longs] | None:
        movers, parts = self.movers, self.movers.snapshot.subgroups
        of, kept = movers.snapshot.tasks.subgroup[movers.rows[some]], movers.snapshot.tasks.subgroup[self.kept]
        result = np.full((2, len(some)), NONE, np.int64)
        own = np.flatnonzero(of == self.subgroup)
        result[:, own] = movers.placed(some[own], left, start, stop)
        for child in np.flatnonzero((parts.podgroup == self.podgroup) & (parts.parent == self.subgroup)).tolist():
            inside, stays = np.flatnonzero(in_subtree(parts, child, of)), in_subtree(parts, child, kept)
            if len(inside) == 0:
                continue
            part = _MovingPart(movers, self.podgroup, child, self.kept[stays], self.nodes[stays])
            found = part.placed(some[inside], left, start, stop)
            if found is None:
                return None
            result[:, inside], left = found
        return None if (result[0] == NONE).any() else (result, left)


def _movers(host: Host, moving: Moving, may: Rows, preemptor: tuple[Rows, Rows]) -> Movers:
    """The tasks at ``may`` with the nodes that they may use once all have gone, beside the preemptor."""
    snapshot, leaving = host.context.snapshot, moving.rows
    tasks, shapes, rows = snapshot.tasks, snapshot.shapes, leaving[may]
    here = np.array([tasks.node[rows], tasks.card[rows]], np.int64)
    if not moving.may_stay:
        here[:] = NONE
    repels = concerned(snapshot, shapes.constraint[tasks.shape[rows]], tasks.label_set[rows])
    pairs, kind = unique_inverse(paired(tasks.shape[rows], np.where(repels, tasks.label_set[rows], NONE)))
    shape, labels = unpaired(pairs)
    allowed, access = host.accesses(shape)
    if repels.any():
        allowed, access = _not_repelled(snapshot, shape, labels, (allowed, access), leaving, preemptor)
    kinds = MoverKinds(shapes.request[shape], shapes.on_card[shape], access, allowed)
    rough = rough_kinds(shapes, shape, kinds)
    return Movers(snapshot, rows, moving.turn[may], here, kind, kinds, rough, host.spreads_cards)


def _not_repelled(
    snapshot: Snapshot, shape: Rows, labels: Rows, accesses: tuple[Bools, Rows], leaving: Rows,
    preemptor: tuple[Rows, Rows],
) -> tuple[Bools, Rows]:  # fmt: skip
    """``Host.accesses`` without nodes that anti-affinity denies tasks with these labels (int64[K], NONE: to none)."""
    allowed, access = accesses
    pairs, kind = unique_inverse(paired(access, labels))
    row, label = unpaired(pairs)
    allowed, constraint = allowed[row], np.empty(len(pairs), np.int32)
    constraint[kind] = snapshot.shapes.constraint[shape]
    some, (asks, places), tasks = np.flatnonzero(label != NONE), preemptor, snapshot.tasks
    others, other = unique_inverse(paired(snapshot.shapes.constraint[tasks.shape[asks]], tasks.label_set[asks]))
    stated, carried = unpaired(others)
    stated, carried = np.concatenate([constraint[some], stated]), np.concatenate([label[some], carried])
    found = exclusions(snapshot, stated.astype(np.int32), carried.astype(np.int32), leaving)
    allowed[some] &= ~(found.excluded[: len(some)] | _repelled_there(found, len(some), other, places))
    return allowed, kind


def _repelled_there(found: Exclusions, kinds: int, other: Rows, places: Rows) -> Bools:
    """bool[K, N]: nodes that anti-affinity denies to the first ``kinds`` because others go to ``places``, int64[P].

    ``other`` int64[P] is the kind of each of these, counted from behind the first.
    """
    result = np.zeros((kinds, found.excluded.shape[1]), bool)
    for bit, domains in enumerate(found.domains):
        for kind in distinct(other).tolist():
            conflicts = (found.conflict[:kinds, kinds + kind] >> bit & 1).astype(bool)
            if conflicts.any():
                taken = domains[places[other == kind]]
                result[conflicts] |= is_among(domains, taken[taken != NONE])
    return result
