"""The overcommit plugin: admit a little more than the cluster can hold, not everything."""

import numpy as np

from pipeline.cluster.arrays import Bools
from pipeline.cluster.quota import committed, least_of
from pipeline.plugins.protocols import Opinion, Situation
from pipeline.policy import PluginSetting


class Overcommit:
    """Admits while the minimum resources of all that is admitted stay below the cluster times ``factor``."""

    def __init__(self, situation: Situation, setting: PluginSetting) -> None:
        self._snapshot = situation.snapshot
        self._factor = float(setting.argument("overcommit-factor", 1.2))

    def job_enqueued(self, podgroup: int, admitted: Bools) -> Opinion:
        """Reject what would go beyond; a podgroup that names no minimum is let in."""
        least = least_of(self._snapshot, podgroup)
        if not least.any():
            return Opinion.PERMIT
        total = committed(self._snapshot, admitted).sum(axis=0) + least
        asked = least > 0
        beyond = total > np.floor(self._snapshot.capacity * self._factor)
        return Opinion.REJECT if beyond[asked].any() else Opinion.PERMIT
