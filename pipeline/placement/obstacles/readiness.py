"""Tasks that a podgroup lacks before any room is looked at: they do not exist, or are gated."""

from collections.abc import Iterator

import numpy as np

from pipeline.cluster.arrays import NONE
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import PENDING
from pipeline.decision.explanation import Cause, Obstacle
from pipeline.placement.obstacles.question import Question


def lacking_tasks(asked: Question) -> Iterator[Obstacle]:
    """What the attempt's podgroups lack."""
    for podgroup in asked.attempt.podgroups:
        yield from lacking_of(asked.snapshot, podgroup)


def lacking_of(snapshot: Snapshot, podgroup: int) -> Iterator[Obstacle]:
    """Of one podgroup: too few tasks in all, in a role, or in a subgroup; and how many are gated."""
    groups, counts = snapshot.podgroups, snapshot.counts
    wanted, found = int(groups.min_available[podgroup]), int(counts.valid[podgroup])
    if found < wanted:
        yield Obstacle(Cause.TASKS, podgroup=podgroup, wanted=wanted, found=found)
    if snapshot.roles_bind[podgroup]:
        first, stop = snapshot.role_start[podgroup : podgroup + 2].tolist()
        least, valid = snapshot.roles.min_available, snapshot.role_counts.valid
        yield from _parts(
            snapshot, Cause.ROLE, podgroup, [(r, int(least[r]), int(valid[r])) for r in range(first, stop)]
        )
    first, stop = snapshot.subgroup_start[podgroup : podgroup + 2].tolist()
    least, valid = snapshot.subgroups.min_available, snapshot.subgroup_counts.valid
    yield from _parts(
        snapshot, Cause.SUBGROUP, podgroup, [(u, int(least[u]), int(valid[u])) for u in range(first, stop)]
    )
    rows, tasks = snapshot.tasks_of(podgroup), snapshot.tasks
    gated = rows[tasks.gated[rows] & (tasks.status[rows] == PENDING) & (tasks.nominated[rows] == NONE)]
    if len(gated):
        lifted = max(wanted - (found - len(gated)), 1)
        yield Obstacle(Cause.GATED, podgroup=podgroup, task=int(gated[0]), wanted=lifted, found=len(gated))


def _parts(snapshot: Snapshot, cause: Cause, podgroup: int, parts: list[tuple[int, int, int]]) -> Iterator[Obstacle]:
    """Roles or subgroups (row, minimum, tasks) that have too few; a task of it stands for each."""
    rows = snapshot.tasks_of(podgroup)
    owner = (snapshot.tasks.role if cause is Cause.ROLE else snapshot.tasks.subgroup)[rows]
    for row, wanted, found in parts:
        if found < wanted:
            mine = rows[np.flatnonzero(owner == row)[:1]]
            task = int(mine[0]) if len(mine) else NONE
            yield Obstacle(cause, podgroup=podgroup, task=task, wanted=wanted, found=found)
