"""Packing the minimum of a gang that tasks by score lay out nowhere.

By score tasks go in their order, each to the best node, and none looks back: one that fits anywhere may take the only
node of a later one. Where the minimum is not reached in this way, each way to make it up is packed as solvers pack it
(see ``topology_packing``), which look back. Quotas, slots and sums are asked first, so that mostly nothing is packed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, Longs, Rows
from pipeline.cluster.rules.anti_affinity import concerns
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.headroom import takes
from pipeline.placement.compositions import compositions
from pipeline.placement.layout.by_score.scored import ScoredPlacement
from pipeline.placement.layout.packing import node_slots
from pipeline.placement.layout.regions_of_parts import asked_of_regions
from pipeline.placement.layout.topology_packing import Packings
from pipeline.placement.need import Need, all_of, need_of
from pipeline.plugins.host import Host

#: At most so often a gang is packed, all ways to make up its minimum and all domains together.
_TRIED = 16


def order_matters(snapshot: Snapshot, need: Need) -> bool:
    """Whether another order of tasks may find room: where all are alike and only resources matter, none does."""
    return len(need.shapes) > 1 or not need.plain or concerns(snapshot, need.tasks)


def packed(host: Host, need: Need, tiers: Sequence[Sequence[int]]) -> tuple[Need, ScoredPlacement] | None:
    """A way to make up the minimum of a need's podgroups, and where its tasks go; None if no place was found.

    ``tiers``: rows of domains, in the order in which they are tried; of one tier those with the fewest slots first.
    """
    snapshot = host.to_start
    ground = _ground_of(host, need, tiers)
    ways = [one for one in _ways(snapshot, need, ground) if takes(host, one.tasks)]
    tries = ((at, row) for row in range(len(ground.domain)) for at, one in enumerate(ways) if ground.has_room(one, row))
    packings = dict[int, Packings]()
    for at, row in islice(tries, _TRIED):
        one, (start, stop) = ways[at], snapshot.topology.slice_of(int(ground.domain[row]))
        if at not in packings:
            asked = asked_of_regions(one, one.request, snapshot)
            packings[at] = Packings(one, host.allowed(one.shapes), snapshot, asked=asked)
        node = packings[at].on(start, stop).places(snapshot.room.future[start:stop], NO_ROWS)
        placement = None if node is None else _placed_on(host, one, node)
        if placement is not None:
            return one, placement
    return None


@dataclass(frozen=True)
class _Ground:
    """Domains in which podgroups may lie, and what is counted of them.

    Attributes
    ----------
    domain: int64[D]
    shape: int64[S]
        Rows of ``Snapshot.shapes``.
    slots: int64[D, S]
        Slots for each shape, as if it were alone.
    room: int64[D, R]
        What all nodes have free.
    """

    domain: Rows
    shape: Rows
    slots: Longs
    room: Longs

    def has_room(self, need: Need, row: int) -> bool:
        """Whether a domain has slots for each shape of a need, and in sum what it asks for."""
        asked = np.zeros(int(max(self.shape.max(), need.shapes.max())) + 1, np.int64)
        asked[need.shapes] = need.count
        return bool((self.slots[row] >= asked[self.shape]).all() and (self.room[row] >= need.total).all())


def _ground_of(host: Host, need: Need, tiers: Sequence[Sequence[int]]) -> _Ground:
    """The ground of all tasks of a need."""
    snapshot, every = host.to_start, all_of(need)
    room, topology = snapshot.room.future, snapshot.topology
    slots, _ = node_slots(every.request, every.count, host.allowed(every.shapes), 0, np.ascontiguousarray(room))
    upto = np.append(np.zeros((1, len(slots) + room.shape[1]), np.int64),
                     np.concatenate([slots.T, np.maximum(room, 0)], axis=1).cumsum(axis=0), axis=0)  # fmt: skip
    domain = np.array([row for tier in tiers for row in tier], np.int64)
    tier = np.arange(len(tiers)).repeat([len(one) for one in tiers])
    inside = upto[topology.stop[domain]] - upto[topology.start[domain]]
    order = np.lexsort((inside[:, : len(slots)].sum(axis=1), tier))
    return _Ground(domain[order], every.shapes, inside[order, : len(slots)], inside[order, len(slots) :])


def _ways(snapshot: Snapshot, need: Need, ground: _Ground) -> Iterator[Need]:
    """The ways to make up the minimum, of each shape no more tasks than one domain has slots for."""
    most = np.zeros(len(snapshot.shapes), np.int64)
    most[ground.shape] = ground.slots.max(axis=0, initial=0)
    first = need_of(snapshot, need.podgroups, surplus=False, most=most)
    if first.short:
        first = need_of(snapshot, need.podgroups, surplus=False)
    return compositions(snapshot, first, most) if first.minimum and not first.short else iter(())


def _placed_on(host: Host, need: Need, node: Rows) -> ScoredPlacement | None:
    """The tasks of a need on the nodes int64[K] that they are packed on, the largest parts of cards first."""
    placement, on_card = ScoredPlacement(host, need.tasks), host.context.snapshot.shapes.on_card[need.shapes]
    for run in placement.runs(np.lexsort((need.shape, -on_card[need.shape], node))):
        for at in np.unique(node[run]).tolist():
            some = run[node[run] == at]
            if placement.place(some, at, at + 1) < len(some):
                return None
    return placement
