"""How much a unit asks for at once: all that its minima lack, else one more task."""

import numpy as np

from pipeline.cluster.arrays import NONE, Floats, Rows, frozen
from pipeline.cluster.snapshot import Snapshot
from pipeline.placement.need import Need, need_of
from pipeline.plugins.host import Host
from pipeline.records import replace


def asked_for(host: Host, podgroups: tuple[int, ...]) -> Need:
    """The tasks for which room is sought now, all in the ``minimum``; none if no task waits.

    A podgroup below its minima asks for all tasks that it lacks, of all its parts at once. One that has them grows by
    one task in each turn, so that others have turns in between; the task is the first of the part that is least above
    its minimum.
    """
    snapshot = host.context.snapshot
    lacking = need_of(snapshot, podgroups, surplus=False)
    if lacking.minimum or lacking.short:
        return lacking
    need = need_of(snapshot, podgroups)
    return need if len(need.tasks) == 0 else _only(need, _next(host, snapshot, need.tasks))


def _next(host: Host, snapshot: Snapshot, waiting: Rows) -> int:
    """The position of the task that comes first."""
    return int(np.lexsort((host.task_ranks(waiting), _filled(snapshot, waiting)))[0])


def _filled(snapshot: Snapshot, rows: Rows) -> Floats:
    """float64[K]: ready tasks of each task's subgroup divided by its minimum; 0 for a task without a subgroup."""
    part, have = snapshot.tasks.subgroup[rows], snapshot.subgroup_counts
    if (part == NONE).all():
        return np.zeros(len(rows))
    active = have.ready[part] + have.waiting[part]
    least = np.maximum(snapshot.subgroups.min_available[part], 1)
    return np.where(part == NONE, 0.0, active / least)


def _only(need: Need, at: int) -> Need:
    """The need for one of its tasks."""
    shape = need.shape[at]
    return replace(
        need,
        tasks=frozen(need.tasks[at : at + 1], np.int64),
        minimum=1,
        shape=frozen([0], np.int32),
        shapes=frozen(need.shapes[shape : shape + 1], np.int64),
        request=frozen(need.request[shape : shape + 1], np.int64),
        count=frozen([1], np.int64),
        part=frozen(need.part[at : at + 1], np.int32),
    )
