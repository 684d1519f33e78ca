"""The elastic plugin: at equal priority, podgroups below their minimum first, then those at it, then those above."""

import numpy as np

from pipeline.cluster.arrays import Longs
from pipeline.cluster.rules.minima_met import minima_met
from pipeline.plugins.extension_points import OrdersJobs
from pipeline.plugins.plugin import Follows, Plugin


class Elastic(Plugin, OrdersJobs):
    """Orders podgroups by whether they have their minimum or more (KAI Scheduler's plugin of that name)."""

    JOB_ORDER_FOLLOWS = Follows.SURPLUS

    def job_order(self) -> Longs:
        """int64[G]: 0 below a minimum, 1 at it, 2 above; promised tasks count."""
        snapshot = self._snapshot
        held = snapshot.counts.ready + snapshot.counts.waiting
        parts, least = snapshot.subgroups, snapshot.podgroups.min_available
        if len(parts):
            of_parts = np.bincount(parts.podgroup, weights=parts.min_available, minlength=len(held))
            least = np.maximum(least, of_parts)
        return np.where(minima_met(snapshot).pipelined, 1 + (held > least), 0).astype(np.int64)
