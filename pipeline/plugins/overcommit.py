"""The overcommit plugin: admit a little more than the cluster can hold."""

from typing import ClassVar

import numpy as np

from pipeline.cluster.arrays import Bools
from pipeline.cluster.rules.quota import minimum_resources, unmet_minimum
from pipeline.plugins.arguments import NUMBER
from pipeline.plugins.extension_points import AdmitsJobs
from pipeline.plugins.plugin import Context, Opinion, Plugin
from pipeline.policy import PluginSetting

#: Upstream's default.
_FACTOR = 1.2


class Overcommit(Plugin, AdmitsJobs):
    """Admits while used room and what admitted podgroups may still take stay below the cluster times ``factor``.

    Nothing is elastic here; a factor below 1 is replaced by the default, as upstream does.
    """

    ARGUMENTS: ClassVar = {"overcommit-factor": NUMBER}

    def __init__(self, context: Context, setting: PluginSetting) -> None:
        super().__init__(context, setting)
        factor = setting.argument("overcommit-factor", _FACTOR)
        self._factor = factor if factor >= 1 else _FACTOR

    def job_enqueued(self, podgroup: int, admitted: Bools) -> Opinion:
        """Reject podgroups that would exceed it; a podgroup without minimum resources is admitted."""
        least = minimum_resources(self._snapshot, podgroup)
        room = self._snapshot.room
        total = (self._snapshot.nodes.allocatable - room.idle).sum(axis=0) + room.nominated.sum(axis=0)
        total = total + unmet_minimum(self._snapshot, admitted).sum(axis=0) + least
        asked = least > 0
        beyond = total > np.floor(self._snapshot.capacity * self._factor)
        return Opinion.REJECT if beyond[asked].any() else Opinion.PERMIT
