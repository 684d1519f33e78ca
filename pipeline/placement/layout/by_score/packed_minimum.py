"""Packing the minimum of a gang that tasks by score lay out nowhere.

By score tasks go in their order, each to the best node, and none looks back: one that fits anywhere may take the only
node of a later one. Where the minimum is not reached in this way, each way to make it up is packed as solvers pack it
(see ``topology_packing``), which look back. Quotas, slots and sums are asked first, so that mostly nothing is packed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, Bools, Longs, Rows, sums_of_slices
from pipeline.cluster.rules.anti_affinity import concerns
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.headroom import queues_take
from pipeline.placement.layout.by_score.scored import ScoredPlacement
from pipeline.placement.layout.other_ways import ways_within
from pipeline.placement.layout.packing import node_slots
from pipeline.placement.layout.regions_of_parts import asked_of_regions
from pipeline.placement.layout.topology_packing import Packings
from pipeline.placement.need import Need, need_of_all
from pipeline.plugins.host import Host

#: At most this often a gang is packed, all ways to make up its minimum and all domains together.
_TRIED = 16


def order_matters(snapshot: Snapshot, need: Need) -> bool:
    """Whether another order of tasks may find room: where all are alike and only resources matter, none does."""
    return len(need.shapes) > 1 or not need.plain or concerns(snapshot, need.tasks)


def packed_minimum(
    host: Host, need: Need, tiers: Sequence[Sequence[int]], fewest: int
) -> tuple[Need, ScoredPlacement] | None:
    """A way to make up the minimum of a need's podgroups, and where its tasks go; None if no place was found.

    Parameters
    ----------
    tiers
        Rows of domains, in the order in which they are tried; of one tier those with the fewest slots come first.
    fewest
        How many tasks any way has at least.
    """
    snapshot, room = host.to_start, _room_of(host, need, tiers, fewest)
    ways = [one for one in _ways(snapshot, need, room) if queues_take(host, one.tasks)]
    able = np.array([room.holds(one) for one in ways], bool).reshape(len(ways), len(room.domain))
    packings = dict[int, Packings]()
    for row, at in np.argwhere(able.T)[:_TRIED].tolist():
        one, (start, stop) = ways[at], snapshot.topology.slice_of(int(room.domain[row]))
        if at not in packings:
            asked = asked_of_regions(one, one.request, snapshot)
            packings[at] = Packings(one, host.allowed(one.shapes), snapshot, asked=asked)
        node = packings[at].on(start, stop).places(snapshot.room.future[start:stop], NO_ROWS)
        placement = None if node is None else _placed_on(host, one, node)
        if placement is not None:
            return one, placement
    return None


@dataclass(frozen=True)
class _DomainRoom:
    """Domains in which podgroups may lie, and what is counted of them.

    Attributes
    ----------
    domain: int64[D]
    shape: int64[S]
        Rows of ``Snapshot.shapes``.
    slots: int64[D, S]
        Slots for each shape, as if it were alone.
    free: int64[D, R]
        What all nodes have free.
    """

    domain: Rows
    shape: Rows
    slots: Longs
    free: Longs

    def holds(self, need: Need) -> Bools:
        """bool[D]: domains with slots for each shape of a need, and with what it asks for in sum."""
        at = np.array([self.shape.tolist().index(shape) for shape in need.shapes.tolist()], np.int64)
        return np.asarray((self.slots[:, at] >= need.count).all(axis=1) & (self.free >= need.total).all(axis=1))


def _room_of(host: Host, need: Need, tiers: Sequence[Sequence[int]], fewest: int) -> _DomainRoom:
    """The room for the tasks of a need in domains with slots for the ``fewest`` of them."""
    snapshot, every = host.to_start, need_of_all(need)
    future, topology = snapshot.room.future, snapshot.topology
    slots, _ = node_slots(every.request, every.count, host.allowed(every.shapes), 0, future)
    each = np.concatenate([slots.T, np.maximum(future, 0)], axis=1)
    domain = np.array([row for tier in tiers for row in tier], np.int64)
    tier = np.arange(len(tiers)).repeat([len(one) for one in tiers])
    inside = sums_of_slices(each, topology.start[domain], topology.stop[domain])
    total = inside[:, : len(slots)].sum(axis=1)
    order = np.lexsort((total, tier))
    order = order[total[order] >= fewest]
    return _DomainRoom(domain[order], every.shapes, inside[order, : len(slots)], inside[order, len(slots) :])


def _ways(snapshot: Snapshot, need: Need, room: _DomainRoom) -> Iterator[Need]:
    """The ways to make up the minimum, of each shape no more tasks than one domain has slots for."""
    if len(room.domain) == 0 or need.minimum == 0 or need.short:
        return iter(())
    most = np.zeros(len(snapshot.shapes), np.int64)
    most[room.shape] = room.slots.max(axis=0)
    return ways_within(snapshot, need, most, surplus=False)


def _placed_on(host: Host, need: Need, node: Rows) -> ScoredPlacement | None:
    """The tasks of a need on the nodes int64[K] that they are packed on, the largest parts of cards first."""
    placement, on_card = ScoredPlacement(host, need.tasks), host.context.snapshot.shapes.on_card[need.shapes]
    for run in placement.runs(np.lexsort((need.shape, -on_card[need.shape], node))):
        for at in np.unique(node[run]).tolist():
            some = run[node[run] == at]
            if placement.place(some, at, at + 1) < len(some):
                return None
    return placement
