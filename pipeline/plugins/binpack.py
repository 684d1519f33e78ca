"""The binpack plugin: fuller nodes first, so that whole nodes and domains stay free."""

import numpy as np

from pipeline.cluster.arrays import Floats, Longs, Rows
from pipeline.cluster.resources import CPU, MEMORY, PODS
from pipeline.plugins.extension_points import Context
from pipeline.policy import PluginSetting


class Binpack:
    """Scores a node by how full the task would make it, weighted by resource (Volcano's formula, 0 to 100).

    Resources other than cpu and memory count 1 each; with the argument ``resources`` those that it lists count what it
    says and the others nothing, as in Volcano.
    """

    def __init__(self, context: Context, setting: PluginSetting) -> None:
        self._snapshot = context.snapshot
        resources, listed = context.snapshot.vocabulary.resources, setting.argument("resources", None)
        weight = np.ones(len(resources))
        if listed is not None:
            weight[:] = [float(listed.get(name, 0)) for name in resources]
        weight[CPU] = float(setting.argument("cpu", 1))
        weight[MEMORY] = float(setting.argument("memory", 1))
        weight[PODS] = 0.0
        self._weight = weight
        self._scale = float(setting.argument("weight", 1))

    def node_score(self, shape: int, used: Longs, rows: Rows) -> Floats:
        """float64[M]: 100 where every resource asked for would be used up, 0 where the task does not fit at all."""
        request = self._snapshot.shapes.request[shape]
        allocatable = self._snapshot.nodes.allocatable[rows]
        counts = (request > 0) & (self._weight > 0)
        if not counts.any():
            return np.zeros(len(rows))
        full = np.divide(used + request, allocatable, out=np.full(used.shape, np.inf), where=allocatable > 0)[:, counts]
        score = (full * self._weight[counts]).sum(axis=1) / self._weight[counts].sum()
        return np.where((full <= 1).all(axis=1), score * 100 * self._scale, 0.0)
