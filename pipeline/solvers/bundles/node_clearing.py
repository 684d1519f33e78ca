"""Nodes by what it costs to clear them, for gangs whose tasks take whole nodes.

Where a node takes one task at most, room is made node by node: victims on a node that is not cleared completely are
evicted for nothing. Leading bundles by priority would empty all nodes a little. Leading bundles in the order of their
nodes, cheapest first, clear one node after the other; if each podgroup is on one node, the set is the cheapest, class
by class.
"""

from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import Bools, Floats, Ids, Longs, total_rank
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.price import in_units, needed_by
from pipeline.kernels import kernel
from pipeline.placement.need import Need

#: As many nodes are asked first whether they take two tasks.
_SAMPLE = 64


class _Candidates(NamedTuple):
    """Tasks, with what each takes of the need; those that take nothing do not count."""

    candidate: Bools
    node: Ids
    podgroup: Ids
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
    """int64[G]: rank of the cheapest node that each podgroup's candidates hold.

    Nodes are compared by shares of gangs that break; then by the number of victims of each policy rank, the highest
    rank first; then by their work. Tasks that hold nothing that the gang asks for do not count.
    """
    tasks, groups, running = snapshot.tasks, snapshot.podgroups, snapshot.counts.running
    rigid = (groups.min_available > 1) & (snapshot.counts.ready == groups.min_available)
    share = np.where(rigid, 1.0 / np.maximum(running, 1), 0.0)
    levels, level = np.unique(policy, return_inverse=True)
    unit = in_units(snapshot.shapes.request, needed_by(need.total))
    some = _Candidates(candidate, tasks.node, tasks.podgroup, unit[tasks.shape])
    gangs, work, counts = _summed(some, share, lost_work, level, len(snapshot.nodes), len(levels))
    rank = total_rank(np.round(gangs, 9), *counts[::-1], np.round(work, 9), np.arange(len(gangs)))
    return _lowest(some, rank, len(groups))


@kernel
def _summed(
    some: _Candidates, share: Floats, lost_work: Floats, level: Longs, nodes: int, levels: int
) -> tuple[Floats, Floats, Longs]:
    """Per node the shares of gangs that break, the work, and the number of victims of each level: int64[levels, N]."""
    gangs, work, counts = np.zeros(nodes), np.zeros(nodes), np.zeros((levels, nodes), np.int64)
    for task in range(len(some.node)):
        if some.candidate[task] and some.unit[task] > 0:
            node, group = some.node[task], some.podgroup[task]
            gangs[node] += share[group]
            work[node] += some.unit[task] * lost_work[group]
            counts[level[group], node] += 1
    return gangs, work, counts


@kernel
def _lowest(some: _Candidates, rank: Longs, groups: int) -> Longs:
    """int64[G]: the lowest rank of a node with victims of each podgroup; the number of nodes if there are none."""
    result = np.full(groups, len(rank), np.int64)
    for task in range(len(some.node)):
        if some.candidate[task] and some.unit[task] > 0:
            group = some.podgroup[task]
            result[group] = min(result[group], rank[some.node[task]])
    return result
