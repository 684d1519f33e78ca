"""The conformance plugin: what the cluster itself needs is never a victim."""

from pipeline.cluster.arrays import Bools
from pipeline.plugins.extension_points import Context, Preemptor
from pipeline.policy import PluginSetting


class Conformance:
    """Shields tasks of system-critical priority classes and of the namespace ``kube-system``."""

    def __init__(self, context: Context, setting: PluginSetting) -> None:
        self._snapshot = context.snapshot

    def evictable(self, preemptor: Preemptor) -> Bools:
        """Every task that is not critical."""
        return ~self._snapshot.tasks.critical
