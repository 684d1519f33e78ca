"""Nodes by what it costs to clear them, for gangs whose tasks take whole nodes.

Where a node takes one task at most, room is made node by node: victims on a node that is not cleared completely are
evicted for nothing. Leading bundles by priority would empty all nodes a little. Leading bundles in the order of their
nodes, cheapest first, clear one node after the other; if each podgroup is on one node, the set is the cheapest, class
by class.
"""

import numpy as np

from pipeline.cluster.arrays import Bools, Floats, Longs, dense_rank
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.price import in_units, needed_by
from pipeline.placement.need import Need


def takes_whole_nodes(snapshot: Snapshot, need: Need, allowed: Bools) -> bool:
    """Whether the gang's tasks are of one shape, and no allowed node takes two of them even if empty."""
    if len(need.shapes) != 1:
        return False
    takes_two = allowed[0].copy()
    for resource in np.flatnonzero(need.request[0] > 0).tolist():
        takes_two &= snapshot.nodes.allocatable[:, resource] >= 2 * need.request[0, resource]
    return not bool(takes_two.any())


def node_rank(snapshot: Snapshot, need: Need, candidate: Bools, lost_work: Floats, policy: Longs) -> Longs:
    """int64[G]: rank of the cheapest node that each podgroup's candidates hold.

    Nodes are compared by shares of gangs that break; then by the number of victims of each policy rank, the highest
    rank first; then by their work. Tasks that hold nothing that the gang asks for do not count.
    """
    tasks, groups = snapshot.tasks, snapshot.podgroups
    unit = in_units(snapshot.shapes.request, needed_by(need.total))
    rows = np.flatnonzero(candidate & (unit[tasks.shape] > 0))
    node, group = tasks.node[rows], tasks.podgroup[rows]
    running = snapshot.counts.running
    rigid = (groups.min_available > 1) & (snapshot.counts.ready == groups.min_available)
    many = len(snapshot.nodes)
    gangs = np.bincount(node, weights=np.where(rigid[group], 1.0 / np.maximum(running[group], 1), 0.0), minlength=many)
    work = np.bincount(node, weights=unit[tasks.shape[rows]] * lost_work[group], minlength=many)
    ranks, level = np.unique(policy[group], return_inverse=True)
    keys = [np.round(gangs, 9)]
    keys.extend(np.bincount(node[level == at], minlength=many) for at in range(len(ranks) - 1, -1, -1))
    rank = dense_rank(*keys, np.round(work, 9), np.arange(many))
    result = np.full(len(groups), many, np.int64)
    np.minimum.at(result, group, rank[node])
    return result
