"""Offer slots: how many tasks of a gang each node, and so each domain, takes.

The tasks need not be alike. A node offers what it takes when it is filled in rank order, one kind after the other;
that is exact for one kind and orders domains for several. Whether a domain could take all tasks is settled by bounds
first: each kind with those that are as large or larger has slots enough, as if it were alone, and so has the sum of
what they ask for. Then they are placed.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Longs, Rows
from pipeline.cluster.snapshot import Snapshot
from pipeline.kernels import kernel, linked
from pipeline.placement.layout.packing import node_slots, slots_at
from pipeline.placement.room.counted_need import CountedNeed
from pipeline.solvers.gather.amounts import takes_exactly
from pipeline.solvers.gather.multiples import Steps, tasks_on
from pipeline.solvers.gather.tree import Tree


class Kinds(NamedTuple):
    """Tasks that are to be gathered, in rank order; R are the columns of ``CountedNeed`` but for cards.

    Attributes
    ----------
    rows: int64[K]
        Task rows.
    kind: int64[K]
        The kind of each task; kinds are numbered in the order of first occurrence.
    request: int64[M, R], many: int64[M]
        What each kind asks for, and how many tasks are of it.
    allowed: bool[M, N]
        Nodes that each kind may use.
    """

    rows: Rows
    kind: Longs
    request: Longs
    many: Longs
    allowed: Bools

    def on(self, start: int, stop: int) -> "Kinds":
        """The same on some of the nodes."""
        return self._replace(allowed=np.ascontiguousarray(self.allowed[:, start:stop]))


def kinds_of(counted: CountedNeed, rows: Rows) -> Kinds:
    """The kinds of the tasks ``rows`` of a need."""
    shapes, columns = counted.need.shapes, counted.columns
    at = np.argsort(shapes, kind="stable")
    shape = at[np.searchsorted(shapes[at], counted.snapshot.tasks.shape[rows])]
    _, first, kind = np.unique(shape, return_index=True, return_inverse=True)
    order = np.argsort(first)
    used = shape[first[order]]
    kind = np.argsort(order)[kind]
    count = np.bincount(kind, minlength=len(used))
    request = np.ascontiguousarray(columns.request[used, : columns.without_cards])
    return Kinds(rows.copy(), kind, request, count, counted.open[used])


class Offers(NamedTuple):
    """What the vertices of a tree offer a gang.

    Attributes
    ----------
    slots, existing: int64[V]
        How many of its tasks each takes; how many existing tasks, near which it should be, are there.
    enough: bool[V]
        Whether each could take all of them, as far as bounds tell.
    """

    slots: Longs
    existing: Longs
    enough: Bools


def offers_of(tree: Tree, kinds: Kinds, room: Longs, existing: Longs, steps: Steps | None) -> Offers:
    """What nodes with ``room`` (int64[N, R]) offer, on which ``existing`` tasks (int64[N]) are."""
    found = offered(tree, kinds, room, existing)
    if steps is None:
        return found
    slots = steps.summed(tree, found.slots[tree.domains :])
    return Offers(slots, found.existing, found.enough & takes_exactly(tree, steps, slots, len(kinds.rows)))


@kernel
def offered(tree: Tree, kinds: Kinds, room: Longs, existing: Longs) -> Offers:
    """What is offered if a domain takes any number of tasks."""
    alone, _ = node_slots(kinds.request, kinds.many, kinds.allowed, 0, room)
    together = alone[0] if len(alone) == 1 else _together(kinds, room)
    slots, enough = _summed(tree, together), np.ones(len(tree.parent), np.bool_)
    for kind in range(len(alone)):
        here = _summed(tree, alone[kind])
        for vertex in range(len(here)):
            enough[vertex] &= here[vertex] >= kinds.many[kind]
    for vertex in range(len(slots) if len(alone) > 1 else 0):
        enough[vertex] &= slots[vertex] >= (1 if vertex < tree.domains else len(kinds.kind))
    if len(alone) > 1:
        _together_enough(tree, kinds, room, alone, enough)
    return Offers(slots, _summed(tree, existing), enough)


@linked
def _together(kinds: Kinds, room: Longs) -> Longs:
    """int64[N]: how many tasks each node takes if it is filled with one kind after the other."""
    left, together = np.maximum(room, 0), np.zeros(len(room), np.int64)
    for kind in range(len(kinds.many)):
        for n in range(len(room)):
            if kinds.allowed[kind, n]:
                here = slots_at(kinds.request, kind, left, n, kinds.many[kind])
                together[n] += here
                for r in range(left.shape[1] if here > 0 else 0):
                    left[n, r] -= here * kinds.request[kind, r]
    return together


@linked
def _together_enough(tree: Tree, kinds: Kinds, room: Longs, alone: Longs, enough: Bools) -> None:
    """Strike out vertices that have too little for several kinds together; ``alone`` int64[M, N]: slots of each."""
    per_node = np.empty(len(room), np.int64)
    for kind in range(len(alone)):
        larger = [other for other in range(len(alone)) if (kinds.request[other] >= kinds.request[kind]).all()]
        if len(larger) == 1:
            continue
        many = 0
        for other in larger:
            many += kinds.many[other]
        for n in range(len(room)):
            per_node[n] = 0
            for other in larger:
                if kinds.allowed[other, n]:  # each takes a slot of this kind, or more
                    per_node[n] = slots_at(kinds.request, kind, room, n, many)
                    break
        enough &= _summed(tree, per_node) >= many
    for r in range(room.shape[1]):
        asked = 0
        per_node[:] = 0
        for kind in range(len(alone)):
            asked += kinds.many[kind] * kinds.request[kind, r]
            for n in range(len(room)):
                per_node[n] += alone[kind, n] * kinds.request[kind, r]
        for n in range(len(room)):
            per_node[n] = min(per_node[n], max(room[n, r], 0))
        enough &= _summed(tree, per_node) >= asked


@linked
def _summed(tree: Tree, per_node: Longs) -> Longs:
    """int64[V]: the sum over the nodes of each vertex."""
    upto, result = np.zeros(len(per_node) + 1, np.int64), np.empty(len(tree.parent), np.int64)
    for n in range(len(per_node)):
        upto[n + 1] = upto[n] + per_node[n]
    for vertex in range(len(result)):
        result[vertex] = upto[tree.last[vertex]] - upto[tree.first[vertex]]
    return result


def existing_of(snapshot: Snapshot, podgroups: Sequence[int], besides: Rows) -> Longs:
    """int64[N]: how many tasks near which podgroups want to be run on or are promised each node.

    Those are their own, ``besides`` left out, and those of podgroups that want to be near the same.
    """
    return tasks_on(snapshot, sorted({*podgroups, *_near(snapshot, podgroups)}), besides)


def _near(snapshot: Snapshot, podgroups: Sequence[int]) -> list[int]:
    """Podgroups that want to be near the same tasks as some of these."""
    groups, wishes = snapshot.podgroups, snapshot.vocabulary.gathers
    wanted = {wishes[row].near for row in groups.gather[list(podgroups)].tolist() if row != NONE} - {None}
    alike = [row for row, wish in enumerate(wishes) if wish.near in wanted]
    return np.flatnonzero(np.isin(groups.gather, alike) & groups.alive).tolist() if alike else []
