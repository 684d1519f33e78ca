"""The fewest victims of each class, and the least lost work, of any plan for workers that each take a whole node.

The cost of clearing a node does not depend on what else is cleared. So the cheapest nodes together are the cheapest
set, and sorting finds it exactly. This is the yardstick of the replay; it shares nothing with the search that it
measures.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from actors.replays.openb import PRIORITIES, PlacedCluster, WaitingGang
from pipeline.cluster.arrays import Floats, Rows
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import RUNNING
from pipeline.decision.price import in_units, lost_work, needed_by

_KEPT = max(PRIORITIES.values())


@dataclass(frozen=True)
class Clearing:
    """The least that clearing enough nodes of one domain takes.

    Attributes
    ----------
    domain
        Row of the domain.
    nodes
        How many of its nodes could be cleared.
    classes
        Victims by quality of service, the least important first: of the sets with the fewest of the most important
        class, the one with the fewest of the next, and so on. None if too few nodes can be cleared.
    work
        Lost work by quality of service, as a price counts it, of the set that loses least in the same order; None if
        too few nodes can be cleared.
    """

    domain: int
    nodes: int
    classes: tuple[int, ...] | None
    work: tuple[float, ...] | None


def fewest(placed: PlacedCluster, gang: WaitingGang, podgroup: int) -> list[Clearing]:
    """The `Clearing` of each domain of the gang's level that has nodes of its model."""
    snapshot = placed.snapshot
    tasks, topology = snapshot.tasks, snapshot.topology
    rows = np.flatnonzero((tasks.status == RUNNING) & (placed.gpus > 0))
    fits = _nodes_that_could(placed, gang)
    level = int(snapshot.podgroups.required_level[podgroup])
    holds = np.zeros((len(snapshot.nodes), _KEPT + 1))
    loses = np.zeros_like(holds)
    at = tasks.node[rows], np.minimum(tasks.priority[rows], _KEPT)
    np.add.at(holds, at, 1)
    np.add.at(loses, at, _work(snapshot, podgroup, rows))
    clears = fits & (holds[:, gang.priority :].sum(axis=1) == 0)
    found = []
    for domain in topology.at_level(level).tolist():
        inside = np.arange(*topology.slice_of(domain))
        if fits[inside].any():
            nodes = inside[clears[inside]]
            classes, work = (_least(nodes, of, gang.workers) for of in (holds, loses))
            many = None if classes is None else tuple(int(one) for one in classes)
            found.append(Clearing(domain, len(nodes), many, work))
    return found


def _work(snapshot: Snapshot, podgroup: int, rows: Rows) -> Floats:
    """float64[K]: the work that each task (rows) loses, in units of the gang's request."""
    need, tasks = needed_by(snapshot.request[snapshot.tasks_of(podgroup)].sum(axis=0)), snapshot.tasks
    weight = lost_work(snapshot, 0.0)[tasks.podgroup[rows]]
    return np.asarray(in_units(snapshot.request[rows], need) * weight)


def _nodes_that_could(placed: PlacedCluster, gang: WaitingGang) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """bool[N]: nodes of the gang's model with enough devices for one worker."""
    words, nodes = placed.snapshot.vocabulary, placed.snapshot.nodes
    key = words.label_keys.index("model")
    model = words.label_values[key].index(gang.model) if gang.model in words.label_values[key] else None
    request = placed.snapshot.request[placed.snapshot.tasks_of(placed.gangs[0])[0]]
    return np.asarray((nodes.labels[:, key] == model) & (nodes.allocatable >= request).all(axis=1))


def _least(nodes: Rows, of: Floats, wanted: int) -> tuple[float, ...] | None:
    """The sums by class over the ``wanted`` nodes with the least of the most important class, then of the next."""
    if len(nodes) < wanted:
        return None
    chosen = nodes[np.lexsort((nodes, *of[nodes].T))[:wanted]]
    return tuple(of[chosen].sum(axis=0).tolist())
