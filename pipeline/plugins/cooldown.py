"""The cdp plugin: a task that started a moment ago is left alone for its cool-down."""

from functools import cached_property

import numpy as np

from pipeline.cluster.arrays import Bools, Floats
from pipeline.cluster.duration import seconds_of
from pipeline.plugins.protocols import Preemptor, Situation
from pipeline.policy import PluginSetting

#: Volcano's label; its value is a duration such as ``10m``.
COOLDOWN_LABEL = "volcano.sh/cooldown-time"


class CoolDown:
    """Shields tasks that started less than their cool-down ago, in every path (upstream: task by task only).

    A task bears its cool-down as a label; without one it has none. One that cannot be read never ends: in doubt a task
    is spared, as upstream does with a preemptable flag that it cannot read. The state has no start of single tasks: a
    task started no sooner than it was created, nor than its podgroup was first whole, and the later of the two counts;
    of a podgroup that was never whole, as far as is known, only the former does. That protects a gang which was evicted
    lately too: those who replace its tasks were created after the eviction.
    """

    def __init__(self, situation: Situation, setting: PluginSetting) -> None:
        self._snapshot, self._now = situation.snapshot, situation.now

    @cached_property
    def _cooldown(self) -> Floats:
        """float64[A]: seconds, by label set; 0 without a cool-down."""
        return np.array([_seconds(dict(labels)) for labels in self._snapshot.vocabulary.label_sets])

    def evictable(self, preemptor: Preemptor) -> Bools:
        """Every task whose cool-down is over."""
        tasks = self._snapshot.tasks
        if not self._cooldown.any():
            return np.broadcast_to(np.True_, len(tasks))
        begun = np.fmax(tasks.created, self._snapshot.podgroups.started[tasks.podgroup])
        cooldown = self._cooldown[tasks.label_set]
        return np.asarray((cooldown == 0) | (begun + cooldown <= self._now))


def _seconds(labels: dict[str, str]) -> float:
    stated = labels.get(COOLDOWN_LABEL)
    read = 0.0 if stated is None else seconds_of(stated)
    return np.inf if read is None else read
