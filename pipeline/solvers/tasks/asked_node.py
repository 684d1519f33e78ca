"""A node whose candidates the plugins are asked about, where their quotas and limits cannot be counted in columns."""

from dataclasses import dataclass

from pipeline.cluster.arrays import Bools, Rows
from pipeline.cluster.resources import fits
from pipeline.cluster.what_if import WhatIf
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Preemptor
from pipeline.policy import ExtensionPoint
from pipeline.solvers.tasks.sweeping.one_node import NodeCase, count_fit, count_room


@dataclass(frozen=True)
class AskedNode:
    """A pending task on a node, as if some tasks had gone; see `one_node` for the questions.

    Attributes
    ----------
    host
        Of the state in which the tasks before have their places.
    point
        Where plugins are asked.
    case
        The node in columns.
    rows: int64[C]
        Task rows of the candidates.
    released: int64[W]
        Waiting tasks whose nominations to the node would be withdrawn.
    """

    host: Host
    state: WhatIf
    preemptor: Preemptor
    point: ExtensionPoint
    case: NodeCase
    rows: Rows
    released: Rows

    def vote(self, some: Rows) -> Bools:
        """bool[len(some)]: which candidates may go, each after those before it that may."""
        return self.host.task_victims(self.preemptor, self.rows[some], self.point)

    def has_room(self, some: Rows) -> bool:
        """Whether the node has what the task asks for once ``some`` have gone."""
        return count_room(self.case, some)

    def stands(self, some: Rows) -> bool:
        """Whether the task can be placed once ``some`` have gone, its queue included: it only gains by evictions."""
        if not count_fit(self.case, some):
            return False
        snapshot, request = self.state.snapshot, self.preemptor.request
        queue = int(snapshot.podgroups.queue[snapshot.tasks.podgroup[self.preemptor.task]])
        if fits(request, self.host.headroom[queue]):
            return True
        if len(some) + len(self.released) == 0:
            return False
        gone = self.rows[some]
        left = self.state.evicting(gone).withdrawing(self.released)
        return bool(fits(request, self.host.on(left, gone).headroom[queue]))
