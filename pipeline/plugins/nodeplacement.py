"""The nodeplacement plugin: fill nodes or spread over them, by devices for tasks that ask for some, else by cpu.

It does what KAI Scheduler's plugins `nodeplacement` and `resourcetype` do together: a task without devices also prefers
nodes without devices.
"""

from typing import ClassVar

from pipeline.cluster.arrays import Bools, mask_of
from pipeline.cluster.counted.node_scores import ScoreTerms, score_terms
from pipeline.cluster.resources import CPU, MEMORY, PODS
from pipeline.cluster.vocabulary import Vocabulary
from pipeline.plugins.arguments import choice
from pipeline.plugins.extension_points import ScoresNodes
from pipeline.plugins.plugin import Context, Plugin
from pipeline.policy import PluginSetting

#: Added score of nodes without devices for a task that needs none; the rest of the score is at most 9.
_FITTING_TYPE, _MOST = 10.0, 9.0
BINPACK, SPREAD = "binpack", "spread"


class NodePlacement(Plugin, ScoresNodes):
    """Scores nodes by the idle amount of the resource in question.

    With ``cpu_strategy`` tasks that ask for no devices are placed in another way than the others, as with the arguments
    `cpu` and `gpu` of KAI Scheduler's plugin.
    """

    ARGUMENTS: ClassVar = {"strategy": choice(BINPACK, SPREAD), "cpu_strategy": choice(BINPACK, SPREAD)}

    def __init__(self, context: Context, setting: PluginSetting) -> None:
        super().__init__(context, setting)
        strategy = setting.argument("strategy", BINPACK)
        self._spread, self._spread_plain = strategy == SPREAD, setting.argument("cpu_strategy", strategy) == SPREAD
        self._devices = context.snapshot.vocabulary.once(_devices)

    def score_terms(self, shape: int) -> ScoreTerms:
        """For binpack, the smallest idle amount is best; for spread, the largest idle part."""
        allocatable = self._snapshot.nodes.allocatable
        asked = (self._snapshot.shapes.request[shape] > 0) & self._devices
        plain = not asked.any()
        if plain:
            asked[CPU] = True
        spreads = self._spread_plain if plain else self._spread
        largest = 0 if spreads else int(allocatable[:, asked].sum(axis=1).max(initial=1))
        bare = _FITTING_TYPE if plain else 0.0
        return score_terms(len(asked), weight=asked, idle=_MOST, largest=largest, bare=bare, absent=self._devices)


def _devices(vocabulary: Vocabulary) -> Bools:
    """bool[R]: which resources are devices."""
    return ~mask_of([CPU, MEMORY, PODS], len(vocabulary.resources))
