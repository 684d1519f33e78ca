"""The cdp plugin: a task that started a moment ago is left alone for its cool-down."""

import numpy as np

from pipeline.cluster.arrays import Bools
from pipeline.plugins.extension_points import Plugin, Preemptor, ShieldsTasks


class CoolDown(Plugin, ShieldsTasks):
    """Shields tasks that started less than their cool-down ago, in every path (upstream: task by task only).

    A task bears its cool-down as a label; without one it has none. One that cannot be read never ends: in doubt a task
    is spared, as upstream does with a preemptable flag that it cannot read. The state has no start of single tasks: a
    task is taken to have started when it was created or when its podgroup was first whole, whichever was later; where
    the latter is unknown, when it was created. That protects a gang which was evicted lately too: those who replace its
    tasks were created after the eviction.
    """

    def evictable(self, preemptor: Preemptor) -> Bools | bool:
        """Every task whose cool-down is over."""
        tasks, by_labels = self._snapshot.tasks, self._snapshot.vocabulary.cooldown_s
        if not by_labels.any():
            return True
        begun = np.fmax(tasks.created, self._snapshot.podgroups.started[tasks.podgroup])
        cooldown = by_labels[tasks.label_set]
        return np.asarray((cooldown == 0) | (begun + cooldown <= self._now))
