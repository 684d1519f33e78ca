"""The cdp plugin: a task that started less than its cool-down ago is no victim."""

import numpy as np

from pipeline.cluster.arrays import Bools, Floats
from pipeline.plugins.extension_points import ShieldsTasks, TimesShields
from pipeline.plugins.plugin import Plugin, Preemptor, Protects


class CoolDown(Plugin, ShieldsTasks, TimesShields):
    """Shields tasks that started less than their cool-down ago, in every path (upstream: task by task only).

    A task has its cool-down as a label, without it none. A cool-down that cannot be read never ends: in doubt a task is
    protected, as upstream does with a preemptable flag that it cannot read. The state has no start time of single
    tasks: a task counts as started when it was created or when its podgroup was first whole, whichever was later; if
    the latter is unknown, when it was created. That also protects a gang that was evicted lately, since the tasks that
    replace its victims were created after the eviction.
    """

    PROTECTS = Protects.COOL_DOWN

    def evictable(self, preemptor: Preemptor) -> Bools | bool:
        """bool[T], or True for all tasks: every task whose cool-down is over."""
        tasks, by_labels = self._snapshot.tasks, self._snapshot.vocabulary.cooldown_s
        if not by_labels.any():
            return True
        return np.asarray((by_labels[tasks.label_set] == 0) | (self.over_at(preemptor) <= self._now))

    def over_at(self, preemptor: Preemptor) -> Floats:
        """float64[T]: when the cool-down of each task is over."""
        tasks = self._snapshot.tasks
        begun = np.fmax(tasks.created, self._snapshot.podgroups.started[tasks.podgroup])
        return np.asarray(begun + self._snapshot.vocabulary.cooldown_s[tasks.label_set])
