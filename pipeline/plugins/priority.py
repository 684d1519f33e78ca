"""The priority plugin: important work first, and preemption only downwards."""

import numpy as np

from pipeline.attempt import Purpose
from pipeline.cluster.arrays import Bools, Longs
from pipeline.plugins.protocols import Preemptor, Situation
from pipeline.policy import PluginSetting, Point


class Priority:
    """Orders by priority; a preemptor may take strictly lower priority only."""

    def __init__(self, situation: Situation, setting: PluginSetting) -> None:
        self._snapshot = situation.snapshot

    def job_order(self) -> Longs:
        """Higher priority first."""
        return -self._snapshot.podgroups.priority.astype(np.int64)

    def task_order(self) -> Longs:
        """Higher priority first."""
        return -self._snapshot.tasks.priority.astype(np.int64)

    def job_state(self, point: str) -> Bools | None:
        """Starving while any task waits without a promise; pipelined whenever something was promised or runs."""
        standing = self._snapshot.standing
        if point == Point.JOB_STARVING:
            return np.asarray(standing.pending > 0)
        return None

    def evictable(self, preemptor: Preemptor) -> Bools:
        """In preempt, tasks of podgroups of strictly lower priority; in reclaim priority has no say."""
        groups = self._snapshot.podgroups
        if preemptor.purpose is not Purpose.PREEMPT:
            return np.ones(len(self._snapshot.tasks), bool)
        ceiling = groups.priority[list(preemptor.podgroups)].min()
        return np.asarray((groups.priority < ceiling)[self._snapshot.tasks.podgroup])
