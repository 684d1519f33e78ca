"""The domains in which a preemptor may lie, before room is looked at.

The first plugin with an opinion decides, as in phase 1 of "Gang-Aware Preemption and Reclaim". A required level is
a hard constraint: without any plugin that reads topology no domain is offered.
"""

from collections.abc import Sequence

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, NONE, Bools, Rows, any_true
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.topology import ROOT
from pipeline.plugins.host import Host
from pipeline.policy import Purpose


def domains_of(host: Host, podgroups: tuple[int, ...], purpose: Purpose) -> Rows:
    """int64[D]: domain rows in which the podgroups may lie together, the preferred ones first."""
    offered = host.domains(podgroups, purpose)
    if offered is not None:
        return offered
    snapshot = host.context.snapshot
    if any_true(snapshot.podgroups.required_level[list(podgroups)] != NONE):
        return NO_ROWS
    return np.array([ROOT], np.int64)


def with_required_level(snapshot: Snapshot) -> Bools:
    """bool[G]: podgroups with a required level, their own or a subgroup's; ask for them with ``Snapshot.once``."""
    result = snapshot.podgroups.required_level != NONE
    result[snapshot.subgroups.podgroup[snapshot.subgroups.required_level != NONE]] = True
    return np.asarray(result)


def required_domains(snapshot: Snapshot, podgroups: Sequence[int]) -> Rows:
    """int64[D]: domains of the deepest level that any podgroup requires; all must lie together in one of them.

    If some of their tasks run or are promised nodes already, only domains that hold those.
    """
    level = int(snapshot.podgroups.required_level[list(podgroups)].max())
    if level == NONE:
        return np.array([ROOT], np.int64)
    return snapshot.topology.holding(snapshot.topology.at_level(level), held_nodes(snapshot, podgroups))


def held_nodes(snapshot: Snapshot, podgroups: Sequence[int]) -> Rows:
    """int64[K]: nodes that tasks of the podgroups hold or are promised."""
    nodes = snapshot.place_of(snapshot.tasks_of_all(np.array(podgroups))[0])
    return np.asarray(nodes[nodes != NONE], np.int64)
