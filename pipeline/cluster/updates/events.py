"""News as columns: what ``fold`` takes. Names were resolved to rows at the edge; times are the fleet's own.

A revision counts the versions of one object; news whose revision is not above its object's is late or a duplicate and
changes nothing. Revisions of different objects are never compared.
"""

from dataclasses import dataclass

from pipeline.cluster.arrays import NONE, Bools, Bytes, Floats, Ids, Longs, Rows
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import GONE, Budgets, Nodes, Podgroups, Queues, Roles, Shapes, Subgroups, Tasks
from pipeline.cluster.topology import Topology
from pipeline.cluster.vocabulary import Vocabulary

#: Statuses of news only, never of a row. EVICTED: an eviction ended the task; it starts over unless it says that it is
#: gone when evicted. REPLACED: it ended and a fresh task of its name waits in its place.
EVICTED, REPLACED = GONE + 1, GONE + 2
#: The incarnation of news that names none: the current one, or the next if a task that had started waits again.
CURRENT = NONE


@dataclass(frozen=True)
class TaskNews:
    """What became of tasks, in the order in which it happened.

    Attributes
    ----------
    row: int64[K]
        Several for one row are taken in turn.
    status: uint8[K]
        A task status, EVICTED or REPLACED.
    node: int32[K]
        Where it is Bound, Running or Terminating; NONE otherwise, and for Terminating where it already was.
    card: int32[K]
        Which of that node's cards it holds, NONE for none.
    incarnation: int64[K]
        The life it is about, or CURRENT; news of a life that is over changes nothing.
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
    """All disruption budgets, over the words of the state; ``news`` messages said so."""

    budgets: Budgets
    news: int


@dataclass(frozen=True)
class Growth:
    """Rows to append, their foreign keys already in the numbering that results, and tasks described anew.

    A podgroup that is described anew gets a new row, since its roles and subgroups may differ and their tables stay
    sorted; its tasks keep theirs.

    Attributes
    ----------
    vocabulary
        The known one, entries appended. Its resource axis may be wider: nobody has or asks for what is new there.
    shapes, podgroups, roles, subgroups, tasks
        New rows. ``order`` of podgroups and tasks ranks the new ones among themselves.
    podgroups_before, tasks_before: int64[K]
        How many of the known rows each new one comes after by (created, name).
    edited: int64[E]
        Known tasks described anew, and in ``edits`` (E rows) the description; status, node, nomination, incarnation,
        created and order stay.
    podgroups_from, podgroups_to, roles_from, roles_to, subgroups_from, subgroups_to: int64[...]
        Known rows and the new ones that take their place (NONE where a role or subgroup is no more).
    budgets
        All of them, over the new vocabulary.
    at
        Seconds, for podgroups described anew.
    news
        How many messages this came from.
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
    podgroups_from: Rows
    podgroups_to: Rows
    roles_from: Rows
    roles_to: Rows
    subgroups_from: Rows
    subgroups_to: Rows
    budgets: Budgets
    at: float
    news: int


@dataclass(frozen=True)
class Decided:
    """One of our own decisions, which is true from the moment it is recorded.

    Attributes
    ----------
    seq
        Its number in the ledger; one not above the last folded is old.
    at
        Seconds.
    evicted, spared, nominated, bound: int64[...]
        Task rows: told to end; no longer to end (a decision taken back); promised ``nominated_node``, NONE for no
        longer; starting on ``bound_node``.
    nominated_card, bound_card: int32[...]
        Which of those nodes' cards, NONE for none.
    evicted_incarnation, spared_incarnation, nominated_incarnation, bound_incarnation: int64[...]
        The life that is meant, or CURRENT. For one that is over the decision means nothing.
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


@dataclass(frozen=True)
class Changes:
    """A batch of news, folded in the order of these fields. Whoever fills it closes it where that order would lie."""

    growth: Growth | None = None
    budgets: BudgetNews | None = None
    nodes: NodeNews | None = None
    tasks: TaskNews | None = None
    left: Departures | None = None
    removed: Departures | None = None
    decided: Decided | None = None


@dataclass(frozen=True)
class NodesRelaid:
    """The nodes numbered anew because one came, moved, or the topology is another: a new epoch.

    Attributes
    ----------
    vocabulary
        As known, with levels, label keys, label values, taint sets and card sets of the new tables; the resource axis
        may be wider.
    nodes, topology
        The whole tables.
    node_of: int32[N]
        Per known node its new row, NONE if it is no more.
    card_of: int32[N, D]
        Per known card its new position, NONE if it is no more.
    level_of: int32[levels]
        Per known level its new row, NONE if no podgroup may want it.
    news
        How many messages this came from.
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
    """The queues described anew: the whole table, on ``resources``, and per known queue its new row. A new epoch."""

    resources: tuple[str, ...]
    queues: Queues
    queue_of: Ids
    news: int


@dataclass(frozen=True)
class Listed:
    """A full list: the state begins anew from it, in a new epoch. Our own promises survive where they make sense.

    Attributes
    ----------
    snapshot
        What was listed.
    task_of: int64[T']
        Per listed task its known row, NONE if it is new.
    podgroup_of: int64[G']
        Likewise for podgroups.
    node_of: int32[N]
        Per known node its listed row, NONE if it is no more.
    card_of: int32[N, D]
        Per known card its listed position, NONE if it is no more.
    lives
        Whether the list says which life each task is in.
    """

    snapshot: Snapshot
    task_of: Rows
    podgroup_of: Rows
    node_of: Ids
    card_of: Ids
    lives: bool = False


News = Changes | NodesRelaid | QueuesRelaid | Listed
