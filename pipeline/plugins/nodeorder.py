"""The nodeorder plugin: spread or fill, keep resources in balance, avoid soft taints (formulas of kube-scheduler)."""

from typing import ClassVar

from pipeline.cluster.counted.node_scores import ScoreTerms, score_terms
from pipeline.plugins.arguments import NUMBER
from pipeline.plugins.extension_points import ScoresNodes
from pipeline.plugins.plugin import Context, Plugin
from pipeline.policy import PluginSetting


class NodeOrder(Plugin, ScoresNodes):
    """Weighted sum of least and most requested and balanced allocation, each 0 to 100, over cpu and memory."""

    ARGUMENTS: ClassVar = {"least_requested": NUMBER, "most_requested": NUMBER, "balanced": NUMBER}

    def __init__(self, context: Context, setting: PluginSetting) -> None:
        super().__init__(context, setting)
        self._terms = score_terms(
            len(context.snapshot.vocabulary.resources),
            least=setting.argument("least_requested", 1.0),
            most=setting.argument("most_requested", 0.0),
            balanced=setting.argument("balanced", 1.0),
        )

    def score_terms(self, shape: int) -> ScoreTerms:
        return self._terms
