"""Where one task may lie, given the tasks of its podgroup and subgroups that have nodes already."""

import numpy as np

from pipeline.cluster.arrays import NONE, Rows, is_among
from pipeline.cluster.snapshot import Snapshot
from pipeline.placement.layout.parts import tasks_of_part
from pipeline.placement.layout.scored import ScoredPlacement


def regions_of(snapshot: Snapshot, placement: ScoredPlacement, task: int) -> list[tuple[int, int]]:
    """Slices of nodes in which every required level of the task's podgroup and subgroups is kept.

    Parameters
    ----------
    placement
        With the tasks that were placed so far.
    task
        Position in ``placement.tasks``.
    """
    tasks, table, topology = snapshot.tasks, snapshot.subgroups, snapshot.topology
    row = placement.tasks[task]
    podgroup, part = int(tasks.podgroup[row]), int(tasks.subgroup[row])
    required = [(int(snapshot.podgroups.required_level[podgroup]), NONE)]
    while part != NONE:
        required.append((int(table.required_level[part]), part))
        part = int(table.parent[part])
    regions = [(0, len(snapshot.nodes))]
    for level, owner in required:
        if level == NONE:
            continue
        rows = topology.holding(topology.at_level(level), _nodes_of(snapshot, placement, podgroup, owner))
        regions = _met(regions, topology.slices_of(rows))
    return regions


def _met(regions: list[tuple[int, int]], others: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The intersections of slices of two lists, pair by pair."""
    met = [(max(a, c), min(b, d)) for a, b in regions for c, d in others]
    return [(first, last) for first, last in met if first < last]


def _nodes_of(snapshot: Snapshot, placement: ScoredPlacement, podgroup: int, part: int) -> Rows:
    """Nodes that tasks of the podgroup, or of one of its subgroups, hold, are promised or were just given."""
    rows = tasks_of_part(snapshot, podgroup, part)
    just = is_among(rows, placement.tasks)
    got = placement.node[is_among(placement.tasks, rows)]
    nodes = np.concatenate([snapshot.place_of(rows[~just]), got])
    return np.asarray(nodes[nodes != NONE], np.int64)
