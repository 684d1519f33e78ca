"""The plugin ``predicates``: a task runs only on nodes that its selectors, affinity and tolerations admit."""

from pipeline.cluster.arrays import Bools, Rows
from pipeline.cluster.constraints import allowed
from pipeline.plugins.extension_points import Context
from pipeline.policy import PluginSetting


class Predicates:
    """Anti-affinity depends on which tasks stay, so placement asks for it itself (`pipeline.cluster.anti_affinity`)."""

    def __init__(self, context: Context, setting: PluginSetting) -> None:
        self._snapshot = context.snapshot

    def allowed(self, shapes: Rows) -> Bools:
        """bool[S, N]: nodes that satisfy the constraints of each shape."""
        return allowed(self._snapshot, shapes)
