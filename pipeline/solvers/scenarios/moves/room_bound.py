"""Whether victims can make the room that is lacking at all, asked before places are found for them.

In the end the preemptor's nodes and those of the victims hold more of each resource than now: what the preemptor asks
for, less what leaves these nodes. They have no more room for that than is free there now. A victim leaves them if it
may be lost, or if another node takes it as it is: of each rough kind no more do than have slots there, and they take
what is free on such nodes. So of each resource the preemptor asks for at most what is free on those nodes and what can
leave them. If that is refuted of some victims, it is of any part of them.
"""

from dataclasses import dataclass

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, NONE, UNLIMITED, Bools, Ids, Longs, Rows, distinct, mask_of
from pipeline.cluster.snapshot import Snapshot
from pipeline.keeping import cached_property
from pipeline.kernels import kernel, linked
from pipeline.placement.layout.packing import node_slots
from pipeline.solvers.scenarios.grounds import Grounds
from pipeline.solvers.scenarios.moves.places_in_turn import fits_in
from pipeline.solvers.scenarios.moves.restarting import may_wait
from pipeline.solvers.scenarios.moves.rough_kinds import MoverKinds, rough_kinds
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
        held = snapshot.tasks.node, snapshot.tasks.shape, snapshot.shapes.request
        moves = self._moves if self.grounds.law.moves_are_free else self._no_moves
        return bool(_suffices(asks, nodes, units.rows, held, (lost, *moves), snapshot.room.future))

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
    def _moves(self) -> tuple[Bools, Rows, Longs]:
        """bool[T]: which tasks may move; int64[shapes]: the rough kind of each shape, int64[C, N]: slots of these.

        A slot is room for a task of the rough kind, as if alone, on a node as it is.
        """
        snapshot, host = self._snapshot, self.grounds.law.host
        shape = distinct(snapshot.tasks.shape[self.grounds.units.rows]).astype(np.int64)
        allowed, access = host.accesses(shape)
        asked = MoverKinds(snapshot.shapes.request[shape], snapshot.shapes.on_card[shape], access, allowed)
        (request, _, access, allowed), of, _ = rough_kinds(snapshot.shapes, shape, asked)
        kind, most = np.full(len(snapshot.shapes), NONE), np.full(len(request), UNLIMITED)
        kind[shape] = of
        return self._may_move, kind, node_slots(request, most, allowed[access], 0, snapshot.room.future)[0]

    @cached_property
    def _no_moves(self) -> tuple[Bools, Rows, Longs]:
        """The same where moves do not count."""
        return self._none, NO_ROWS, np.zeros((0, len(self._snapshot.nodes)), np.int64)


@kernel
def _suffices(
    asks: tuple[Longs, Longs, Bools], nodes: tuple[int, int], victims: Rows, held: tuple[Ids, Ids, Longs],
    leaving: tuple[Bools, Bools, Rows, Longs], future: Longs,
) -> bool:  # fmt: skip
    """Whether ``victims`` may make room.

    ``asks``: request, count and allowed nodes of each of the preemptor's shapes, on ``nodes`` from the first up to the
    last. ``held``: node and shape of each task, and what each shape asks for. ``leaving``: which tasks may lose their
    places (bool[T]), and ``RoomBound._moves``. Of each rough kind no more move than have slots, and each holds no more
    than the largest.
    """
    (request, count, allowed), (node, shape, holds), resources = asks, held, future.shape[1]
    lost, may_move, kind, slots = leaving
    many, leaves = np.zeros(len(slots), np.int64), np.zeros(resources, np.int64)
    sums, largest = np.zeros((len(slots), resources), np.int64), np.zeros((len(slots), resources), np.int64)
    changes, others = np.zeros(len(future), np.bool_), np.zeros(len(future), np.bool_)
    for row in victims:
        changes[node[row]] = True
        if lost[row]:
            leaves += holds[shape[row]]
        elif may_move[row]:
            k = kind[shape[row]]
            many[k] += 1
            for r in range(resources):
                sums[k, r] += holds[shape[row], r]
                largest[k, r] = max(largest[k, r], holds[shape[row], r])
    moves = np.zeros(resources, np.int64)
    for k in range(len(slots)):
        if many[k] > 0:
            moves += np.minimum(sums[k], min(many[k], _slots_on(slots[k], ~changes, others)) * largest[k])
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
