"""What a cycle leaves behind for each podgroup: scheduled or not and why, in numbers ("Gang Plugin", 6).

Derived from the snapshot after the cycle, so tasks that the cycle bound count as ready, as that account asks of those
that the running transaction has allocated. Upstream also counts tasks whose allocation was taken back with the rest of
their gang; here such an attempt leaves nothing behind. What was merely promised does not count as schedulable, and is
told apart.
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from pipeline.cluster.arrays import Bools, Counts
from pipeline.cluster.minimum import is_ready, is_valid, parts_valid
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import GONE, PENDING


class ConditionReason(StrEnum):
    """Why a podgroup is scheduled or not; the words are Volcano's."""

    READY = "tasks in gang are ready"
    TOO_FEW_OF_A_PART = "NotEnoughPodsOfTask"
    TOO_FEW = "NotEnoughTasks"
    NO_ROOM = "NotEnoughResources"


@dataclass(frozen=True)
class Condition:
    """One podgroup at the end of a cycle.

    Attributes
    ----------
    podgroup
        Row.
    scheduled
        Condition ``Scheduled``; else ``Unschedulable``.
    reason
        ``READY``; a part (role or subgroup) or the whole has too few tasks that could ever count; or there is no room.
    tasks, schedulable, promised
        Of its tasks how many there are, how many are ready, and how many wait for room that comes free.
    unready
        How many the minimum lacks, ``min_available`` less ``schedulable``, or the roles together if that is more.
    retried
        Whether the next cycle tries again: something still waits.
    """

    podgroup: int
    scheduled: bool
    reason: ConditionReason
    tasks: int
    schedulable: int
    promised: int
    unready: int
    retried: bool

    @property
    def kind(self) -> str:
        """The condition's type."""
        return "Scheduled" if self.scheduled else "Unschedulable"


@dataclass(frozen=True)
class Unscheduled:
    """The cycle's figures: tasks that minima lack, podgroups that are not scheduled, and those tried again."""

    unschedule_task_count: int
    unschedule_job_count: int
    job_retries: int


def conditions_of(snapshot: Snapshot) -> tuple[Condition, ...]:
    """The condition of every podgroup that is there and has tasks, by row."""
    standing, groups, tasks = snapshot.standing, snapshot.podgroups, snapshot.tasks
    count = np.bincount(tasks.podgroup[tasks.status != GONE], minlength=len(groups))
    waits = np.bincount(tasks.podgroup[tasks.status == PENDING], minlength=len(groups)) > 0
    ready, valid, parts = is_ready(snapshot), is_valid(snapshot), parts_valid(snapshot)
    unready = np.where(ready, 0, np.maximum(groups.min_available - standing.ready, _lacking_in_roles(snapshot)))
    return tuple(
        Condition(
            podgroup=row,
            scheduled=bool(ready[row]),
            reason=_reason(bool(ready[row]), bool(valid[row]), bool(parts[row])),
            tasks=int(count[row]),
            schedulable=int(standing.ready[row]),
            promised=int(standing.waiting[row]),
            unready=int(unready[row]),
            retried=bool(waits[row] and not ready[row]),
        )
        for row in np.flatnonzero(groups.alive & (count > 0)).tolist()
    )


def unscheduled(conditions: tuple[Condition, ...]) -> Unscheduled:
    """The figures of all conditions together."""
    left = [condition for condition in conditions if not condition.scheduled]
    return Unscheduled(
        sum(condition.unready for condition in left), len(left), sum(condition.retried for condition in left)
    )


def _reason(ready: bool, valid: bool, parts: bool) -> ConditionReason:
    if ready:
        return ConditionReason.READY
    if valid:
        return ConditionReason.NO_ROOM
    return ConditionReason.TOO_FEW if parts else ConditionReason.TOO_FEW_OF_A_PART


def _lacking_in_roles(snapshot: Snapshot) -> Counts:
    """int[G]: how many tasks the minima of roles lack together; 0 where they do not bind."""
    roles, have = snapshot.roles, snapshot.role_standing
    short = np.maximum(roles.min_available - have.ready, 0)
    lacking = np.bincount(roles.podgroup, weights=short, minlength=len(snapshot.podgroups))
    binding: Bools = snapshot.roles_bind
    return np.asarray(np.where(binding, lacking, 0), np.int32)
