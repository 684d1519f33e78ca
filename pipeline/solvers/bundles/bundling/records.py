"""The records that kernels of this folder take: columns by name, since Numba takes a NamedTuple of arrays as it is.

A task is identified by its *entry*, its position in ``Snapshot.occupancy``: the entries of a domain are one slice,
ordered by node. Where kernels take ``seats``, int32[G], these are scratch: NONE everywhere, before and after.
"""

from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import Bools, Bytes, Counts, Floats, Ids, Longs, Rows, sizes
from pipeline.cluster.rules.sparing import Quota
from pipeline.kernels import shared
from pipeline.placement.layout.region_slots import PartsInRegions

#: In preempt the leading level of a price is this and the highest level of podgroups that break; where none breaks, it
#: is the highest level of those that lose surplus.
BREAKING = 1 << 32


class TaskDetails(NamedTuple):
    """Columns that only few scans read: of all tasks, by row.

    Attributes
    ----------
    role, subgroup, priority: int32[T]
    order: int64[T]
        Rank by age and name.
    """

    role: Ids
    subgroup: Ids
    priority: Ids
    order: Longs


class Entries(NamedTuple):
    """Columns of the tasks that hold a node, by entry.

    Attributes
    ----------
    candidate: bool[M]
        Running tasks that may be victims, each judged alone.
    status: uint8[M]
    podgroup, shape, node: int32[M]
    task: int64[M]
        Their rows.
    of_tasks
        What else there is to say about tasks, by ``task``.
    """

    candidate: Bools
    status: Bytes
    podgroup: Ids
    shape: Ids
    node: Ids
    task: Rows
    of_tasks: TaskDetails


class Groups(NamedTuple):
    """Columns of the podgroups, as one search sees them.

    Attributes
    ----------
    cost: float64[G]
        What all running tasks of the podgroup hold, in units of the need.
    running: int32[G]
        How many tasks that is.
    complete: bool[G]
        Whether all of them are candidates.
    rank_before, rank_after: int64[G]
        Policy ranks before and after efficiency, each from 0 to below 2**31; smaller goes first.
    node_rank: int64[G]
        Policy rank by the nodes of the podgroup's tasks; no rows where that order is not used.
    order: int64[G]
        Rank by age and name, the last tie-break; below 2**31.
    priority: int32[G]
    queue_rank: int64[G]
        Rank of the podgroup's queue in the price, fairest to take from first; 0 where fairness does not count.
    level: int64[G]
        In preempt the rank of the priority, from 1; in reclaim ``queue_rank``. The leading level of a price is made of
        it, see ``BREAKING``.
    lost_work: float64[G]
        Weight of lost work, see `price.lost_work`.
    """

    cost: Floats
    running: Counts
    complete: Bools
    rank_before: Longs
    rank_after: Longs
    node_rank: Longs
    order: Longs
    priority: Ids
    queue_rank: Longs
    level: Longs
    lost_work: Floats


class Surplus(NamedTuple):
    """How many tasks every podgroup, role and subgroup may lose.

    Attributes
    ----------
    gang: int32[G]
        Ready less minimum; negative: broken already.
    role: int32[L]
        The same for each role; UNBOUND where the role does not bind.
    role_start: int64[G + 1]
        The roles of each podgroup.
    leaf: int32[U]
        Ready less minimum of a leaf subgroup; NONE: broken already.
    slack: int32[U + G]
        How many more children an inner subgroup (row u), or a podgroup (row U + g), can lose; negative: broken.
    holder: int32[U]
        Row in ``slack`` of the subgroup's parent or podgroup.
    """

    gang: Counts
    role: Counts
    role_start: Longs
    leaf: Counts
    slack: Counts
    holder: Ids


class Worth(NamedTuple):
    """The worth of resources and tasks to one need.

    Attributes
    ----------
    request: int64[shapes, R]
        What a task of each shape holds.
    needed: int64[R]
        What the minimum asks for; 0 for pods if anything else is asked for.
    coverage, waste: int64[shapes]
        Ranks of shapes: by how much of the need a task covers, most first; by its size, smallest first.
    unit: float64[shapes]
        A task of each shape in units of the need.
    """

    request: Longs
    needed: Longs
    coverage: Longs
    waste: Longs
    unit: Floats


class Rules(NamedTuple):
    """The switches of one search.

    Attributes
    ----------
    allow_whole
        Whether gangs may be broken.
    cluster_wide
        Whether members of a broken gang outside the domain go too.
    asks_in_order
        Whether plugins are asked, domain by domain, what quotas leave of its list of bundles; then the order inside
        safe bundles matters too.
    keep_order
        Whether the order of bundles is kept even where policy ranks some equal.
    by_priority
        Whether the price ranks priority before lost work (preempt) or after it (reclaim).
    efficiency_step
        Width of the steps in which efficiencies are compared; 0: as they are.
    tolerance
        The relative saving for which a set of victims replaces the one in policy's order, where policy ranks bundles
        after efficiency too.
    """

    allow_whole: bool
    cluster_wide: bool
    asks_in_order: bool
    keep_order: bool
    by_priority: bool
    efficiency_step: float
    tolerance: float


class Terms(NamedTuple):
    """Everything that kernels take for one search, the same for all domains."""

    entries: Entries
    groups: Groups
    surplus: Surplus
    worth: Worth
    rules: Rules
    quota: Quota


class Bundles(NamedTuple):
    """What podgroups can lose in one domain.

    Attributes
    ----------
    podgroup: int64[B]
    safe: bool[B]
    stop: int64[B]
        Bundle ``b`` has the entries ``entry[stop[b - 1]:stop[b]]``.
    entry: int64[C]
    elsewhere: int64[B]
        How many members outside the domain go along with a whole bundle.
    efficiency: float64[B]
        Local gain over global cost; infinite for a safe bundle, which costs nothing.
    cost: float64[B]
        The work that breaks with it, in units of the need; 0 for a safe bundle.
    """

    podgroup: Rows
    safe: Bools
    stop: Longs
    entry: Rows
    elsewhere: Longs
    efficiency: Floats
    cost: Floats

    @property
    def many(self) -> int:
        """How many bundles there are."""
        return len(self.stop)

    @property
    def size(self) -> Longs:
        """int64[B]: how many tasks of the domain each bundle has."""
        return sizes(self.stop)

    @property
    def owner(self) -> Rows:
        """int64[C]: the bundle of each entry."""
        return np.repeat(np.arange(self.many), self.size)


@shared
def blank(bundles: int, entries: int) -> Bundles:
    """Room for some bundles; none has members elsewhere or costs anything until that is written down."""
    podgroup, stop, entry = np.empty(bundles, np.int64), np.empty(bundles, np.int64), np.empty(entries, np.int64)
    elsewhere, efficiency = np.zeros(bundles, np.int64), np.full(bundles, np.inf)
    return Bundles(podgroup, np.empty(bundles, np.bool_), stop, entry, elsewhere, efficiency, np.zeros(bundles))


@shared
def cut(bundles: Bundles, many: int, entries: int) -> Bundles:
    """The first ``many`` bundles, which have that many entries."""
    podgroup, safe, stop, entry, elsewhere, efficiency, cost = bundles
    return Bundles(
        podgroup[:many], safe[:many], stop[:many], entry[:entries], elsewhere[:many], efficiency[:many], cost[:many]
    )


class Favour(NamedTuple):
    """Which of a podgroup's tasks are preferred as surplus.

    Attributes
    ----------
    begin
        The first entry of the domain.
    rank: int64[C]
        Of the entries from there on, smaller goes first, below 2**30; no rows where nothing is favoured.
    """

    begin: int
    rank: Longs


class Units(NamedTuple):
    """What is reprieved at once, in order: a whole bundle, or one task of a safe one.

    Attributes
    ----------
    stop: int64[U]
        Unit ``u`` has the entries ``entry[stop[u - 1]:stop[u]]``.
    entry: int64[C]
    after: int64[U]
        The unit that must be reprieved before, NONE if there is none: surplus is of no use to a broken gang.
    bundle: int64[U]
        The bundle it belongs to.
    """

    stop: Longs
    entry: Rows
    after: Longs
    bundle: Rows


class Cost(NamedTuple):
    """What some victims cost, field by field as in ``Price``.

    Attributes
    ----------
    head
        The leading level: in reclaim the highest ``Groups.level`` of podgroups that lose tasks, in preempt see
        ``BREAKING``. 0 without victims.
    broken_level, broken_work, surplus_level, surplus_work: int64[K], float64[K]
        Lost work of podgroups that break, and of surplus, by level from the highest.
    """

    head: int
    queue_rank: int
    broken_level: Longs
    broken_work: Floats
    surplus_level: Longs
    surplus_work: Floats
    highest_priority: int
    victims: int
    gangs_broken: int


class Outcome(NamedTuple):
    """The victims of one domain: bundles, their units, which of these returned, and the cost of the others.

    If they do not make room (not ``found``), the other fields mean nothing.
    """

    found: bool
    bundles: Bundles
    units: Units
    returned: Bools
    cost: Cost


class Site(NamedTuple):
    """The nodes, and what the need asks for.

    Attributes
    ----------
    start: int64[N + 1]
        Where the entries of each node begin.
    future: int64[N, R]
        Room without evictions.
    request: int64[S, R]
    wanted: int64[S]
    allowed: bool[S, N]
    scarce
        As in ``Ground``.
    parts
        Those of the need that go into one region each.
    """

    start: Longs
    future: Longs
    request: Longs
    wanted: Longs
    allowed: Bools
    scarce: int
    parts: PartsInRegions
