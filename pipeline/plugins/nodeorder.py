"""The nodeorder plugin: spread or fill, keep resources in balance, avoid soft taints (formulas of kube-scheduler)."""

from typing import ClassVar

import numpy as np

from pipeline.cluster.arrays import Floats, Longs, Rows
from pipeline.cluster.resources import CPU, MEMORY
from pipeline.plugins.arguments import NUMBER
from pipeline.plugins.extension_points import ScoresNodes
from pipeline.plugins.plugin import Context, Plugin
from pipeline.policy import PluginSetting


class NodeOrder(Plugin, ScoresNodes):
    """Weighted sum of least and most requested and balanced allocation, each 0 to 100, over cpu and memory."""

    ARGUMENTS: ClassVar = {"least_requested": NUMBER, "most_requested": NUMBER, "balanced": NUMBER}

    def __init__(self, context: Context, setting: PluginSetting) -> None:
        super().__init__(context, setting)
        self._least = setting.argument("least_requested", 1.0)
        self._most = setting.argument("most_requested", 0.0)
        self._balanced = setting.argument("balanced", 1.0)

    def node_score(self, shape: int, used: Longs, rows: Rows) -> Floats:
        """float64[M]; what does not exist on a node counts as full."""
        request, allocatable = self._snapshot.shapes.request[shape], self._snapshot.nodes.allocatable
        one, other = (_full(used[:, of] + request[of], allocatable[rows, of]) for of in (CPU, MEMORY))
        score = np.zeros(len(rows))
        if self._least:
            score += ((1 - np.minimum(one, 1)) + (1 - np.minimum(other, 1))) / 2 * 100 * self._least
        if self._most:
            score += (np.where(one <= 1, one, 0.0) + np.where(other <= 1, other, 0.0)) / 2 * 100 * self._most
        if self._balanced:  # of two numbers the standard deviation is half of their difference
            score += (1 - np.abs(np.minimum(one, 1) - np.minimum(other, 1)) / 2) * 100 * self._balanced
        return score


def _full(used: Longs, there: Longs) -> Floats:
    """float64[M]: which part is used of what is there."""
    return np.divide(used, there, out=np.ones(len(used)), where=there > 0)
