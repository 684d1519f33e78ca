"""The binpack plugin: fuller nodes first, so that whole nodes and domains stay free."""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from pipeline.cluster.counted.node_scores import ScoreTerms, score_terms
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
        self._terms = score_terms(len(weight), filling=setting.argument("weight", 1.0), weight=weight)

    def score_terms(self, shape: int) -> ScoreTerms:
        return self._terms
