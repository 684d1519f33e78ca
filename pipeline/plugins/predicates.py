"""The plugin ``predicates``: a task runs only on nodes that its selectors, affinity and tolerations admit."""

from pipeline.cluster.arrays import Bools, Rows
from pipeline.cluster.rules.constraints import allowed
from pipeline.plugins.extension_points import FiltersNodes
from pipeline.plugins.plugin import Plugin


class Predicates(Plugin, FiltersNodes):
    """Anti-affinity depends on which tasks stay: placement asks `pipeline.cluster.rules.anti_affinity` itself."""

    def allowed(self, shapes: Rows) -> Bools:
        """bool[S, N]: nodes that satisfy the constraints of each shape."""
        return allowed(self._snapshot, shapes)
