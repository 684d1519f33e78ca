"""What the tasks add up to: per node, podgroup, role, subgroup and queue. Derived from the columns, never stored.

Compiled, because sums in int64 must be exact and NumPy's weighted ``bincount`` works in float64.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Bytes, Counts, Ids, Longs, Rows, frozen
from pipeline.cluster.tables import BOUND, FAILED, GONE, PENDING, RUNNING, SUCCEEDED, TERMINATING, Queues, Tasks
from pipeline.kernels import kernel


@dataclass(frozen=True)
class Room:
    """Resources of each node: ``idle + used = allocatable``, and what is promised or coming free.

    Attributes
    ----------
    idle, terminating, nominated: int64[N, R]
        ``idle`` is what nobody holds; ``terminating`` is held by tasks on their way out; ``nominated`` is promised to
        waiting tasks, and to those on their way out that start again there (moved).
    """

    idle: Longs
    terminating: Longs
    nominated: Longs

    @cached_property
    def future(self) -> Longs:
        """int64[N, R], read-only: idle + terminating - nominated; negative where more was promised than comes free."""
        return frozen(self.idle + self.terminating - self.nominated, np.int64)

    def future_of(self, nodes: Rows) -> Longs:
        """int64[M, R]: the same for some nodes."""
        return self.idle[nodes] + self.terminating[nodes] - self.nominated[nodes]


@dataclass(frozen=True)
class Standing:
    """Counts of tasks by status for each owner (podgroup, role or subgroup leaf).

    Attributes
    ----------
    ready: int32[M]
        Bound, Running or Succeeded.
    running: int32[M]
        Bound or Running: what an eviction can reduce.
    waiting: int32[M]
        Pending, or Terminating, with a nomination.
    pending: int32[M]
        Pending without one.
    pending_best_effort: int32[M]
        Those of ``pending`` that ask for nothing but a pod.
    """

    ready: Counts
    running: Counts
    waiting: Counts
    pending: Counts
    pending_best_effort: Counts

    @property
    def valid(self) -> Counts:
        """int32[M]: tasks that may still count towards a minimum."""
        return self.ready + self.waiting + self.pending


@dataclass(frozen=True)
class Occupancy:
    """Tasks by the node they hold: Bound, Running and Terminating ones.

    Attributes
    ----------
    start: int64[N + 1]
        Entries of node ``n`` are ``start[n]:start[n + 1]``, so those of a domain are one slice too.
    task: int64[M]
        Task rows, by node, then by row.
    """

    start: Longs
    task: Rows


@dataclass(frozen=True)
class Placed:
    """Columns of the tasks that hold a node, in the order of ``Occupancy.task``: a domain's are next to each other.

    Attributes
    ----------
    status: uint8[M]
    podgroup, role, subgroup, shape, priority, node: int32[M]
    order: int64[M]
    """

    status: Bytes
    podgroup: Ids
    role: Ids
    subgroup: Ids
    shape: Ids
    priority: Ids
    node: Ids
    order: Longs


@kernel
def _sum_rooms(
    status: Bytes, node: Ids, nominated: Ids, shape: Ids, request: Longs, nodes: int
) -> tuple[Longs, Longs, Longs]:
    resources = request.shape[1]
    used = np.zeros((nodes, resources), np.int64)
    terminating = np.zeros((nodes, resources), np.int64)
    promised = np.zeros((nodes, resources), np.int64)
    for task in range(len(status)):
        if status[task] in (BOUND, RUNNING, TERMINATING):
            for r in range(resources):
                used[node[task], r] += request[shape[task], r]
                if status[task] == TERMINATING:
                    terminating[node[task], r] += request[shape[task], r]
        if status[task] in (PENDING, TERMINATING) and nominated[task] != NONE:
            for r in range(resources):
                promised[nominated[task], r] += request[shape[task], r]
    return used, terminating, promised


@kernel
def _count(owner: Ids, status: Bytes, nominated: Ids, best_effort: Bools, owners: int) -> Counts:
    counts = np.zeros((5, owners), np.int32)
    for task in range(len(status)):
        row = owner[task]
        if row == NONE:
            continue
        state = status[task]
        if state in (BOUND, RUNNING):
            counts[0, row] += 1
            counts[1, row] += 1
        elif state == SUCCEEDED:
            counts[0, row] += 1
        elif state == PENDING:
            if nominated[task] == NONE:
                counts[3, row] += 1
                if best_effort[task]:
                    counts[4, row] += 1
            else:
                counts[2, row] += 1
        elif state == TERMINATING and nominated[task] != NONE:
            counts[2, row] += 1
    return counts


@kernel
def _occupy(status: Bytes, node: Ids, nodes: int) -> tuple[Longs, Rows]:
    start = np.zeros(nodes + 1, np.int64)
    for task in range(len(status)):
        if status[task] in (BOUND, RUNNING, TERMINATING):
            start[node[task] + 1] += 1
    for n in range(nodes):
        start[n + 1] += start[n]
    fill = start[:-1].copy()
    entries = np.empty(start[nodes], np.int64)
    for task in range(len(status)):
        if status[task] in (BOUND, RUNNING, TERMINATING):
            entries[fill[node[task]]] = task
            fill[node[task]] += 1
    return start, entries


@kernel
def _sum_owners(owner: Ids, counted: Bools, shape: Ids, request: Longs, owners: int) -> Longs:
    resources = request.shape[1]
    total = np.zeros((owners, resources), np.int64)
    for task in range(len(owner)):
        if counted[task] and owner[task] != NONE:
            for r in range(resources):
                total[owner[task], r] += request[shape[task], r]
    return total


def room_of(tasks: Tasks, request: Longs, allocatable: Longs) -> Room:
    """Sum tasks up per node; ``request`` int64[S, R] by shape, ``allocatable`` int64[N, R]."""
    used, terminating, nominated = _sum_rooms(
        tasks.status, tasks.node, tasks.nominated, tasks.shape, request, len(allocatable)
    )
    return Room(allocatable - used, terminating, nominated)


def standing_of(tasks: Tasks, owner: Ids, owners: int) -> Standing:
    """Count tasks per owner; ``owner`` int32[T] is ``tasks.podgroup``, ``.role`` or ``.subgroup``."""
    return Standing(*_count(owner, tasks.status, tasks.nominated, tasks.best_effort, owners))


def occupancy_of(tasks: Tasks, nodes: int) -> Occupancy:
    """Index the tasks that hold a node by that node (a counting sort)."""
    return Occupancy(*_occupy(tasks.status, tasks.node, nodes))


def placed_of(tasks: Tasks, occupancy: Occupancy) -> Placed:
    """Bring columns into the order of the occupancy, for sweeps over domains: a stride through memory, not a hop."""
    at = occupancy.task
    return Placed(
        tasks.status[at],
        tasks.podgroup[at],
        tasks.role[at],
        tasks.subgroup[at],
        tasks.shape[at],
        tasks.priority[at],
        tasks.node[at],
        tasks.order[at],
    )


def held(tasks: Tasks) -> Bools:
    """bool[T]: tasks whose resources are charged to their queue: Bound, Running, or promised a node."""
    running: Bools = (tasks.status == BOUND) | (tasks.status == RUNNING)
    return np.asarray(running | promised(tasks))


def promised(tasks: Tasks) -> Bools:
    """bool[T]: tasks that are promised a node: waiting ones, and those that leave their node for another."""
    return np.asarray(((tasks.status == PENDING) | (tasks.status == TERMINATING)) & (tasks.nominated != NONE))


def asked(tasks: Tasks) -> Bools:
    """bool[T]: tasks that hold, are promised or want resources; those ending for good or ended do not."""
    return np.asarray(~np.isin(tasks.status, (TERMINATING, SUCCEEDED, FAILED, GONE)) | promised(tasks))


def total_by(owner: Ids, counted: Bools, shape: Ids, request: Longs, owners: int) -> Longs:
    """Sum the requests of ``counted`` tasks per owner: int64[owners, R]."""
    return _sum_owners(owner, counted, shape, request, owners)


def with_ancestors(parent: Ids, own: Longs) -> Longs:
    """Add to each queue what its descendants have: int64[Q, R]; parents come before children in ``parent``."""
    total = own.copy()
    for queue in range(len(parent) - 1, -1, -1):
        if parent[queue] != NONE:
            total[parent[queue]] += total[queue]
    return total


def queue_chain(queues: Queues, queue: int) -> list[int]:
    """The queue and its ancestors, itself first."""
    chain = []
    while queue != NONE:
        chain.append(queue)
        queue = int(queues.parent[queue])
    return chain
