"""The nodeorder plugin: spread or fill, keep resources in balance, avoid soft taints (formulas of kube-scheduler)."""

from typing import ClassVar

from pipeline.cluster.arrays import Floats, Longs, Rows
from pipeline.cluster.counted.node_scores import ScoreTerms, score_terms, scores
from pipeline.plugins.arguments import NUMBER
from pipeline.plugins.extension_points import ScoresNodes, TellsScores
from pipeline.plugins.plugin import Context, Plugin
from pipeline.policy import PluginSetting


class NodeOrder(Plugin, ScoresNodes, TellsScores):
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

    def node_score(self, shape: int, used: Longs, rows: Rows) -> Floats:
        """float64[M]; what does not exist on a node counts as full."""
        snapshot = self._snapshot
        return scores(self._terms, snapshot.shapes.request[shape], used, snapshot.nodes.allocatable, rows)

    def score_terms(self) -> ScoreTerms:
        return self._terms
