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
        request = self._snapshot.shapes.request[shape]
        counted = [CPU, MEMORY]
        allocatable = self._snapshot.nodes.allocatable[rows][:, counted]
        after = (used + request)[:, counted]
        full = np.divide(after, allocatable, out=np.ones(after.shape), where=allocatable > 0)
        within = np.where(full <= 1, full, 1.0)
        least = (1 - within).mean(axis=1) * 100
        most = np.where(full <= 1, full, 0.0).mean(axis=1) * 100
        balanced = (1 - within.std(axis=1)) * 100
        return np.asarray(least * self._least + most * self._most + balanced * self._balanced)
