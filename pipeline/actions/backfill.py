"""Backfill: tasks that ask for nothing but a pod run wherever they may."""

import numpy as np

from pipeline.actions.progress import Progress
from pipeline.cluster.arrays import NONE, Rows, is_among, mask_of
from pipeline.cluster.rules.gang_groups import gang_groups
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import PENDING
from pipeline.decision.statement import statement
from pipeline.placement.domains import with_required_level
from pipeline.placement.layout.by_score.scored import ScoredPlacement
from pipeline.placement.layout.parts import tasks_of_part
from pipeline.placement.serving_order import in_serving_order
from pipeline.plugins.host import Host


def backfill(progress: Progress) -> Progress:
    """Bind every best-effort task of a podgroup that is ready to the best node that takes another pod.

    They go by the order of queues, then of podgroups, then of tasks. Starts that are held back are left out, and
    podgroups of a gang group that is not ready as a whole.
    """
    host, snapshot = progress.host, progress.snapshot
    if not snapshot.counts.pending_best_effort.any():
        return progress
    tasks = snapshot.tasks
    waits = (tasks.status == PENDING) & tasks.best_effort & ~tasks.gated & (tasks.nominated == NONE)
    ready = host.valid & host.ready
    may = ready.copy()
    may[list(progress.held_back.podgroups)] = False
    for podgroup, gang_group in snapshot.once(gang_groups).gang_group.items():
        may[podgroup] &= ready[list(gang_group)].all()
    rows = np.flatnonzero(waits & may[tasks.podgroup])
    if len(rows) == 0:
        return progress
    rows = _in_turn(host, rows)
    placement = ScoredPlacement(host, rows)
    # Where a task with a required level may lie depends on the one before it.
    bound = snapshot.once(with_required_level)[tasks.podgroup[rows]]
    for run in placement.runs(np.arange(len(rows))):
        apart = bound[run[1:]] | bound[run[:-1]]  # each such task by itself, others of the run together
        for some in np.split(run, np.flatnonzero(apart) + 1):
            any(placement.place(some, first, last) for first, last in _regions_of(snapshot, placement, int(some[0])))
    placed = placement.now
    if not placed.any():
        return progress
    return progress.decided(statement("backfill", bound=rows[placed], bound_node=placement.node[placed]))


def _in_turn(host: Host, rows: Rows) -> Rows:
    """Some tasks by the order in which their podgroups are served, each podgroup's in its own order."""
    snapshot = host.context.snapshot
    podgroup = snapshot.tasks.podgroup[rows]
    turn = np.zeros(len(snapshot.podgroups), np.int64)
    for at, gang_group in enumerate(in_serving_order(host, mask_of(podgroup, len(turn)))):
        turn[list(gang_group)] = at
    return rows[np.lexsort((host.task_ranks(rows), host.job_rank[podgroup], turn[podgroup]))]


def _regions_of(snapshot: Snapshot, placement: ScoredPlacement, task: int) -> list[tuple[int, int]]:
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
        met = [(max(a, c), min(b, d)) for a, b in regions for c, d in topology.slices_of(rows)]
        regions = [(first, last) for first, last in met if first < last]
    return regions


def _nodes_of(snapshot: Snapshot, placement: ScoredPlacement, podgroup: int, part: int) -> Rows:
    """Nodes that tasks of the podgroup, or of one of its subgroups, hold, are promised or were just given."""
    rows = tasks_of_part(snapshot, podgroup, part)
    just = is_among(rows, placement.tasks)
    got = placement.node[is_among(placement.tasks, rows)]
    nodes = np.concatenate([snapshot.place_of(rows[~just]), got])
    return np.asarray(nodes[nodes != NONE], np.int64)
