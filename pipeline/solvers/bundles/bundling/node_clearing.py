"""Nodes by what it costs to clear them, for gangs whose tasks take whole nodes.

Where a node takes one task at most, room is made node by node: victims on a node that is not cleared completely are
evicted for nothing. Leading bundles by priority would empty all nodes a little. Leading bundles in the order of their
nodes, cheapest first, clear one node after the other; if each podgroup is on one node, the set is the cheapest, class
by class.
"""

from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import Bools, Counts, Floats, Ids, Longs
from pipeline.cluster.orders import dense_rank, total_rank
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.price import in_units, needed_by
from pipeline.kernels import kernel
from pipeline.placement.need import Need

#: Policy ranks that lie closer together than this are levels as they are.
_MOST_LEVELS = 64
#: Shares of gangs are compared in steps; one has this many.
_SHARE_STEPS = 1e9
#: As many nodes are asked first whether they take two tasks.
_SAMPLE = 64


class _Candidates(NamedTuple):
    """Tasks by node, with what each shape takes of the need; tasks that take nothing do not count."""

    start: Longs
    candidate: Bools
    podgroup: Ids
    shape: Ids
    unit: Floats


def takes_whole_nodes(snapshot: Snapshot, need: Need, allowed: Bools) -> bool:
    """Whether the gang's tasks are of one shape, and no allowed node takes two of them even if empty."""
    if len(need.shapes) != 1:
        return False
    request, allocatable = need.request[0], snapshot.nodes.allocatable
    asked = np.flatnonzero(request > 0).tolist()

    def take_two(some: slice) -> bool:
        takes = allowed[0, some].copy()
        for resource in asked:
            takes &= allocatable[some, resource] >= 2 * request[resource]
        return bool(takes.any())

    return not (take_two(slice(_SAMPLE)) or take_two(slice(_SAMPLE, None)))  # mostly nodes are alike


def node_rank(snapshot: Snapshot, need: Need, candidate: Bools, lost_work: Floats, policy: Longs) -> Longs:
    """int64[G]: rank of the cheapest node that each podgroup's candidates (bool[M], by entry) hold.

    Nodes are compared by shares of gangs that break; then by the number of victims of each policy rank, the highest
    rank first; then by their work. Tasks that hold nothing that the gang asks for do not count.
    """
    groups, running, placed = snapshot.podgroups, snapshot.counts.running, snapshot.placed
    rigid = (groups.min_available > 1) & (snapshot.counts.ready == groups.min_available)
    share = np.where(rigid, 1.0 / np.maximum(running, 1), 0.0)
    unit = in_units(snapshot.shapes.request, needed_by(need.total))
    some = _Candidates(snapshot.occupancy.start, candidate, placed.podgroup, placed.shape, unit)
    level = policy - policy.min(initial=0)
    if level.max(initial=0) > _MOST_LEVELS:
        level = dense_rank(policy)
    gangs, work, counts = _summed(some, share, lost_work, level, int(level.max(initial=0)) + 1)
    shares = np.rint(gangs * _SHARE_STEPS).astype(np.int64)  # integers are sorted sooner
    return _lowest(some, total_rank(shares, *counts.T[::-1], np.round(work, 9)), len(groups))


@kernel
def _summed(
    some: _Candidates, share: Floats, lost_work: Floats, level: Longs, levels: int
) -> tuple[Floats, Floats, Counts]:
    """Per node the shares of gangs that break, the work, and the number of victims of each level: int32[N, levels]."""
    start, candidate, podgroup, shape, unit_of = some.start, some.candidate, some.podgroup, some.shape, some.unit
    nodes = len(start) - 1
    gangs, work, counts = np.zeros(nodes), np.zeros(nodes), np.zeros((nodes, levels), np.int32)
    for node in range(nodes):
        gang, lost = 0.0, 0.0
        for entry in range(start[node], start[node + 1]):  # without a branch on what candidates hold
            unit, group = unit_of[np.uint32(shape[entry])] * candidate[entry], np.uint32(podgroup[entry])
            gang += share[group] * (unit > 0)
            lost += unit * lost_work[group]
            counts[node, level[group]] += unit > 0
        gangs[node], work[node] = gang, lost
    return gangs, work, counts


@kernel
def _lowest(some: _Candidates, rank: Longs, groups: int) -> Longs:
    """int64[G]: the lowest rank of a node with victims of each podgroup; the number of nodes if there are none."""
    start, candidate, podgroup, shape, unit = some.start, some.candidate, some.podgroup, some.shape, some.unit
    result = np.full(groups, len(rank), np.int64)
    for node in range(len(rank)):
        mine = rank[node]
        for entry in range(start[node], start[node + 1]):
            counts, group = unit[np.uint32(shape[entry])] * candidate[entry] > 0, np.uint32(podgroup[entry])
            result[group] = min(result[group], mine if counts else len(rank))
    return result
