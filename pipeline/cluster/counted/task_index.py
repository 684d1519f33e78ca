"""Tasks by the node that they hold, with the columns that scans of domains read; and tasks by podgroup.

An index is task rows grouped by owner, ascending within each. When tasks change, the blocks between the changed places
are copied, so it costs a copy of memory and a search for each change.
"""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.cluster.arrays import NONE, Bytes, Ids, Longs, Rows, sealed
from pipeline.cluster.tables import BOUND, RUNNING, TERMINATING, Tasks
from pipeline.kernels import kernel, writing


@dataclass(frozen=True)
class Occupancy:
    """Tasks grouped by an owner: the node they hold (Bound, Running and Terminating ones), or their podgroup (all).

    Attributes
    ----------
    start: int64[N + 1]
        Entries of owner ``n`` are ``start[n]:start[n + 1]``, so those of a domain are one slice too.
    task: int64[M]
        Task rows, by owner, then by row.
    """

    start: Longs
    task: Rows


@dataclass(frozen=True)
class Placed:
    """Columns of the tasks that hold a node, in the order of ``Occupancy.task``: those of a domain are one slice.

    Only what every scan reads; a copy of each column is made whenever tasks change.

    Attributes
    ----------
    status: uint8[M]
    podgroup, shape, node: int32[M]
    """

    status: Bytes
    podgroup: Ids
    shape: Ids
    node: Ids


@dataclass(frozen=True)
class TaskIndex:
    """Both groupings, and the columns of the tasks that hold a node."""

    by_node: Occupancy
    placed: Placed
    by_podgroup: Occupancy


def index_of(tasks: Tasks, nodes: int, podgroups: int) -> TaskIndex:
    """Index tasks by their columns alone."""
    by_node = Occupancy(*map(sealed, grouped(holder_of(tasks, np.arange(len(tasks))), nodes)))
    by_podgroup = Occupancy(*map(sealed, grouped(tasks.podgroup, podgroups)))
    placed = Placed(*(sealed(getattr(tasks, one.name)[by_node.task]) for one in fields(Placed)))
    return TaskIndex(by_node, placed, by_podgroup)


def holder_of(tasks: Tasks, rows: Rows) -> Ids:
    """int32[K]: the node that each of some tasks holds; NONE if it holds none."""
    status = tasks.status[rows]
    holds = (status == BOUND) | (status == RUNNING) | (status == TERMINATING)
    return np.where(holds, tasks.node[rows], np.int32(NONE))


def carried_index(index: TaskIndex, before: Tasks, after: Tasks, podgroups: int, rows: Rows) -> TaskIndex:
    """``index`` of the tasks ``before``, brought up to date for the tasks that changed (``rows``, each once).

    ``rows`` includes new tasks.
    """
    old = rows[rows < len(before)]
    by_node, plan = _moved(index.by_node, (holder_of(before, old), old), (holder_of(after, rows), rows))
    names = [one.name for one in fields(Placed)]
    columns = {name: plan.column(getattr(index.placed, name), getattr(after, name)[plan.task]) for name in names}
    return TaskIndex(by_node, Placed(**columns), _members(index.by_podgroup, before, after, podgroups, rows))


def renumbered(index: TaskIndex, node_of: Ids, nodes: int) -> TaskIndex:
    """``index`` on nodes numbered anew: ``node_of`` gives each one's new row, NONE for one that no task holds."""
    start, blocks = _permuted_blocks(index.by_node.start, node_of, nodes)
    nothing = np.zeros(0, np.int64)
    plan = _Plan(int(start[-1]), blocks, nothing, nothing)
    by_node = Occupancy(sealed(start), plan.column(index.by_node.task, plan.task))
    names = [one.name for one in fields(Placed) if one.name != "node"]
    columns = {name: plan.column(getattr(index.placed, name), plan.task) for name in names}
    columns["node"] = sealed(_owners(start))
    return TaskIndex(by_node, Placed(**columns), index.by_podgroup)


def _members(index: Occupancy, before: Tasks, after: Tasks, podgroups: int, rows: Rows) -> Occupancy:
    old = rows[rows < len(before)]
    moved = old[before.podgroup[old] != after.podgroup[old]]
    fresh = rows[rows >= len(before)]
    if len(moved) == len(fresh) == 0 and len(index.start) == podgroups + 1:
        return index
    more = np.full(podgroups + 1 - len(index.start), index.start[-1], np.int64)
    index = Occupancy(sealed(np.concatenate([index.start, more])), index.task)
    arriving = np.concatenate([moved, fresh])
    return _moved(index, (before.podgroup[moved], moved), (after.podgroup[arriving], arriving))[0]


# -- how an index is copied --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Plan:
    """Blocks of an index to copy (from, to, length: int64[B, 3]); positions and task rows of new entries, int64[K]."""

    length: int
    blocks: Longs
    place: Rows
    task: Rows

    def column(self, old: NDArray[Any], new: NDArray[Any]) -> NDArray[Any]:
        """A column in the order of the new index, with values ``new`` [K] of its new entries; itself if it stays."""
        if len(new) == 0 and np.array_equal(self.blocks, [(0, 0, len(old))]):
            return old
        result = np.empty(self.length, old.dtype)
        _copy_blocks(old, result, self.blocks)
        result[self.place] = new
        return sealed(result)


def _moved(index: Occupancy, leaving: tuple[Ids, Rows], arriving: tuple[Ids, Rows]) -> tuple[Occupancy, _Plan]:
    """The index after some tasks left their owners and others joined theirs; an owner of NONE is no owner."""
    pieces = []
    for (owner, task), arrives in ((leaving, 0), (arriving, 1)):
        has = owner != NONE
        pieces.append((owner[has].astype(np.int64) << 33) | (task[has] << 1) | arrives)
    moves = np.sort(np.concatenate(pieces))
    start, blocks, place, task = _plan(index.start, index.task, moves)
    plan = _Plan(int(start[-1]), blocks, place, task)
    return Occupancy(sealed(start), plan.column(index.task, task)), plan


@kernel
def _plan(start: Longs, tasks: Rows, moves: Longs) -> tuple[Longs, Longs, Rows, Rows]:
    """Go through the moves, sorted by owner and task, and note the blocks between them; departures come first."""
    change = np.zeros(len(start), np.int64)
    blocks = np.empty((len(moves) + 1, 3), np.int64)
    place, task = np.empty(len(moves), np.int64), np.empty(len(moves), np.int64)
    many, fresh, source, target, at = 0, 0, 0, 0, 0
    for move in moves:
        owner, row, arrives = move >> 33, (move >> 1) & 0xFFFFFFFF, move & 1
        at = max(at, start[owner])
        while at < start[owner + 1] and tasks[at] < row:
            at += 1
        if at > source:
            blocks[many, 0], blocks[many, 1], blocks[many, 2] = source, target, at - source
            target += at - source
            many += 1
        source = at
        if arrives:
            place[fresh], task[fresh] = target, row
            fresh += 1
            target += 1
            change[owner + 1] += 1
        else:
            source = at + 1
            at = source
            change[owner + 1] -= 1
    if len(tasks) > source:
        blocks[many, 0], blocks[many, 1], blocks[many, 2] = source, target, len(tasks) - source
        many += 1
    total = 0
    result = np.empty(len(start), np.int64)
    for owner in range(len(start)):
        total += change[owner]
        result[owner] = start[owner] + total
    return result, blocks[:many].copy(), place[:fresh].copy(), task[:fresh].copy()


@writing("new")
def _copy_blocks(old: Any, new: Any, blocks: Longs) -> None:
    for block in range(len(blocks)):
        source, target, length = blocks[block, 0], blocks[block, 1], blocks[block, 2]
        new[target : target + length] = old[source : source + length]


@kernel
def _permuted_blocks(start: Longs, node_of: Ids, nodes: int) -> tuple[Longs, Longs]:
    result = np.zeros(nodes + 1, np.int64)
    for node in range(len(node_of)):
        if node_of[node] != NONE:
            result[node_of[node] + 1] = start[node + 1] - start[node]
    for node in range(nodes):
        result[node + 1] += result[node]
    blocks, many = np.empty((len(node_of), 3), np.int64), 0
    for node in range(len(node_of)):
        length = start[node + 1] - start[node]
        if node_of[node] == NONE or length == 0:
            continue
        source, target = start[node], result[node_of[node]]
        last = many - 1
        if many and source - blocks[last, 0] == target - blocks[last, 1] == blocks[last, 2]:
            blocks[last, 2] += length
        else:
            blocks[many, 0], blocks[many, 1], blocks[many, 2] = source, target, length
            many += 1
    return result, blocks[:many].copy()


@kernel
def _owners(start: Longs) -> Ids:
    """int32[M]: the owner of each entry."""
    result = np.empty(start[-1], np.int32)
    for owner in range(len(start) - 1):
        result[start[owner] : start[owner + 1]] = owner
    return result


@kernel
def grouped(owner: Ids | Rows, owners: int) -> tuple[Longs, Rows]:
    """Rows grouped by ``owner`` [K]: a counting sort, which keeps their order; those of NONE are left out.

    int64[owners + 1] where those of each owner begin, and the rows.
    """
    start = np.zeros(owners + 1, np.int64)
    for row in range(len(owner)):
        if owner[row] != NONE:
            start[owner[row] + 1] += 1
    for at in range(owners):
        start[at + 1] += start[at]
    fill, rows = start[:-1].copy(), np.empty(start[owners], np.int64)
    for row in range(len(owner)):
        if owner[row] != NONE:
            rows[fill[owner[row]]] = row
            fill[owner[row]] += 1
    return start, rows


@kernel
def joined_runs(rows: Rows, start: Longs, order: Rows) -> tuple[Rows, Longs]:
    """The runs ``rows[start[u]:start[u + 1]]``, for each ``u`` of ``order`` in turn, and where those begin."""
    starts = np.empty(len(order) + 1, np.int64)
    starts[0] = 0
    for at in range(len(order)):
        starts[at + 1] = starts[at] + start[order[at] + 1] - start[order[at]]
    result = np.empty(starts[-1], np.int64)
    for at in range(len(order)):
        result[starts[at] : starts[at + 1]] = rows[start[order[at]] : start[order[at] + 1]]
    return result, starts
