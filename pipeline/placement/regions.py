"""Where one task may lie beside those of its podgroup and subgroups who are somewhere already."""

import numpy as np

from pipeline.cluster.arrays import NONE, Rows
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import BOUND, RUNNING
from pipeline.placement.scored import Board


def regions_of(snapshot: Snapshot, board: Board, task: int) -> list[tuple[int, int]]:
    """Slices of nodes in which every required level of the task's podgroup and subgroups is kept.

    Parameters
    ----------
    board
        With the tasks that were placed a moment ago.
    task
        Position in ``board.tasks``.
    """
    tasks, table, topology = snapshot.tasks, snapshot.subgroups, snapshot.topology
    row = board.tasks[task]
    podgroup, part = int(tasks.podgroup[row]), int(tasks.subgroup[row])
    required = [(int(snapshot.podgroups.required_level[podgroup]), NONE)]
    while part != NONE:
        required.append((int(table.required_level[part]), part))
        part = int(table.parent[part])
    regions = [(0, len(snapshot.nodes))]
    for level, owner in required:
        if level == NONE:
            continue
        nodes = _nodes_of(snapshot, board, podgroup, owner)
        fits = topology.level == level
        if len(nodes):
            fits &= (topology.start <= nodes.min()) & (topology.stop > nodes.max())
        domains = zip(topology.start[fits].tolist(), topology.stop[fits].tolist(), strict=True)
        regions = _met(regions, list(domains))
    return regions


def _met(regions: list[tuple[int, int]], others: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """What slices of two kinds have in common, pair by pair."""
    met = [(max(a, c), min(b, d)) for a, b in regions for c, d in others]
    return [(first, last) for first, last in met if first < last]


def _nodes_of(snapshot: Snapshot, board: Board, podgroup: int, part: int) -> Rows:
    """Nodes that tasks of the podgroup, or of one of its subgroups, hold, were promised or just got."""
    tasks, table = snapshot.tasks, snapshot.subgroups
    place = np.where((tasks.status == BOUND) | (tasks.status == RUNNING), tasks.node, tasks.nominated)
    place[board.tasks] = board.node
    rows = snapshot.tasks_of(podgroup)
    if part != NONE:
        inside = {part}
        for row in range(part + 1, int(snapshot.subgroup_start[podgroup + 1])):  # children come after their parents
            if int(table.parent[row]) in inside:
                inside.add(row)
        rows = rows[np.isin(tasks.subgroup[rows], sorted(inside))]
    return np.asarray(place[rows][place[rows] != NONE], np.int64)
