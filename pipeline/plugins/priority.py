"""The priority plugin: higher priority first, and preemption only of lower priority."""

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Longs, Rows
from pipeline.plugins.extension_points import FindsStarving, OrdersJobs, OrdersTasks, ShieldsTasks
from pipeline.plugins.plugin import OfPodgroups, Plugin, Preemptor, Protects
from pipeline.policy import Purpose


class Priority(Plugin, OrdersJobs, OrdersTasks, FindsStarving, ShieldsTasks):
    """Orders by priority; a preemptor may take strictly lower priority only."""

    PROTECTS = Protects.PRIORITY

    def job_order(self) -> Longs:
        """Key[G]: higher priority first."""
        return -self._snapshot.podgroups.priority.astype(np.int64)

    def task_order(self, rows: Rows) -> Longs:
        """Key[K]: higher priority first."""
        return -self._snapshot.tasks.priority.take(rows).astype(np.int64)

    def job_starving(self) -> Bools:
        """bool[G]: starving while any task waits without a promise."""
        return np.asarray(self._snapshot.counts.pending > 0)

    def evictable(self, preemptor: Preemptor) -> Bools | OfPodgroups | None:
        """In preempt, tasks of podgroups of strictly lower priority; in reclaim priority does not matter.

        A single task may also take tasks of its own podgroup of lower priority than itself.
        """
        groups, tasks = self._snapshot.podgroups, self._snapshot.tasks
        if preemptor.purpose is not Purpose.PREEMPT:
            return None
        ceiling = groups.priority[list(preemptor.podgroups)].min()
        lower = OfPodgroups(groups.priority < ceiling)
        if preemptor.task == NONE:
            return lower
        own = tasks.podgroup == tasks.podgroup[preemptor.task]
        return np.where(own, tasks.priority < tasks.priority[preemptor.task], lower.on(tasks.podgroup))
