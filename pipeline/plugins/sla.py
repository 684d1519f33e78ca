"""The sla plugin: a podgroup that has waited long enough is served."""

import re

import numpy as np

from pipeline.cluster.arrays import Bools, Floats
from pipeline.errors import PolicyRefused
from pipeline.plugins.protocols import Opinion, Situation
from pipeline.policy import PluginSetting

_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


def duration_s(text: str) -> float:
    """Seconds of a duration as Go writes it, such as ``1h2m3.5s``."""
    parts = re.findall(r"(\d+(?:\.\d+)?)(h|ms|us|ns|m|s)", text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise PolicyRefused(f"sla waiting_time: expected a duration such as 3m or 1h30m, found {text!r}")
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


class Sla:
    """Orders by deadline and admits whoever is past it; without ``waiting_time`` it has no opinion."""

    def __init__(self, situation: Situation, setting: PluginSetting) -> None:
        self._groups, self._now = situation.snapshot.podgroups, situation.now
        waiting = setting.argument("waiting_time", None)
        self._waiting = None if waiting is None else duration_s(str(waiting))

    def job_order(self) -> Floats:
        """Earlier deadline first."""
        return np.zeros(len(self._groups)) if self._waiting is None else self._groups.created + self._waiting

    def job_enqueued(self, podgroup: int, admitted: Bools) -> Opinion:
        """Permit what waited too long."""
        if self._waiting is None or self._groups.created[podgroup] + self._waiting > self._now:
            return Opinion.ABSTAIN
        return Opinion.PERMIT
