"""The sla plugin: a podgroup that has waited long enough is served."""

import numpy as np

from pipeline.cluster.arrays import Bools, Floats
from pipeline.cluster.duration import seconds_of
from pipeline.errors import PolicyRefused
from pipeline.plugins.extension_points import Context, Opinion
from pipeline.policy import PluginSetting


class Sla:
    """Orders by deadline and admits whoever is past it; without ``waiting_time`` it has no opinion."""

    def __init__(self, context: Context, setting: PluginSetting) -> None:
        self._groups, self._now = context.snapshot.podgroups, context.now
        waiting = setting.argument("waiting_time", None)
        self._waiting = None if waiting is None else seconds_of(str(waiting))
        if waiting is not None and self._waiting is None:
            raise PolicyRefused(f"sla waiting_time: expected a duration such as 3m or 1h30m, found {waiting!r}")

    def job_order(self) -> Floats:
        """Earlier deadline first."""
        return np.zeros(len(self._groups)) if self._waiting is None else self._groups.created + self._waiting

    def job_enqueued(self, podgroup: int, admitted: Bools) -> Opinion:
        """Permit what waited too long."""
        if self._waiting is None or self._groups.created[podgroup] + self._waiting > self._now:
            return Opinion.ABSTAIN
        return Opinion.PERMIT
