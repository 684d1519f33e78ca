"""The minruntime plugin: what has just started runs for a while before others may take it."""

import numpy as np

from pipeline.cluster.arrays import Bools
from pipeline.plugins.extension_points import Plugin, Preemptor, ShieldsTasks
from pipeline.policy import Purpose


class MinimumRuntime(Plugin, ShieldsTasks):
    """Shields podgroups that were first whole less than their queue's minimum runtime ago.

    The queue says how long, apart for preempt and for reclaim. A podgroup that was never whole has not started: there
    is no work to protect.
    """

    def evictable(self, preemptor: Preemptor) -> Bools | bool:
        """Every task of a podgroup that ran long enough or never started."""
        queues, groups, tasks = self._snapshot.queues, self._snapshot.podgroups, self._snapshot.tasks
        preempts = preemptor.purpose is Purpose.PREEMPT
        least = queues.preempt_min_runtime_s if preempts else queues.reclaim_min_runtime_s
        if not least.any():
            return True
        young = self._now - groups.started < least[groups.queue]  # NaN is never less
        return np.asarray(~young[tasks.podgroup])
