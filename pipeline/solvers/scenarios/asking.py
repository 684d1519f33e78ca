"""How much a unit asks for at once: all that its minima lack, else what it grows by next."""

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, NONE, Floats, Rows
from pipeline.cluster.rules.minimum import leaves_with
from pipeline.cluster.rules.reaching import Growing
from pipeline.cluster.snapshot import Snapshot
from pipeline.placement.need import Need, need_of, need_of_all
from pipeline.plugins.host import Host


def asked_for(host: Host, podgroups: tuple[int, ...]) -> Need:
    """The tasks for which room is sought now, all in the ``minimum``; none if no task waits that would be of use.

    A podgroup below its minima asks for all tasks that it lacks, of all its parts at once. One that has them grows by
    one task in each turn, so that others have turns in between; the task is the first of the part that is least above
    its minimum. A subgroup that the podgroup can spare asks for all that it lacks: with less it would not start.
    """
    snapshot = host.context.snapshot
    lacking = need_of(snapshot, podgroups, surplus=False)
    if lacking.minimum or lacking.short:
        return lacking
    waiting = need_of(snapshot, podgroups).tasks
    if len(waiting) == 0:
        return lacking
    return need_of_all(need_of(snapshot, podgroups, among=_next(host, snapshot, waiting)))


def _next(host: Host, snapshot: Snapshot, waiting: Rows) -> Rows:
    """int64[K]: the waiting tasks that come first, of one podgroup."""
    waiting = waiting[np.lexsort((host.task_ranks(waiting), _filled(snapshot, waiting)))]
    owner = snapshot.tasks.podgroup[waiting]
    for podgroup in dict.fromkeys(owner.tolist()):
        mine = waiting[owner == podgroup]
        part = snapshot.tasks.subgroup[mine]
        if (part == NONE).any():
            return np.asarray(mine[part == NONE][:1])
        first, last = snapshot.subgroup_start[podgroup : podgroup + 2].tolist()
        there = np.bincount(part - first, minlength=last - first)
        leaves = Growing(snapshot, podgroup).next_leaves(leaves_with(snapshot, podgroup, NO_ROWS), there)
        if leaves:
            return np.concatenate([mine[part == leaf][:count] for leaf, count in leaves])
    return NO_ROWS


def _filled(snapshot: Snapshot, rows: Rows) -> Floats:
    """float64[K]: ready tasks of each task's subgroup divided by its minimum; 0 for a task without a subgroup."""
    part, have = snapshot.tasks.subgroup[rows], snapshot.subgroup_counts
    if (part == NONE).all():
        return np.zeros(len(rows))
    active = have.ready[part] + have.waiting[part]
    least = np.maximum(snapshot.subgroups.min_available[part], 1)
    return np.where(part == NONE, 0.0, active / least)
