"""The conformance plugin: what the cluster itself needs is never a victim."""

from pipeline.cluster.arrays import Bools
from pipeline.plugins.extension_points import ShieldsTasks
from pipeline.plugins.plugin import Plugin, Preemptor, Protects


class Conformance(Plugin, ShieldsTasks):
    """Shields tasks of system-critical priority classes and of the namespace ``kube-system``."""

    PROTECTS = Protects.CRITICAL

    def evictable(self, preemptor: Preemptor) -> Bools:
        """bool[T]: every task that is not critical."""
        return ~self._snapshot.tasks.critical
