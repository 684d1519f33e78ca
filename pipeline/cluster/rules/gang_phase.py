"""How far a podgroup has come, in Koordinator's words.

The phases are those that Koordinator's controller writes into the status of a PodGroup. There each is a step from the
one before; here they follow from the counts of tasks alone, so a podgroup whose tasks are lost goes back.
"""

from enum import Enum

import numpy as np

from pipeline.cluster.arrays import Longs
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import BOUND, FAILED, GONE, RUNNING, SUCCEEDED


class GangPhase(Enum):
    """The phases of a podgroup; Bound, Running and Succeeded tasks count as bound."""

    #: Fewer tasks than the minimum, or no minimum at all.
    PENDING = "Pending"
    #: Enough tasks, and none of them is bound.
    PRE_SCHEDULING = "PreScheduling"
    #: Some are bound, fewer than the minimum.
    SCHEDULING = "Scheduling"
    #: As many as the minimum are bound; they do not run yet.
    SCHEDULED = "Scheduled"
    #: As many as the minimum run or have succeeded.
    RUNNING = "Running"
    #: A task has failed, and those that run, have succeeded or failed reach the minimum.
    FAILED = "Failed"
    #: As many as the minimum have succeeded.
    FINISHED = "Finished"


def gang_phases(snapshot: Snapshot) -> list[GangPhase]:
    """The phase of each podgroup, by row."""
    least = snapshot.podgroups.min_available.astype(np.int64)
    known = least > 0
    members = _count(snapshot, tuple(range(GONE)))
    running, succeeded, failed = (_count(snapshot, (status,)) for status in (RUNNING, SUCCEEDED, FAILED))
    started = running + succeeded
    bound = started + _count(snapshot, (BOUND,))
    order = (
        (GangPhase.FINISHED, known & (succeeded >= least)),
        (GangPhase.FAILED, known & (failed > 0) & (failed + started >= least)),
        (GangPhase.RUNNING, known & (started >= least)),
        (GangPhase.SCHEDULED, known & (bound >= least)),
        (GangPhase.SCHEDULING, known & (members >= least) & (bound > 0)),
        (GangPhase.PRE_SCHEDULING, known & (members >= least)),
    )
    phases = [phase for phase, _ in order] + [GangPhase.PENDING]
    found = np.select([holds for _, holds in order], list(range(len(order))), len(order))
    return [phases[at] for at in found.tolist()]


def _count(snapshot: Snapshot, statuses: tuple[int, ...]) -> Longs:
    """int64[G]: tasks of each podgroup in one of the statuses."""
    tasks = snapshot.tasks
    return np.bincount(tasks.podgroup[np.isin(tasks.status, statuses)], minlength=len(snapshot.podgroups))
