"""Trying one task on one node with some of its tasks gone: simulate functions as values.

``removing`` and ``returning`` make other what-ifs; the questions are pure functions of a what-if. A task that returns
comes back to exactly what it held, its card included, so that a victim that was needed stays needed ("Preempt Action
Support Topology", story 3).
"""

from dataclasses import dataclass

import numpy as np

from pipeline.cluster.arrays import NONE, Longs, Rows, frozen
from pipeline.cluster.cards import fits_card, freed_on_cards
from pipeline.cluster.resources import fits
from pipeline.cluster.rules.anti_affinity import concerns, exclusions
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.what_if import WhatIf
from pipeline.plugins.host import Host
from pipeline.records import replace


@dataclass(frozen=True)
class NodeWhatIf:
    """A pending task on a node, as if some tasks had gone.

    Attributes
    ----------
    host
        Of the snapshot in which no task has gone yet.
    task, node
        Rows.
    leaving: int64[V]
        Tasks of the node that would be evicted.
    released: int64[W]
        Waiting tasks whose nominations to the node would be withdrawn.
    """

    host: Host
    task: int
    node: int
    leaving: Rows
    released: Rows

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot in which no task has gone."""
        return self.host.context.snapshot

    @property
    def request(self) -> Longs:
        """int64[R]: what the task asks for."""
        request: Longs = self.snapshot.shapes.request[self.snapshot.tasks.shape[self.task]]
        return request

    @property
    def on_card(self) -> int:
        """How much of one card the task asks for."""
        return int(self.snapshot.shapes.on_card[self.snapshot.tasks.shape[self.task]])

    @property
    def gone(self) -> Rows:
        """int64[V + W]: all tasks that leave or are released."""
        return np.concatenate([self.leaving, self.released])

    @property
    def cards(self) -> Longs:
        """int64[D]: what each card of the node will have free."""
        free = self.snapshot.card_room.future_of(np.array([self.node]))
        freed_on_cards(self.snapshot.tasks, self.snapshot.shapes, self.gone, self.node, free)
        return np.asarray(free[0])


def removing(what_if: NodeWhatIf, rows: Rows) -> NodeWhatIf:
    """The what-if with more tasks gone (``SimulateRemoveTask``)."""
    return replace(what_if, leaving=frozen(np.concatenate([what_if.leaving, rows]), np.int64))


def returning(what_if: NodeWhatIf, row: int) -> NodeWhatIf:
    """The what-if with one task back where it was (``SimulateAddTask``)."""
    return replace(what_if, leaving=frozen(what_if.leaving[what_if.leaving != row], np.int64))


def stands(what_if: NodeWhatIf) -> bool:
    """Whether the task can be placed: the node has the room and admits it, and its queue may take it.

    Room that is promised to other tasks counts as taken, unless it is released, and they repel as if they ran already.
    Asking again without them, as "Preempt Action Support Topology" does, would change nothing: no constraint here needs
    another task.
    """
    return has_room(what_if) and admitted(what_if) and allocatable(what_if)


def has_room(what_if: NodeWhatIf) -> bool:
    """Whether the node, and one of its cards, will have what the task asks for."""
    snapshot = what_if.snapshot
    freed = snapshot.shapes.request[snapshot.tasks.shape[what_if.gone]].sum(axis=0)
    if what_if.on_card and not fits_card(what_if.on_card, what_if.cards):
        return False
    return bool(fits(what_if.request, snapshot.room.future_of(np.array([what_if.node]))[0] + freed))


def admitted(what_if: NodeWhatIf) -> bool:
    """Whether no task that stays is repelled by the task or repels it (``SimulatePredicate``).

    What does not depend on other tasks (labels, taints) is checked before a node is tried.
    """
    snapshot = what_if.snapshot
    task = np.array([what_if.task])
    if not concerns(snapshot, task):
        return True
    kind = snapshot.shapes.constraint[snapshot.tasks.shape[task]], snapshot.tasks.label_set[task]
    return not exclusions(snapshot, *kind, what_if.gone).excluded[0, what_if.node]


def allocatable(what_if: NodeWhatIf) -> bool:
    """Whether the task's queue may take it (``SimulateAllocatable``); evictions never narrow a queue."""
    snapshot = what_if.snapshot
    queue = int(snapshot.podgroups.queue[snapshot.tasks.podgroup[what_if.task]])
    if fits(what_if.request, what_if.host.headroom[queue]):
        return True
    if len(what_if.gone) == 0:
        return False
    withdrawn = np.full(len(what_if.released), NONE, np.int64)
    gone = WhatIf.of(snapshot).evicting(what_if.leaving).nominating(what_if.released, withdrawn)
    return bool(fits(what_if.request, what_if.host.on(gone, what_if.leaving).headroom[queue]))
