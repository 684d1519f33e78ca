"""What the kernels of this room are given: columns by name. Numba takes a NamedTuple of arrays as it is.

A task is known by its *entry*, its position in ``Snapshot.occupancy``: the entries of a domain are one slice, ordered
by node.
"""

from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import Bools, Bytes, Counts, Floats, Ids, Longs, Rows


class Entries(NamedTuple):
    """Columns of the tasks that hold a node, by entry.

    Attributes
    ----------
    candidate: bool[M]
        Tasks that may be victims as far as each is judged alone; all of them run.
    status: uint8[M]
    podgroup, role, subgroup, shape, priority, node: int32[M]
    order: int64[M]
        Rank by age and name.
    """

    candidate: Bools
    status: Bytes
    podgroup: Ids
    role: Ids
    subgroup: Ids
    shape: Ids
    priority: Ids
    node: Ids
    order: Longs


class Groups(NamedTuple):
    """Columns of the podgroups, as one search sees them.

    Attributes
    ----------
    cost: float64[G]
        What the podgroup runs everywhere, in units of the need.
    running: int32[G]
        How many tasks that is.
    complete: bool[G]
        Whether all of them are candidates.
    before, after: int64[G]
        Policy ranks ahead of and behind efficiency, each from 0 and below 2**31; smaller goes first.
    node_rank: int64[G]
        The same by the nodes that the podgroup's tasks lie on; no rows where that order is of no use.
    order: int64[G]
        Rank by age and name, the last tie-break; below 2**31.
    priority: int32[G]
    queue_rank: int64[G]
        How fair it is to take from the podgroup's queue, as the price has it; 0 where fairness has no say.
    level: int64[G]
        What a price is compared by first: in preempt a rank of priorities, from 1; in reclaim ``queue_rank``.
    lost_work: float64[G]
        Weight of what an eviction destroys.
    """

    cost: Floats
    running: Counts
    complete: Bools
    before: Longs
    after: Longs
    node_rank: Longs
    order: Longs
    priority: Ids
    queue_rank: Longs
    level: Longs
    lost_work: Floats


class Surplus(NamedTuple):
    """How much every podgroup, role and subgroup may lose, in tasks.

    Attributes
    ----------
    gang: int32[G]
        Ready less minimum; negative: broken already.
    role: int32[L]
        Likewise; UNBOUND where the role does not bind.
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
    """What resources and tasks are worth to one need.

    Attributes
    ----------
    request: int64[shapes, R]
        What a task of each shape holds.
    needed: int64[R]
        What the minimum asks for; 0 where it does not count: pods, if anything else is asked for.
    coverage, waste: int64[shapes]
        Ranks of a task of each shape: by how much of the need it covers, most first; by its size, smallest first.
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
    sorted_surplus
        Whether the order inside safe bundles matters, because a quota is counted along it.
    keep_order
        Whether victims are taken in the order of their bundles even where policy ranks some equal.
    by_priority
        Whether the price ranks priority ahead of lost work (preempt) or behind it (reclaim).
    efficiency_step
        Width of the steps in which efficiencies are compared; 0: as they are.
    tolerance
        By what part a set of victims must be cheaper to go instead of what policy's order gives, where policy has
        more to say behind efficiency.
    """

    allow_whole: bool
    cluster_wide: bool
    sorted_surplus: bool
    keep_order: bool
    by_priority: bool
    efficiency_step: float
    tolerance: float


class Terms(NamedTuple):
    """Everything that the kernels know of one search, in whatever domain."""

    entries: Entries
    groups: Groups
    surplus: Surplus
    worth: Worth
    rules: Rules


class Bundles(NamedTuple):
    """What the podgroups of one domain can lose there.

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
        What breaks with it, in units of the need; 0 for a safe bundle.
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
        return np.diff(self.stop, prepend=0)

    @property
    def owner(self) -> Rows:
        """int64[C]: the bundle of each entry."""
        return np.repeat(np.arange(self.many), self.size)

    def entries_of(self, bundle: int) -> Rows:
        """Entries of one bundle."""
        return self.entry[self.stop[bundle - 1] if bundle else 0 : self.stop[bundle]]


class Favour(NamedTuple):
    """Which of a podgroup's tasks are rather surplus than others.

    Attributes
    ----------
    begin
        The first entry of the domain.
    rank: int64[C]
        Of the entries from there on, the one that goes first least, below 2**30; no rows where nothing is favoured.
    """

    begin: int
    rank: Longs


class Units(NamedTuple):
    """What can be reprieved, the most valuable first: a whole bundle, or one task of a safe one.

    Attributes
    ----------
    stop: int64[U]
        Unit ``u`` has the entries ``entry[stop[u - 1]:stop[u]]``.
    entry: int64[C]
    after: int64[U]
        The unit that must have been reprieved before, NONE if there is none: surplus is worth nothing to a broken gang.
    bundle: int64[U]
        The bundle it belongs to.
    """

    stop: Longs
    entry: Rows
    after: Longs
    bundle: Rows


class Ground(NamedTuple):
    """A slice of nodes while victims are tried; the last three change in place.

    Attributes
    ----------
    first
        The slice begins at this node.
    node, shape: int32[M]
        Of the tasks, by entry.
    held: int64[shapes, R]
        What a task of each shape holds.
    request: int64[S, R]
    wanted: int64[S]
    allowed: bool[S, N]
        Shapes of the need: what a task asks for, how many there are, the nodes open to them.
    room: int64[n, R]
    slots: int64[S, n]
        Per node, at most ``wanted``.
    total: int64[S]
        Their sums.
    """

    first: int
    node: Ids
    shape: Ids
    held: Longs
    request: Longs
    wanted: Longs
    allowed: Bools
    room: Longs
    slots: Longs
    total: Longs


class Cost(NamedTuple):
    """What some victims cost, field by field as ``Price`` has it.

    Attributes
    ----------
    head
        The highest ``Groups.level`` of the podgroups that break (preempt), or of all that lose something (reclaim).
    broken_level, broken_work, surplus_level, surplus_work: int64[K], float64[K]
        Work lost by podgroups that break, and by surplus, by level from the highest.
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
    """The victims of one domain: some bundles, their units, which of those returned, and what the others cost.

    Where they do not make room (not ``found``) the rest means nothing.
    """

    found: bool
    bundles: Bundles
    units: Units
    returned: Bools
    cost: Cost


class Site(NamedTuple):
    """The nodes, and what the need asks of them.

    Attributes
    ----------
    start: int64[N + 1]
        Where the entries of each node begin.
    future: int64[N, R]
        Room without evictions.
    request: int64[S, R]
    wanted: int64[S]
    allowed: bool[S, N]
        As in ``Ground``.
    scarce
        The resource that the need asks for most of, against what is free.
    """

    start: Longs
    future: Longs
    request: Longs
    wanted: Longs
    allowed: Bools
    scarce: int
