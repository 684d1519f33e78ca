"""The sla plugin: a podgroup that has waited long enough is served."""

from typing import ClassVar

from pipeline.cluster.arrays import Bools, Floats
from pipeline.plugins.arguments import DURATION
from pipeline.plugins.extension_points import AdmitsJobs, OrdersJobs
from pipeline.plugins.plugin import Context, Opinion, Plugin
from pipeline.policy import PluginSetting

_FOR_EVER = float("inf")


class Sla(Plugin, OrdersJobs, AdmitsJobs):
    """Orders by deadline and admits podgroups past it; without ``waiting_time`` it has no opinion."""

    ARGUMENTS: ClassVar = {"waiting_time": DURATION}

    def __init__(self, context: Context, setting: PluginSetting) -> None:
        super().__init__(context, setting)
        self._waiting_s = setting.argument("waiting_time", _FOR_EVER)

    def job_order(self) -> Floats:
        """float64[G]: earlier deadline first."""
        return self._snapshot.podgroups.created + self._waiting_s

    def job_enqueued(self, podgroup: int, admitted: Bools) -> Opinion:
        """Permit a podgroup that waited too long."""
        deadline = self._snapshot.podgroups.created[podgroup] + self._waiting_s
        return Opinion.ABSTAIN if deadline > self._now else Opinion.PERMIT
