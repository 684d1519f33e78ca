"""The binpack plugin: fuller nodes first, so that whole nodes and domains stay free."""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from pipeline.cluster.arrays import Floats, Longs, Rows
from pipeline.cluster.resources import CPU, MEMORY, PODS
from pipeline.plugins.arguments import NUMBER, WEIGHTS
from pipeline.plugins.extension_points import ScoresNodes
from pipeline.plugins.plugin import Context, Plugin
from pipeline.policy import PluginSetting

_NONE: Mapping[str, float] = {}


class Binpack(Plugin, ScoresNodes):
    """Scores a node by how full the task would make it, weighted by resource (Volcano's formula, 0 to 100).

    Resources other than cpu and memory have weight 1; with the argument ``resources`` only those that it lists count,
    at the weights that it gives, as in Volcano.
    """

    ARGUMENTS: ClassVar = {"cpu": NUMBER, "memory": NUMBER, "weight": NUMBER, "resources": WEIGHTS}

    def __init__(self, context: Context, setting: PluginSetting) -> None:
        super().__init__(context, setting)
        others, listed = 0.0 if "resources" in dict(setting.arguments) else 1.0, setting.argument("resources", _NONE)
        weight = np.array([listed.get(name, others) for name in context.snapshot.vocabulary.resources], np.float64)
        weight[CPU] = setting.argument("cpu", 1.0)
        weight[MEMORY] = setting.argument("memory", 1.0)
        weight[PODS] = 0.0
        self._weight = weight
        self._scale = setting.argument("weight", 1.0)

    def node_score(self, shape: int, used: Longs, rows: Rows) -> Floats:
        """float64[M]: 100 where every resource asked for would be used up, 0 where the task does not fit at all."""
        request = self._snapshot.shapes.request[shape]
        counts = np.flatnonzero((request > 0) & (self._weight > 0))
        if len(counts) == 0:
            return np.zeros(len(rows))
        score, within = np.zeros(len(rows)), np.ones(len(rows), bool)
        for at in counts.tolist():  # a long column at a time is several times as fast as many short rows
            there = self._snapshot.nodes.allocatable[rows, at]
            full = np.divide(used[:, at] + request[at], there, out=np.full(len(rows), np.inf), where=there > 0)
            score += full * self._weight[at]
            within &= full <= 1
        return np.where(within, score / self._weight[counts].sum() * 100 * self._scale, 0.0)
