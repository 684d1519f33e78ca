"""The tables of a snapshot: for each kind of thing one frozen dataclass of read-only columns.

Foreign keys are row numbers, ``NONE`` (-1) where there is none. Names stay at the edge. Times are float64 seconds on
the caller's clock, NaN where the cluster file may leave them out and says nothing. Quantities are int64 in base units
(see ``resources``); ``UNSET`` where nothing was stated, ``UNLIMITED`` where there is no bound.
"""

from dataclasses import dataclass

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Bytes, Counts, Floats, Ids, Longs, Rows, with_rows
from pipeline.keeping import Keeping, begun_with, cached_property
from pipeline.records import replace

#: Task statuses. GONE rows are kept so that row numbers stay; nothing counts them.
PENDING, BOUND, RUNNING, TERMINATING, SUCCEEDED, FAILED, GONE = range(7)
STATUS_NAMES = ("Pending", "Bound", "Running", "Terminating", "Succeeded", "Failed", "Gone")
#: Podgroup phases: not admitted yet; admitted; was whole at least once.
PHASE_PENDING, PHASE_INQUEUE, PHASE_RUNNING = range(3)
PHASE_NAMES = ("Pending", "Inqueue", "Running")
#: Queue states.
OPEN, CLOSED, CLOSING = range(3)
QUEUE_STATE_NAMES = ("Open", "Closed", "Closing")
#: What counts when a podgroup asks whether it may start; UNSTATED: as the policy says.
UNSTATED, WAITING_AND_RUNNING, ONCE_SATISFIED, ONLY_WAITING = range(4)
MATCH_POLICY_NAMES = ("", "waiting-and-running", "once-satisfied", "only-waiting")


@dataclass(frozen=True)
class Nodes(Keeping):
    """Nodes, ordered depth-first by topology so that a domain is a contiguous slice, then by name.

    Attributes
    ----------
    allocatable: int64[N, R]
    schedulable: bool[N]
        False for a cordoned node and for one that has left (whose allocatable is 0 besides).
    taint_set: int32[N]
        Row in ``Vocabulary.taint_sets``.
    labels: int32[N, K]
        Per label key of ``Vocabulary.label_keys`` the row in its ``label_values``, NONE where the node lacks the label.
    cards: int64[N, D]
        Capacity of each card, in the order of the node's card set; 0 where it has no card (or one that takes no task).
        D is the largest number of cards of a node; 0 in a cluster without cards.
    card_set: int32[N]
        Row in ``Vocabulary.card_sets``: what the node's cards are called.
    revision: int64[N]
    """

    allocatable: Longs
    schedulable: Bools
    taint_set: Ids
    labels: Ids
    cards: Longs
    card_set: Ids
    revision: Longs

    def __len__(self) -> int:
        return len(self.schedulable)

    @cached_property
    def capacity(self) -> Longs:
        """int64[R]: allocatable of all nodes together."""
        return np.asarray(self.allocatable.sum(axis=0), np.int64)

    @cached_property
    def open_capacity(self) -> Longs:
        """int64[R]: allocatable of the nodes that are not cordoned, and of those that are only `shut`, together."""
        if self.schedulable.all():
            return self.capacity
        return np.asarray(self.allocatable[self.schedulable].sum(axis=0), np.int64)

    def closing(self, rows: Rows) -> "Nodes":
        """The nodes with some (int64[M]) closed to one preemptor: no cordon of the fleet's, so they still count."""
        nodes = replace(self, schedulable=with_rows(self.schedulable, rows, np.False_))
        return begun_with(nodes, open_capacity=self.open_capacity)


@dataclass(frozen=True)
class Shapes(Keeping):
    """What tasks ask for: tasks of one shape are interchangeable when they are placed.

    Attributes
    ----------
    request: int64[S, R]
        Every task asks for at least one pod.
    constraint: int32[S]
        Row in ``Vocabulary.constraints``.
    on_card: int64[S]
        How much of one single card; 0: needs none.
    """

    request: Longs
    constraint: Ids
    on_card: Longs

    def __len__(self) -> int:
        return len(self.constraint)


@dataclass(frozen=True)
class Tasks:
    """Tasks, in the order in which they became known; a row number is never reused within an epoch.

    Attributes
    ----------
    podgroup, shape: int32[T]
    role, subgroup: int32[T]
        Row in ``Roles`` / ``Subgroups`` (a leaf), or NONE.
    priority: int32[T]
    preemptible: bool[T]
        The task's own flag and its podgroup's, combined: true if both allow.
    may_preempt: bool[T]
        False under preemption policy Never.
    gone_when_evicted, gated, critical, best_effort: bool[T]
        ``critical``: of a system-critical priority class or namespace; never a victim. ``best_effort``: asks for
        nothing but its pod, and for no card.
    status: uint8[T]
    node, nominated: int32[T]
        Node rows; ``node`` is NONE while Pending, ``nominated`` NONE without a nomination. A Terminating task with a
        nomination moves: it starts again on that node.
    card, nominated_card: int32[T]
        Which card of these two nodes it holds, and is promised: a position in ``Nodes.cards``; else NONE.
    index: int32[T]
        Rank inside the gang; NONE if not stated.
    number: int32[T]
        The number at the end of its name, NONE without one. It is the rank where no index is stated: ``w-10`` comes
        after ``w-2``.
    label_set: int32[T]
        Row in ``Vocabulary.label_sets``.
    created: float64[T]
        Seconds; 0 if not stated.
    order: int64[T]
        Rank by (created, name): the last tie-break.
    incarnation: int64[T]
        Grows whenever the task starts over under the same name.
    revision: int64[T]
    """

    podgroup: Ids
    shape: Ids
    role: Ids
    subgroup: Ids
    priority: Ids
    preemptible: Bools
    may_preempt: Bools
    gone_when_evicted: Bools
    gated: Bools
    critical: Bools
    best_effort: Bools
    status: Bytes
    node: Ids
    nominated: Ids
    card: Ids
    nominated_card: Ids
    index: Ids
    number: Ids
    label_set: Ids
    created: Floats
    order: Longs
    incarnation: Longs
    revision: Longs

    def __len__(self) -> int:
        return len(self.status)

    def runs(self, rows: Rows) -> Bools:
        """bool[K]: tasks that an eviction can take: Bound or Running."""
        status = self.status[rows]
        return np.asarray((status == BOUND) | (status == RUNNING))

    def waits(self, rows: Rows | slice, *, promised: bool) -> Bools:
        """bool[K]: tasks that are Pending and were promised a node, or were not."""
        return np.asarray((self.status[rows] == PENDING) & ((self.nominated[rows] != NONE) == promised))

    def promised(self, rows: Rows) -> tuple[Rows, Rows]:
        """int64[K] each: the nodes that tasks are promised, and the cards there; NONE without."""
        return self.nominated[rows].astype(np.int64), self.nominated_card[rows].astype(np.int64)


@dataclass(frozen=True)
class Podgroups(Keeping):
    """Podgroups, in the order in which they became known.

    Attributes
    ----------
    queue: int32[G]
    namespace: int32[G]
        Row in ``Vocabulary.namespaces``.
    priority: int32[G]
    preemptible: bool[G]
    may_preempt: bool[G]
    min_available: int32[G]
    min_resources: int64[G, R]
        UNSET for a resource that is not stated.
    phase: uint8[G]
    match_policy: uint8[G]
    gang: int32[G]
        Row in ``Vocabulary.gangs``, NONE for a podgroup that no gang group names.
    gang_group: int32[G]
        Row in ``Vocabulary.gang_groups``: the podgroups that it starts with; NONE if it starts alone.
    gather: int32[G]
        Row in ``Vocabulary.gathers``: what else it says of how close it wants to be; NONE if nothing.
    required_level, preferred_level: int32[G]
        Row in ``Topology.levels``, NONE without one.
    min_subgroups: int32[G]
        How many top-level subgroups must be whole; NONE: all of them.
    created: float64[G]
        0 if not stated.
    started, stale_since, stale_grace_s, last_checkpoint: float64[G]
        NaN if not stated (``stale_grace_s`` -1: never stale).
    preemption_delay_s: float64[G]
        0 if not stated.
    wait_s: float64[G]
        How long room is held for its tasks until they start; NaN: as long as the policy says.
    order: int64[G]
        Rank by (created, name): the last tie-break.
    alive: bool[G]
        False once it was removed.
    revision: int64[G]
    """

    queue: Ids
    namespace: Ids
    priority: Ids
    preemptible: Bools
    may_preempt: Bools
    min_available: Counts
    min_resources: Longs
    phase: Bytes
    match_policy: Bytes
    gang: Ids
    gang_group: Ids
    gather: Ids
    required_level: Ids
    preferred_level: Ids
    min_subgroups: Counts
    created: Floats
    started: Floats
    stale_since: Floats
    stale_grace_s: Floats
    last_checkpoint: Floats
    preemption_delay_s: Floats
    wait_s: Floats
    order: Longs
    alive: Bools
    revision: Longs

    def __len__(self) -> int:
        return len(self.queue)


@dataclass(frozen=True)
class Roles:
    """Roles, sorted by podgroup. Attributes: podgroup int32[L]; min_available int32[L] (0: no minimum stated)."""

    podgroup: Ids
    min_available: Counts

    def __len__(self) -> int:
        return len(self.podgroup)


@dataclass(frozen=True)
class Subgroups:
    """Subgroups, sorted by podgroup, parents before children.

    Attributes
    ----------
    podgroup: int32[U]
    parent: int32[U]
        Row in this table, NONE at the top.
    min_available: int32[U]
        Tasks that a leaf needs; 0 for inner ones.
    min_subgroups: int32[U]
        Children that an inner one needs; NONE for all of them and for leaves.
    required_level, preferred_level: int32[U]
    """

    podgroup: Ids
    parent: Ids
    min_available: Counts
    min_subgroups: Counts
    required_level: Ids
    preferred_level: Ids

    def __len__(self) -> int:
        return len(self.podgroup)


@dataclass(frozen=True)
class Queues(Keeping):
    """Queues, parents before children, then by (created, name).

    Attributes
    ----------
    parent: int32[Q]
        NONE at the top. A parent named ``root`` that no row describes is NONE.
    priority: int32[Q]
    weight: float64[Q]
    over_quota_weight: float64[Q, R]
    usage: float64[Q, R]
        Past use as a part of the whole, 0 if not stated.
    guarantee: int64[Q, R]
        0 if not stated.
    deserved: int64[Q, R]
        UNSET: no entitlement stated; UNLIMITED: entitled to all there is.
    capability: int64[Q, R]
        UNLIMITED if not stated.
    reclaimable: bool[Q]
    state: uint8[Q]
    preempt_min_runtime_s, reclaim_min_runtime_s: float64[Q]
        NaN if not stated.
    created: float64[Q]
    order: int64[Q]
        Rank by (created, name).
    revision: int64[Q]
    """

    parent: Ids
    priority: Ids
    weight: Floats
    over_quota_weight: Floats
    usage: Floats
    guarantee: Longs
    deserved: Longs
    capability: Longs
    reclaimable: Bools
    state: Bytes
    preempt_min_runtime_s: Floats
    reclaim_min_runtime_s: Floats
    created: Floats
    order: Longs
    revision: Longs

    def __len__(self) -> int:
        return len(self.state)
