"""What a podgroup lacks before any room is looked at: tasks that do not exist or are gated, and admission."""

from collections.abc import Iterator

import numpy as np

from pipeline.cluster.arrays import NONE
from pipeline.cluster.rules.quota import minimum_resources
from pipeline.cluster.rules.reaching import lacking_in_subgroups
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import TERMINATING
from pipeline.decision.obstacle import Cause, Obstacle
from pipeline.placement.conditions import Condition, ConditionReason, holding
from pipeline.placement.reasons.question import Question
from pipeline.placement.reasons.quotas import closed_queues
from pipeline.plugins.extension_points import AdmitsJobs
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Opinion


def lacking_tasks(asked: Question) -> Iterator[Obstacle]:
    """What the attempt's podgroups lack; of one with tasks that are ending nothing, for others may replace them."""
    tasks = asked.snapshot.tasks
    for podgroup in asked.attempt.podgroups:
        if not (tasks.status[asked.snapshot.tasks_of(podgroup)] == TERMINATING).any():
            yield from lacking_of(asked.snapshot, podgroup)


def lacking_of(snapshot: Snapshot, podgroup: int) -> Iterator[Obstacle]:
    """What one podgroup lacks: tasks in all, in a role or in subgroups, and how many of its tasks are gated.

    Of subgroups that need not all be whole, those are named that lack least.
    """
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
    least, valid = snapshot.subgroups.min_available, snapshot.subgroup_counts.valid
    _, lacks, _ = lacking_in_subgroups(snapshot, np.array([podgroup]), valid)
    yield from _parts(snapshot, Cause.SUBGROUP, podgroup, [(u, int(least[u]), int(valid[u])) for u in lacks.tolist()])
    rows, tasks = snapshot.tasks_of(podgroup), snapshot.tasks
    gated = rows[tasks.gated[rows] & tasks.waits(rows, promised=False)]
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


def held_back(host: Host, condition: Condition) -> tuple[Obstacle, ...]:
    """Why a podgroup is not even searched for: its tasks are too few or gated, or it is not admitted.

    The same of others of its gang group, if it waits for them.
    """
    if condition.ending:  # evicted just now: the tasks that replace the evicted ones are not there yet
        return ()
    if condition.reason is ConditionReason.OTHERS:
        others = holding(host.context.snapshot, condition.podgroup)
        return tuple(lack for other, reason in others for lack in _lacks(host, other, reason))
    return tuple(_lacks(host, condition.podgroup, condition.reason))


def _lacks(host: Host, podgroup: int, reason: ConditionReason) -> Iterator[Obstacle]:
    """What a podgroup lacks by itself, if its condition's reason says that it lacks anything but room."""
    if reason is ConditionReason.NOT_ADMITTED:
        yield from _not_admitted(host, podgroup)
    elif reason in (ConditionReason.TOO_FEW, ConditionReason.TOO_FEW_OF_A_PART, ConditionReason.GATED):
        yield from lacking_of(host.context.snapshot, podgroup)


def _not_admitted(host: Host, podgroup: int) -> Iterator[Obstacle]:
    """Closed queues, else the plugins that reject it, with what its queue may still take of what it asks for."""
    snapshot = host.context.snapshot
    queue = int(snapshot.podgroups.queue[podgroup])
    closed = closed_queues(snapshot, queue)
    yield from closed
    if closed:
        return
    none_yet, least = np.zeros(len(snapshot.podgroups), bool), minimum_resources(snapshot, podgroup)
    room = np.minimum(np.maximum(host.headroom[queue], 0), snapshot.capacity)
    over = [(snapshot.vocabulary.resources[row], row) for row in np.flatnonzero(least > room).tolist()]
    for name, plugin in host.named(AdmitsJobs):
        if plugin.job_enqueued(podgroup, none_yet) is Opinion.REJECT:
            for what, row in over[:1]:
                wanted, found = float(least[row]), float(room[row])
                yield Obstacle(Cause.ADMISSION, name, queue, podgroup, what=what, wanted=wanted, found=found)
            if not over:
                yield Obstacle(Cause.ADMISSION, name, queue, podgroup)
