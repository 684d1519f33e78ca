"""News as columns: what ``fold`` takes. Names were resolved to rows at the edge; times are the fleet's own.

A revision counts the versions of one object. News with a revision that is not above its object's is late or a
duplicate, and changes nothing. Revisions of different objects are never compared.
"""

from dataclasses import dataclass, field

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, NONE, Bools, Bytes, Floats, Ids, Longs, Rows, frozen
from pipeline.cluster.counted.budgets import Budgets
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import GONE, Nodes, Podgroups, Queues, Roles, Shapes, Subgroups, Tasks
from pipeline.cluster.topology import Topology
from pipeline.cluster.vocabulary import Vocabulary

#: Statuses of news only, never of a row. EVICTED: an eviction ended the task; it starts over unless it says that it is
#: gone when evicted. REPLACED: it ended and a fresh task of its name waits in its place.
EVICTED, REPLACED = GONE + 1, GONE + 2
#: The incarnation of news that names none: the current one, or the next one if a task that had started waits again.
CURRENT = NONE
_NO_QUEUES: Ids = frozen([], np.int32)


@dataclass(frozen=True)
class TaskNews:
    """What happened to tasks, in the order in which it happened.

    Attributes
    ----------
    row: int64[K]
        Several for one row are taken in turn.
    status: uint8[K]
        A task status, EVICTED or REPLACED.
    node: int32[K]
        The node of a Bound, Running or Terminating task, else NONE; a Terminating one with NONE is where it was.
    card: int32[K]
        Which of that node's cards it holds, NONE for none.
    incarnation: int64[K]
        The life in question, or CURRENT; news of an earlier life changes nothing.
    revision: int64[K]
    at: float64[K]
        Seconds.
    """

    row: Rows
    status: Bytes
    node: Ids
    card: Ids
    incarnation: Longs
    revision: Longs
    at: Floats

    def __len__(self) -> int:
        return len(self.row)


@dataclass(frozen=True)
class NodeNews:
    """Known nodes described anew, in place: row, revision int64[K], allocatable int64[K, R], schedulable bool[K].

    New labels, taints or places in the topology are a ``NodesRelaid``.
    """

    row: Rows
    allocatable: Longs
    schedulable: Bools
    revision: Longs

    def __len__(self) -> int:
        return len(self.row)


@dataclass(frozen=True)
class Departures:
    """Nodes that left, or podgroups that were removed: row, revision int64[K] and at float64[K], each row once."""

    row: Rows
    revision: Longs
    at: Floats

    def __len__(self) -> int:
        return len(self.row)


@dataclass(frozen=True)
class BudgetNews:
    """All disruption budgets, over the vocabulary of the state; ``news`` is the number of messages."""

    budgets: Budgets
    news: int


@dataclass(frozen=True)
class NewRows:
    """Rows to append, their foreign keys already in the numbering that results, and tasks described anew.

    A podgroup that is described anew gets a new row, since its roles and subgroups may differ and their tables stay
    sorted; its tasks keep theirs.

    Attributes
    ----------
    vocabulary
        The known one with entries appended. Its resource axis may be wider; amounts of new resources are 0.
    shapes, podgroups, roles, subgroups, tasks
        New rows. ``order`` of podgroups and tasks ranks the new ones among themselves.
    podgroups_before, tasks_before: int64[K]
        For each new row, how many known rows come before it by (created, name).
    edited: int64[E]
        Known tasks described anew, and in ``edits`` (E rows) the description; status, node, nomination, incarnation,
        created and order stay.
    again: int64[A]
        Known tasks that are gone and are described with their podgroup: each waits in its next life.
    podgroups_from, podgroups_to, roles_from, roles_to, subgroups_from, subgroups_to: int64[...]
        Known rows and the new ones that replace them (NONE where a role or subgroup is gone).
    at: float64[...]
        When each of ``podgroups_to`` was described, in seconds; NaN if only its tasks were.
    budgets
        All of them, over the new vocabulary.
    news
        The number of messages that this came from.
    """

    vocabulary: Vocabulary
    shapes: Shapes
    podgroups: Podgroups
    roles: Roles
    subgroups: Subgroups
    tasks: Tasks
    podgroups_before: Longs
    tasks_before: Longs
    edited: Rows
    edits: Tasks
    again: Rows
    podgroups_from: Rows
    podgroups_to: Rows
    roles_from: Rows
    roles_to: Rows
    subgroups_from: Rows
    subgroups_to: Rows
    at: Floats
    budgets: Budgets
    news: int


@dataclass(frozen=True)
class Decided:
    """One of our own decisions; it holds from the moment it is recorded.

    Attributes
    ----------
    seq
        Its number in the ledger; a number not above that of the last one folded is old.
    at
        Seconds.
    evicted, spared, nominated, bound: int64[...]
        Task rows: told to end; no longer told to end (a decision was taken back); promised ``nominated_node`` (NONE
        withdraws a promise); starting on ``bound_node``.
    nominated_card, bound_card: int32[...]
        Which of those nodes' cards, NONE for none.
    evicted_incarnation, spared_incarnation, nominated_incarnation, bound_incarnation: int64[...]
        The life in question, or CURRENT. For a task in a later life the decision has no effect.
    admitted: int64[...]
        Podgroup rows that are admitted. No recorded decision has any: admissions are worked out anew in every cycle.
    counted: int32[C]
        For each eviction that counts as recent, whatever became of the task since: the queue that loses it, NONE if
        that is not known.
    counted_at
        When they count as told, in seconds on the clock of the judge.
    """

    seq: int
    at: float
    evicted: Rows
    evicted_incarnation: Longs
    spared: Rows
    spared_incarnation: Longs
    nominated: Rows
    nominated_node: Ids
    nominated_card: Ids
    nominated_incarnation: Longs
    bound: Rows
    bound_node: Ids
    bound_card: Ids
    bound_incarnation: Longs
    admitted: Rows = field(default_factory=lambda: NO_ROWS)
    counted: Ids = field(default_factory=lambda: _NO_QUEUES, kw_only=True)
    counted_at: float = field(default=0.0, kw_only=True)


@dataclass(frozen=True)
class Changes:
    """A batch of news, folded in the order of these fields. News that came in another order needs several batches."""

    new_rows: NewRows | None = None
    budgets: BudgetNews | None = None
    nodes: NodeNews | None = None
    tasks: TaskNews | None = None
    left: Departures | None = None
    removed: Departures | None = None
    decided: Decided | None = None


@dataclass(frozen=True)
class NodesRelaid:
    """The nodes numbered anew, because a node came or moved or the topology changed. This begins a new epoch.

    Attributes
    ----------
    vocabulary
        As known, with levels, label keys, label values, taint sets and card sets of the new tables; the resource axis
        may be wider.
    nodes, topology
        The whole tables.
    node_of: int32[N]
        Per known node its new row, NONE if it is gone.
    card_of: int32[N, D]
        Per known card its new position, NONE if it is gone.
    level_of: int32[levels]
        Per known level its new row, NONE if it is gone; then no podgroup may ask for it.
    news
        The number of messages that this came from.
    """

    vocabulary: Vocabulary
    nodes: Nodes
    topology: Topology
    node_of: Ids
    card_of: Ids
    level_of: Ids
    news: int


@dataclass(frozen=True)
class QueuesRelaid:
    """The whole table of queues, described anew on ``resources``, and per known queue its new row; begins a new epoch.

    A queue that is gone has NONE; it may hold podgroups that are gone.
    """

    resources: tuple[str, ...]
    queues: Queues
    queue_of: Ids
    news: int


@dataclass(frozen=True)
class Listed:
    """A full list, from which the state begins anew in a new epoch. Our own promises stay where they still make sense.

    Attributes
    ----------
    snapshot
        What was listed.
    task_of: int64[T']
        Per listed task its known row, NONE if it is new.
    podgroup_of: int64[G']
        For each listed podgroup its known row, NONE if it is new.
    node_of: int32[N]
        Per known node its listed row, NONE if it is gone.
    card_of: int32[N, D]
        Per known card its listed position, NONE if it is gone.
    queue_of: int32[Q]
        Per known queue its listed row, NONE if it is gone.
    lives
        Whether the list states the incarnation of each task.
    at
        When it was sent, in seconds.
    """

    snapshot: Snapshot
    task_of: Rows
    podgroup_of: Rows
    node_of: Ids
    card_of: Ids
    queue_of: Ids
    lives: bool = False
    at: float = field(default=0.0, kw_only=True)


News = Changes | NodesRelaid | QueuesRelaid | Listed
