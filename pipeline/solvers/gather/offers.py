"""Offer slots: how many tasks of a gang each node, and so each domain, takes.

The tasks need not be alike. A node offers what it takes when it is filled in rank order, one kind after the other;
that is exact for one kind and orders domains for several. Whether a domain could take all tasks is settled kind by
kind, each as if it were alone, and then by placing them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Longs, Rows, is_among
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import BOUND, RUNNING
from pipeline.placement.layout.packing import node_slots
from pipeline.solvers.gather.multiples import Steps
from pipeline.solvers.gather.tree import Tree


@dataclass(frozen=True)
class Kinds:
    """Tasks that are to be gathered, in rank order.

    Attributes
    ----------
    rows: int64[K]
        Task rows.
    kind: int64[K]
        The kind of each task; kinds are numbered in the order of first occurrence.
    request: int64[M, R], count: int64[M]
        Of each kind.
    allowed: bool[M, N]
        Nodes that each kind may use.
    """

    rows: Rows
    kind: Longs
    request: Longs
    count: Longs
    allowed: Bools

    def first(self, many: int) -> "Kinds":
        """The same of the first ``many`` tasks."""
        kind = self.kind[:many]
        kinds = int(kind.max(initial=-1)) + 1
        count = np.bincount(kind, minlength=kinds)
        return Kinds(self.rows[:many], kind, self.request[:kinds], count, self.allowed[:kinds])


def kinds_of(snapshot: Snapshot, rows: Rows, allowed: Bools, shapes: Rows) -> Kinds:
    """The kinds of the tasks ``rows``; ``allowed`` bool[S, N] is of ``shapes`` (int64[S], rows of the snapshot's)."""
    at = np.argsort(shapes, kind="stable")
    shape = at[np.searchsorted(shapes[at], snapshot.tasks.shape[rows])]
    _, first, kind = np.unique(shape, return_index=True, return_inverse=True)
    order = np.argsort(first)
    used = shape[first[order]]
    kind = np.argsort(order)[kind]
    count = np.bincount(kind, minlength=len(used))
    return Kinds(rows, kind, snapshot.shapes.request[shapes[used]], count, allowed[used])


@dataclass(frozen=True)
class Offers:
    """What the vertices of a tree offer a gang.

    Attributes
    ----------
    slots, existing: int64[V]
        How many of its tasks each takes; how many existing tasks, near which it should be, are there.
    enough: bool[V]
        Whether each could take all of them, each kind counted alone.
    """

    slots: Longs
    existing: Longs
    enough: Bools


def offers_of(tree: Tree, kinds: Kinds, room: Longs, existing: Longs, steps: Steps | None) -> Offers:
    """What is offered by nodes with ``room`` (int64[N, R]) on which ``existing`` tasks (int64[N]) are."""
    found = _offered(tree, kinds, room, existing)
    if steps is None:
        return found
    slots = steps.summed(tree, found.slots[tree.domains :])
    return Offers(slots, found.existing, found.enough & (slots >= len(kinds.rows)))


def _offered(tree: Tree, kinds: Kinds, room: Longs, existing: Longs) -> Offers:
    alone = [_alone(kinds, kind, room) for kind in range(len(kinds.count))]
    enough = np.logical_and.reduce([tree.summed(one) >= many for one, many in zip(alone, kinds.count, strict=True)])
    if len(alone) == 1:
        return Offers(tree.summed(alone[0]), tree.summed(existing), np.asarray(enough))
    left, together = np.maximum(room, 0), np.zeros(len(room), np.int64)
    for kind in range(len(alone)):
        here = _alone(kinds, kind, left)
        left = left - here[:, None] * kinds.request[kind]
        together += here
    enough = enough & (tree.summed(together) >= 1)
    enough[tree.domains :] &= together == len(kinds.rows)
    return Offers(tree.summed(together), tree.summed(existing), np.asarray(enough))


def _alone(kinds: Kinds, kind: int, room: Longs) -> Longs:
    """int64[N]: how many tasks of one kind each node takes, no more than there are."""
    alone = slice(kind, kind + 1)
    slots, _ = node_slots(kinds.request[alone], kinds.count[alone], kinds.allowed[alone], 0, room)
    return np.asarray(slots[0])


def existing_of(snapshot: Snapshot, podgroups: Sequence[int], besides: Rows) -> Longs:
    """int64[N]: how many tasks near which podgroups want to be run on or are promised each node.

    Those are their own, ``besides`` left out, and those of podgroups that want to be near the same.
    """
    tasks, near = snapshot.tasks, _near(snapshot, podgroups)
    rows = np.concatenate([snapshot.tasks_of(podgroup) for podgroup in {*podgroups, *near}])
    rows = rows[~is_among(rows, besides)]
    runs = (tasks.status[rows] == BOUND) | (tasks.status[rows] == RUNNING)
    node = np.where(runs, tasks.node[rows], tasks.nominated[rows])
    return np.bincount(node[node != NONE], minlength=len(snapshot.nodes)).astype(np.int64)


def _near(snapshot: Snapshot, podgroups: Sequence[int]) -> list[int]:
    """Podgroups that want to be near the same tasks as some of these."""
    groups, wishes = snapshot.podgroups, snapshot.vocabulary.gathers
    wanted = {wishes[row].near for row in groups.gather[list(podgroups)].tolist() if row != NONE} - {None}
    alike = [row for row, wish in enumerate(wishes) if wish.near in wanted]
    return np.flatnonzero(np.isin(groups.gather, alike) & groups.alive).tolist() if alike else []
