"""Which candidates of one node go together for a waiting task, by the plugins' votes.

A vote spends what a podgroup, queue or budget can spare on the first candidates, which may be too small. Where it
leaves too little room, other sets of candidates are looked at that may go together (upstream misses these places).
"""

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, Bools, Rows
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Preemptor
from pipeline.policy import ExtensionPoint
from pipeline.solvers.tasks.what_if import NodeWhatIf, has_room, removing, stands

#: How many sets of candidates are looked at in all for a podgroup, where a vote leaves too little room.
_SETS = 4096


class Withheld:
    """Nodes on which tasks of one kind do not fit beside the candidates that plugins withhold, as found so far.

    Each place that is taken for such a task takes from victims' podgroups, queues and budgets. A vote that refuses a
    candidate then goes on refusing it, so a node that was found is not asked about again for tasks of the same kind.

    Attributes
    ----------
    sets
        How many more sets of candidates are looked at.
    """

    def __init__(self, nodes: int) -> None:
        self._nodes, self.sets = nodes, _SETS
        self._found: dict[tuple[Hashable, int, int, bool], Bools] = {}

    def of(self, host: Host, task: int, rule: Hashable) -> Bools:
        """bool[N]: the nodes for tasks of this one's kind; the search writes into it."""
        tasks = host.context.snapshot.tasks
        kind = rule, int(tasks.shape[task]), int(tasks.priority[task]), bool(tasks.may_preempt[task])
        return self._found.setdefault(kind, np.zeros(self._nodes, bool))


@dataclass(frozen=True)
class NodeCandidates:
    """The candidates of a node, for one task.

    Attributes
    ----------
    point
        Where the plugins are asked.
    withheld: bool[N]
        Of ``known``, the nodes for tasks of this one's kind; written into.
    """

    host: Host
    preemptor: Preemptor
    point: ExtensionPoint
    known: Withheld
    withheld: Bools

    def leaving(self, untouched: NodeWhatIf, rows: Rows) -> NodeWhatIf | None:
        """The node without candidates that may go together and make room, in victim order; None if there are none."""
        may = self._vote(rows)
        all_gone = removing(untouched, rows[may])
        if stands(all_gone):
            return all_gone
        if not may.all() and self._vote(np.concatenate([rows[~may], rows[may]]))[: int((~may).sum())].any():
            return self._other_set(untouched, rows) if stands(removing(untouched, rows)) else None
        self.withheld[untouched.node] = not has_room(all_gone)  # none of the others may go even alone
        return None

    def _other_set(self, untouched: NodeWhatIf, rows: Rows) -> NodeWhatIf | None:
        """The same by trying one set after the other; of two sets the one with the earlier candidates comes first."""
        todo, roomy = [(NO_ROWS, 0)], False
        while todo and self.known.sets > 0:
            self.known.sets -= 1
            chosen, at = todo.pop()
            gone = removing(untouched, chosen)
            if stands(gone):
                return gone
            roomy |= has_room(gone)
            if at == len(rows) or not has_room(removing(gone, rows[at:])):
                continue
            todo.append((chosen, at + 1))
            more = np.append(chosen, rows[at])
            if self._vote(more).all():
                todo.append((more, at + 1))
        self.withheld[untouched.node] = not roomy
        return None

    def _vote(self, rows: Rows) -> Bools:
        """bool[C]: which of the ordered candidates may go together."""
        return self.host.task_victims(self.preemptor, rows, self.point)
