"""The clock of a simulation. Evicted tasks end at once, or when their grace is over."""

from __future__ import annotations

import numpy as np

from actors.cluster_file.documents import ClusterDocument
from pipeline.cluster.arrays import Bools, Floats
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import TERMINATING

#: Seconds from one cycle to the next if tasks have a grace and no step was asked for.
STEP_S = 60.0


class SimulatedTime:
    """Time that passes from cycle to cycle. It stands still if no step was asked for and no task has a grace.

    Parameters
    ----------
    grace_s: float64[T]
        Seconds that each task takes to end; None: no task states any.
    step_s
        Seconds from one cycle to the next; None: none was asked for.
    """

    def __init__(self, now: float, grace_s: Floats | None, step_s: float | None) -> None:
        self.now = now
        self._grace_s = grace_s
        self._step_s = step_s if step_s is not None else 0.0 if grace_s is None else STEP_S
        self._told_at: Floats | None = None

    def ended(self, snapshot: Snapshot) -> Bools | None:
        """Advance to the next cycle; bool[T]: the tasks whose grace is over by then, or None if all end at once.

        A task that was Terminating from the start counts as evicted when the simulation began.
        """
        told_at, self.now = self.now, self.now + self._step_s
        if self._grace_s is None:
            return None
        before = np.full(len(self._grace_s), np.nan) if self._told_at is None else self._told_at
        known = np.where(np.isnan(before), told_at, before)
        self._told_at = np.where(snapshot.tasks.status == TERMINATING, known, np.nan)
        due = self._told_at + self._grace_s <= self.now
        self._told_at[due] = np.nan
        return np.asarray(due)


def grace_of(cluster: ClusterDocument) -> Floats | None:
    """float64[T]: the grace of every task in the order of the file, 0 if it states none; None if no task does."""
    if all(task.grace_s is None for podgroup in cluster.podgroups for task in podgroup.tasks.kinds):
        return None
    stated = [task.grace_s for podgroup in cluster.podgroups for task in podgroup.tasks for _ in task.expanded()]
    return np.array([grace or 0.0 for grace in stated], np.float64)
