"""Trying one task on one node with some of its tasks gone: simulate functions as values.

A trial is what would be if; ``removing`` and ``returning`` make other trials, the questions are pure functions of it.
Nothing moves when a task returns: it comes back to exactly what it held, its card included, so that a victim which was
needed stays needed ("Preempt Action Support Topology", story 3).
"""

from dataclasses import dataclass, replace

import numpy as np

from pipeline.cluster.arrays import NONE, Longs, Rows, frozen
from pipeline.cluster.cards import fits_card, freed_on_cards
from pipeline.cluster.resources import fits
from pipeline.cluster.rules.anti_affinity import exclusions, repels
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.what_if import WhatIf
from pipeline.plugins.host import Host


@dataclass(frozen=True)
class Trial:
    """A waiting task on a node, as if some tasks had gone.

    Attributes
    ----------
    host
        Of the snapshot in which nobody has gone yet.
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
        """With nobody gone."""
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
        """int64[V + W]: everybody who leaves or is released."""
        return np.concatenate([self.leaving, self.released])

    @property
    def cards(self) -> Longs:
        """int64[D]: what each card of the node will have free."""
        free = self.snapshot.card_room.future_of(np.array([self.node]))
        freed_on_cards(self.snapshot.tasks, self.snapshot.shapes, self.gone, self.node, free)
        return np.asarray(free[0])


def removing(trial: Trial, rows: Rows) -> Trial:
    """The trial with more tasks gone (``SimulateRemoveTask``)."""
    return replace(trial, leaving=frozen(np.concatenate([trial.leaving, rows]), np.int64))


def returning(trial: Trial, row: int) -> Trial:
    """The trial with one task back where it was (``SimulateAddTask``)."""
    return replace(trial, leaving=frozen(trial.leaving[trial.leaving != row], np.int64))


def stands(trial: Trial) -> bool:
    """Whether the task can be placed: the node has the room and admits it, and its queue may take it.

    Room that others were promised counts as taken, unless it was released, and they repel as if they ran already. To
    ask again without them, as the design does, would change nothing: no constraint here needs another task.
    """
    return has_room(trial) and admitted(trial) and allocatable(trial)


def has_room(trial: Trial) -> bool:
    """Whether the node, and one of its cards, will have what the task asks for."""
    snapshot = trial.snapshot
    freed = snapshot.shapes.request[snapshot.tasks.shape[trial.gone]].sum(axis=0)
    if trial.on_card and not fits_card(trial.on_card, trial.cards):
        return False
    return bool(fits(trial.request, snapshot.room.future_of(np.array([trial.node]))[0] + freed))


def admitted(trial: Trial) -> bool:
    """Whether no task that stays is repelled by the task or repels it (``SimulatePredicate``).

    What does not depend on who stays (labels, taints) is settled before a node is tried.
    """
    snapshot = trial.snapshot
    if not repels(snapshot):
        return True
    kind = snapshot.shapes.constraint[snapshot.tasks.shape[[trial.task]]], snapshot.tasks.label_set[[trial.task]]
    return not exclusions(snapshot, *kind, trial.gone).excluded[0, trial.node]


def allocatable(trial: Trial) -> bool:
    """Whether the task's queue may take it (``SimulateAllocatable``); evictions never narrow a queue."""
    snapshot = trial.snapshot
    queue = int(snapshot.podgroups.queue[snapshot.tasks.podgroup[trial.task]])
    if fits(trial.request, trial.host.headroom[queue]):
        return True
    if len(trial.gone) == 0:
        return False
    withdrawn = np.full(len(trial.released), NONE, np.int64)
    gone = WhatIf.of(snapshot).evicting(trial.leaving).nominating(trial.released, withdrawn)
    return bool(fits(trial.request, trial.host.on(gone, trial.leaving).headroom[queue]))
