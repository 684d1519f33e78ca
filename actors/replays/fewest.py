"""The fewest victims of a class that any plan must take, where every worker takes a whole node: exact, by sorting.

Then the cost of clearing a node is its own, whatever else is cleared, and the cheapest nodes together are the cheapest
set. It is the yardstick of the replay and shares nothing with the search that it measures.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from actors.replays.openb import PRIORITIES, Placed, WaitingGang
from pipeline.cluster.arrays import Longs, Rows
from pipeline.cluster.tables import RUNNING

_KEPT = max(PRIORITIES.values())


@dataclass(frozen=True)
class Clearing:
    """What clearing enough nodes of one domain takes at least.

    Attributes
    ----------
    domain
        Row.
    nodes
        How many nodes could be cleared at all.
    classes
        Victims per quality of service, least important first: of the sets with the fewest of the most important
        class, the one with the fewest of the next, and so on. None if too few nodes can be cleared.
    """

    domain: int
    nodes: int
    classes: tuple[int, ...] | None


def fewest(placed: Placed, gang: WaitingGang, podgroup: int) -> list[Clearing]:
    """What every domain of the gang's level that has nodes of its model would take."""
    snapshot = placed.snapshot
    tasks, topology = snapshot.tasks, snapshot.topology
    rows = np.flatnonzero((tasks.status == RUNNING) & (placed.gpus > 0))
    fits = _nodes_that_could(placed, gang)
    level = int(snapshot.podgroups.required_level[podgroup])
    holds = np.zeros((len(snapshot.nodes), _KEPT + 1), np.int64)
    np.add.at(holds, (tasks.node[rows], np.minimum(tasks.priority[rows], _KEPT)), 1)
    clears = fits & (holds[:, gang.priority :].sum(axis=1) == 0)
    found = []
    for domain in topology.at_level(level).tolist():
        inside = np.arange(topology.start[domain], topology.stop[domain])
        if fits[inside].any():
            found.append(_cheapest(domain, inside[clears[inside]], holds, gang.workers))
    return found


def _nodes_that_could(placed: Placed, gang: WaitingGang) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """bool[N]: nodes of the model, with the devices that one worker takes."""
    words, nodes = placed.snapshot.vocabulary, placed.snapshot.nodes
    key = words.label_keys.index("model")
    model = words.label_values[key].index(gang.model) if gang.model in words.label_values[key] else None
    request = placed.snapshot.request[placed.snapshot.tasks_of(placed.gangs[0])[0]]
    return np.asarray((nodes.labels[:, key] == model) & (nodes.allocatable >= request).all(axis=1))


def _cheapest(domain: int, nodes: Rows, holds: Longs, wanted: int) -> Clearing:
    if len(nodes) < wanted:
        return Clearing(domain, len(nodes), None)
    chosen = nodes[np.lexsort((nodes, *holds[nodes].T))[:wanted]]
    return Clearing(domain, len(nodes), tuple(holds[chosen].sum(axis=0).tolist()))
