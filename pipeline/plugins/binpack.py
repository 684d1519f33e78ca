"""The binpack plugin: fuller nodes first, so that whole nodes and domains stay free."""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from pipeline.cluster.arrays import Floats, Longs, Rows
from pipeline.cluster.counted.node_scores import ScoreTerms, score_terms, scores
from pipeline.cluster.resources import CPU, MEMORY, PODS
from pipeline.plugins.arguments import NUMBER, WEIGHTS
from pipeline.plugins.extension_points import ScoresNodes, TellsScores
from pipeline.plugins.plugin import Context, Plugin
from pipeline.policy import PluginSetting

_NONE: Mapping[str, float] = {}


class Binpack(Plugin, ScoresNodes, TellsScores):
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
        self._terms = score_terms(len(weight), filling=setting.argument("weight", 1.0), weight=weight)

    def node_score(self, shape: int, used: Longs, rows: Rows) -> Floats:
        """float64[M]: 100 where every resource asked for would be used up, 0 where the task does not fit at all."""
        snapshot = self._snapshot
        return scores(self._terms, snapshot.shapes.request[shape], used, snapshot.nodes.allocatable, rows)

    def score_terms(self) -> ScoreTerms:
        return self._terms
