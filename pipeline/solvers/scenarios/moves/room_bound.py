"""Whether victims can make the room that is lacking at all, asked before places are found for them.

In the end the preemptor's nodes and those of the victims hold more of each resource than now: what the preemptor asks
for, less what leaves these nodes. They have no more room for that than is free there now. A victim leaves them if it
may be lost, or if another node takes it as it is: of each shape no more do than have slots there, and they take what is
free on such nodes. So of each resource the preemptor asks for at most what is free on those nodes and what can leave
them. If that is refuted of some victims, it is of any part of them.
"""

from dataclasses import dataclass

import numpy as np

from pipeline.cluster.arrays import UNLIMITED, Bools, Ids, Longs, Rows, distinct, mask_of
from pipeline.cluster.snapshot import Snapshot
from pipeline.keeping import cached_property
from pipeline.kernels import kernel, linked
from pipeline.placement.layout.packing import node_slots
from pipeline.solvers.scenarios.grounds import Grounds
from pipeline.solvers.scenarios.moves.places_in_turn import fits_in
from pipeline.solvers.scenarios.moves.restarting import may_wait
from pipeline.solvers.scenarios.slices.node_slice import NodeSlice
from pipeline.solvers.scenarios.units import VictimUnits


@dataclass(frozen=True)
class RoomBound:
    """The upper bound for the victims of one preemptor."""

    grounds: Grounds

    def may_suffice(self, ground: NodeSlice, units: VictimUnits) -> bool:
        """Whether some tasks of the units may make room in a slice of nodes."""
        if self.grounds.law.moves_are_free and self._suffices(ground, units, self._none):
            return True
        return not self.grounds.law.loses_none and self._suffices(ground, units, self.grounds.law.may_be_lost)

    def _suffices(self, ground: NodeSlice, units: VictimUnits, lost: Bools) -> bool:
        need, opened, snapshot = self.grounds.counted.need, self.grounds.counted.open, self._snapshot
        asks, nodes = (need.request, need.count, opened), (ground.start, ground.stop)
        held = snapshot.tasks.node, self._kind, self._request
        leaving = lost, self._may_move
        slots = self._slots if self.grounds.law.moves_are_free else self._slots[:0]
        return bool(_suffices(asks, nodes, units.rows, held, leaving, slots, snapshot.room.future))

    @property
    def _snapshot(self) -> Snapshot:
        return self.grounds.counted.snapshot

    @cached_property
    def _none(self) -> Bools:
        return np.zeros(len(self._snapshot.tasks), bool)

    @cached_property
    def _may_move(self) -> Bools:
        """bool[T]: tasks of the units that would start again."""
        rows = self.grounds.units.rows
        return mask_of(rows[may_wait(self.grounds.law.host, rows)], len(self._none))

    @cached_property
    def _shapes(self) -> Rows:
        """int64[K]: the shapes of the units' tasks, ascending."""
        return distinct(self._snapshot.tasks.shape[self.grounds.units.rows]).astype(np.int64)

    @cached_property
    def _kind(self) -> Longs:
        """int64[T]: which of these shapes each task has; anything for the tasks of others."""
        return np.searchsorted(self._shapes, self._snapshot.tasks.shape)

    @cached_property
    def _request(self) -> Longs:
        """int64[K, R]: what each of the shapes asks for."""
        return self._snapshot.shapes.request[self._shapes]

    @cached_property
    def _slots(self) -> Longs:
        """int64[K, N]: how many tasks of each shape, as if alone, each node takes as it is."""
        allowed, most = self.grounds.law.host.allowed(self._shapes), np.full(len(self._shapes), UNLIMITED)
        slots, _ = node_slots(self._request, most, allowed, 0, self._snapshot.room.future)
        return slots


@kernel
def _suffices(
    asks: tuple[Longs, Longs, Bools], nodes: tuple[int, int], victims: Rows, held: tuple[Ids, Longs, Longs],
    leaving: tuple[Bools, Bools], slots: Longs, future: Longs,
) -> bool:  # fmt: skip
    """Whether ``victims`` may make room.

    ``asks``: request, count and allowed nodes of each of the preemptor's shapes, on ``nodes`` from the first up to the
    last. ``held``: node and shape of each task, and what each shape asks for. ``leaving``: which tasks may lose their
    places, and which may move (bool[T] both). ``slots`` int64[K, N]: how many tasks of each shape each node takes;
    empty if moves do not count.
    """
    (request, count, allowed), (node, kind, holds), resources = asks, held, future.shape[1]
    lost, may_move = leaving
    many, leaves = np.zeros(len(holds), np.int64), np.zeros(resources, np.int64)
    changes, others = np.zeros(len(future), np.bool_), np.zeros(len(future), np.bool_)
    for row in victims:
        changes[node[row]] = True
        if lost[row]:
            leaves += holds[kind[row]]
        elif may_move[row]:
            many[kind[row]] += 1
    moves = np.zeros(resources, np.int64)
    for k in range(len(slots)):
        if many[k] > 0:
            moves += min(many[k], _slots_on(slots[k], ~changes, others)) * holds[k]
    for n in range(nodes[0], nodes[1]):
        for s in range(len(request)):
            changes[n] |= allowed[s, n] and fits_in(request[s], future[n])
    for r in range(resources):
        asked, free, elsewhere = (request[:, r] * count).sum(), 0, 0
        for n in range(len(future)):
            free += max(future[n, r], 0) if changes[n] else 0
            elsewhere += max(future[n, r], 0) if others[n] else 0
        if asked > free + leaves[r] + min(moves[r], elsewhere):
            return False
    return True


@linked
def _slots_on(slots: Longs, nodes: Bools, used: Bools) -> int:
    """The slots (int64[N]) on some nodes; those that have any are ``used`` from then on (bool[N] both)."""
    found = 0
    for n in range(len(slots)):
        if nodes[n] and slots[n] > 0:
            used[n] = True
            found += slots[n]
    return found
