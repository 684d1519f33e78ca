"""What a search task by task reads and writes: columns of the fleet, of its decisions, and of a kind of tasks.

A decision changes one node, the podgroups and queues of its victims, and those of the task. ``Fleet`` follows each
decision once; a ``TaskKind`` follows all of them when it is looked at again. Both are written in place, and belong to
one search.
"""

from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import Bools, Bytes, Counts, Floats, Ids, Longs, Rows
from pipeline.cluster.counted.minima import Have, Minima
from pipeline.cluster.counted.node_scores import ScoreTerms
from pipeline.cluster.rules.quota import LosingOrder
from pipeline.cluster.rules.sparing import Asking, Entitled
from pipeline.kernels import inlined, shared
from pipeline.solvers.tasks.sweeping.victim_order import VictimOrder

#: Whether a task fits a node without victims: not, once terminating tasks have ended, now.
FULL, LATER, NOW = range(3)


class FixedColumns(NamedTuple):
    """Columns of the snapshot that no decision of a search changes.

    Attributes
    ----------
    start: int64[N + 1], resident: int64[M]
        Tasks by the node that they hold.
    minima
        What podgroups need.
    allocatable: int64[N, R]
        Of nodes.
    The others are columns of tasks, podgroups (``queue``, ``namespace``) and shapes (``asks``, ``on_card``).
    """

    start: Longs
    resident: Rows
    podgroup: Ids
    shape: Ids
    card: Ids
    nominated_card: Ids
    role: Ids
    subgroup: Ids
    priority: Ids
    created: Floats
    label_set: Ids
    queue: Ids
    namespace: Ids
    asks: Longs
    on_card: Longs
    minima: Minima
    allocatable: Longs


class Decisions(NamedTuple):
    """The decisions of a search, in order; written where a decision is made.

    Attributes
    ----------
    many: int64[2]
        How many there are, and how many of them the fleet has followed.
    task, node, card: int64[K]
        The task that got a place, and where.
    victims, released: int64[V], int64[W]
        Task rows; those of decision ``k`` begin at ``first_victim[k]`` and ``first_released[k]`` (int64[K + 1]).
    """

    many: Longs
    task: Rows
    node: Rows
    card: Rows
    first_victim: Longs
    victims: Rows
    first_released: Longs
    released: Rows


class Fleet(NamedTuple):
    """What decisions change.

    Attributes
    ----------
    future: int64[N, R], cards: int64[N, D]
        Future room; ``idle`` and ``idle_cards`` are what is idle, and stay.
    gone: bool[T]
        Victims.
    ready: int32[G]
        How many tasks of each podgroup are ready.
    have
        What podgroups have towards their minima without promises.
    left: int64[Q, R]
        What queues hold, where quotas on victims are counted.
    held: int64[Q, R]
        What they hold, where their limits are counted.
    allowed: int64[P]
        How many tasks each disruption budget lets go, where they are counted.
    says_ready: bool[P]
        Which keys of podgroups (``VictimOrder.jobs``) are 1 for one that is ready, and change with it.
    """

    future: Longs
    idle: Longs
    cards: Longs
    idle_cards: Longs
    gone: Bools
    ready: Counts
    have: Have
    left: Longs
    held: Longs
    allowed: Longs
    says_ready: Bools


class TaskKind(NamedTuple):
    """Tasks that are interchangeable in a search: how each node stands to one of them.

    Attributes
    ----------
    request: int64[R], part
        What it asks for, of a node and of one card.
    simulated, spreads
        Whether nodes are compared by simulation; whether it gets the emptiest card.
    allowed: bool[N], may: bool[T]
        Nodes that it may use, resources aside; candidates, each judged alone.
    victim_order
        Of its candidates; its ``jobs`` are those of all kinds.
    spares, counts, strict, entitled, asking
        See ``NodeCase``.
    namespace: int32[P], covers: bool[P, A]
        See ``Budgets``.
    limited, parent, ceiling
        Whether limits of queues are counted, and ``QueueLimits``.
    ranks, losing
        Whether the order of queues to take from is counted, and from what it follows.
    above: int64[A]
        The task's queue and its ancestors, itself first; none if limits are not counted.
    fits: uint8[N], hopeful: bool[N]
        FULL, LATER or NOW; whether there would be room without all candidates and released nominations.
    withheld: bool[N], sets: int64[1]
        See ``kinds.Withheld``.
    terms
        What scores of nodes follow from.
    score: float64[N], scored: bool[N]
        How well the task goes on a node, and whether that is up to date.
    order: int64[N], region: int64[2]
        The nodes of a region (start, stop) that matter (``fits`` or ``hopeful``), best first, as many as
        ``many[RANKED]``.
    unscored: int64[N]
        Nodes that need a score, as many as ``many[UNSCORED]``.
    releasable, released_from: int64[W]
        Tasks that lose their nominations in a simulation, and the nodes that they are promised (NONE: not any more).
    repels: uint8[A, T], domain: int64[A, N], repelled: int64[N]
        By anti-affinity term, which tasks keep this kind away and the domain of each node (NONE: none); how often tasks
        do so on each node.
    many: int64[5]
        Counts, by the names below.
    """

    request: Longs
    part: int
    simulated: bool
    spreads: bool
    allowed: Bools
    may: Bools
    victim_order: VictimOrder
    spares: bool
    counts: bool
    strict: bool
    entitled: Entitled
    asking: Asking
    namespace: Ids
    covers: Bools
    limited: bool
    ranks: bool
    losing: LosingOrder
    parent: Ids
    ceiling: Longs
    above: Rows
    fits: Bytes
    hopeful: Bools
    withheld: Bools
    sets: Longs
    terms: ScoreTerms
    score: Floats
    scored: Bools
    order: Rows
    region: Longs
    unscored: Rows
    releasable: Rows
    released_from: Rows
    repels: Bytes
    domain: Longs
    repelled: Longs
    many: Longs


#: In ``TaskKind.many``: nodes in ``order``; nodes in ``unscored``; decisions that the kind has followed (NONE: it has
#: not looked at any node yet); nodes by how the task fits, from LATER and NOW on.
RANKED, UNSCORED, FOLLOWED, FITTING_LATER, FITTING_NOW = range(5)


@shared
def decide(decisions: Decisions, task: int, node: int, card: int, victims: Rows, released: Rows) -> None:
    """Write a decision down; it is followed when the next task is searched for."""
    at = decisions.many[0]
    decisions.task[at], decisions.node[at], decisions.card[at] = task, node, card
    first = decisions.first_victim[at]
    for k in range(len(victims)):
        decisions.victims[first + k] = victims[k]
    decisions.first_victim[at + 1] = first + len(victims)
    first = decisions.first_released[at]
    for k in range(len(released)):
        decisions.released[first + k] = released[k]
    decisions.first_released[at + 1] = first + len(released)
    decisions.many[0] = at + 1


@inlined
def candidates_on(start: Longs, resident: Rows, may: Bools, gone: Bools, node: int) -> Rows:
    """int64[C]: the candidates of a node, by row; the arguments are columns by those names."""
    found, many = np.empty(start[node + 1] - start[node], np.int64), 0
    for at in range(start[node], start[node + 1]):
        row = resident[at]
        if may[row] and not gone[row]:
            found[many] = row
            many += 1
    return found[:many]


@inlined
def released_on(releasable: Rows, released_from: Rows, node: int) -> Rows:
    """int64[W]: tasks that lose nominations to a node; the arguments are columns by those names."""
    found, many = np.empty(len(releasable), np.int64), 0
    for at in range(len(releasable)):
        if released_from[at] == node:
            found[many] = releasable[at]
            many += 1
    return found[:many]
