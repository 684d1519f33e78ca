"""The drf plugin: dominant resource fairness among podgroups (Ghodsi et al. 2011)."""

import numpy as np

from pipeline.attempt import Purpose
from pipeline.cluster.arrays import Bools, Floats, Longs, Rows
from pipeline.plugins.protocols import Preemptor, Situation
from pipeline.policy import PluginSetting

#: Shares that differ by less are equal (Volcano's constant).
_EQUAL = 1e-6


class DominantShare:
    """Serves the podgroup with the smallest dominant share first."""

    def __init__(self, situation: Situation, setting: PluginSetting) -> None:
        self._snapshot = situation.snapshot
        self._whole = situation.snapshot.capacity

    def _share(self, held: Longs) -> Floats:
        """float64[...]: the largest part of any resource, for ``held`` int64[..., R]."""
        part = np.divide(held, self._whole, out=np.zeros(held.shape), where=self._whole > 0)
        dominant: Floats = part.max(axis=-1, initial=0.0)
        return dominant

    def job_order(self) -> Floats:
        """Smaller dominant share first."""
        return self._share(self._snapshot.podgroup_held)

    def spare(self, preemptor: Preemptor, rows: Rows) -> Bools | None:
        """In preempt, candidates whose podgroup keeps no smaller share than the preemptor gets."""
        if preemptor.purpose is not Purpose.PREEMPT:
            return None
        held = self._snapshot.podgroup_held
        mine = float(self._share(held[preemptor.podgroups[0]] + preemptor.request))
        left, result = held.copy(), np.zeros(len(rows), bool)
        for position, row in enumerate(rows.tolist()):
            owner = self._snapshot.tasks.podgroup[row]
            left[owner] -= self._snapshot.shapes.request[self._snapshot.tasks.shape[row]]
            theirs = float(self._share(left[owner]))
            result[position] = mine < theirs or abs(mine - theirs) <= _EQUAL
        return result
