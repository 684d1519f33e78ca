"""The victims that may be chosen in one domain, and those that are chosen at the moment.

Bundles fix what is surplus. Here every podgroup with candidates in the domain may break, and any of its tasks may go as
surplus, as far as its minima and the queues' quotas allow.
"""

from typing import NamedTuple

from pipeline.cluster.arrays import Bools, Counts, Floats, Longs, Rows
from pipeline.cluster.rules.sparing import Asking, Entitled, charge, may_go
from pipeline.decision.price import NO_PRIORITY
from pipeline.kernels import inlined, linked
from pipeline.placement.kept_places import KeptPlaces
from pipeline.placement.layout.settled_groups import AskedPlaces
from pipeline.placement.room.ground import Ground, come_back, leave

#: The weight of work of a level relative to the level above, and the last level that counts.
_LEVEL, _LAST = 1e-3, 3
#: Nodes are compared in blocks of as many as have these bits of their row of their own.
BLOCK_BITS = 5


class PartRegions(NamedTuple):
    """Parts of the gang that go into one region each, and the regions of the slice; no rows where there are none.

    Attributes
    ----------
    part: int64[P, S]
        How many tasks of each shape each has, the largest first.
    begin, end: int64[Q]
        The first node of each region in the slice, and the one after its last.
    node: int64[n]
        The region of each node; NONE for a node in none.
    most
        How many parts a region takes at most.
    """

    part: Longs
    begin: Rows
    end: Rows
    node: Rows
    most: int


class GangPlaces(NamedTuple):
    """Places of the gang.

    Attributes
    ----------
    asked, kept
        What it asks of the nodes, without groups where slots decide; and the places that are kept for it.
    regions
        The regions of its parts.
    """

    asked: AskedPlaces
    kept: KeptPlaces
    regions: PartRegions


class VictimPool(NamedTuple):
    """Podgroups with candidates here, and their entries; the same for the whole search.

    Attributes
    ----------
    owner, start, entry
        As in ``Sets``.
    seat, at: int64[C]
        Of each entry the position of its podgroup in ``owner``, and of its node in the slice.
    may: bool[P]
        Podgroups that may break.
    spare: int64[P]
        What each can lose as surplus; negative: everything, for it is broken already.
    free: bool[C]
        Entries that may be surplus.
    role: int64[C]
    level, victims, priority, queue_rank, queue: int64[P]
        Of each podgroup; the levels of work begin with 0, the highest. ``victims`` go when it breaks.
    loss: float64[P]
        Work lost by each that breaks.
    work: float64[C]
        Work lost by an entry as surplus.
    rare: float64[C]
        How little its podgroup, and its role, can spare beside what they have here: from next to nothing up to 1; once
        multipliers are known, what it costs by these (``multipliers``).
    whole, single: float64[C]
        The weight of an entry in the price of a node, with its podgroup and as surplus: all levels on one scale.
    size: float64[C]
        What it holds of the scarce resource.
    node: int64[n + 1]
    on: int64[C]
        Positions of entries by node.
    here: bool[S, n]
        Nodes open to each shape of the need.
    counted
        Whether there are quotas; if so:
    amount: int64[P, R]
        What they count of a podgroup that breaks.
    """

    owner: Rows
    start: Longs
    entry: Rows
    seat: Rows
    at: Rows
    may: Bools
    spare: Longs
    free: Bools
    role: Longs
    level: Longs
    victims: Longs
    priority: Longs
    queue_rank: Longs
    queue: Longs
    loss: Floats
    work: Floats
    rare: Floats
    whole: Floats
    single: Floats
    size: Floats
    node: Longs
    on: Rows
    here: Bools
    counted: bool
    amount: Longs
    entitled: Entitled
    asking: Asking


class State(NamedTuple):
    """Which entries have left, and what follows from that.

    Attributes
    ----------
    gone: bool[C]
    broken: bool[P]
    taken: int64[P]
        Entries that go as surplus.
    work: float64[P]
        The work that these lose.
    role: int32[L]
        What roles can still spare.
    left: int64[Q, R]
        What queues still hold.
    may: bool[P]
        Podgroups that may break at present.
    tabu, refused: bool[P]
        Podgroups that may not break in this step, and those whose surplus their queue cannot lose now.
    closed: bool[n]
        Nodes that are not cleared in this step.
    ratio: float64[n]
        The price of a slot on each node; negative: to be worked out.
    lowest: float64[B], cheapest: int64[B]
        Of each block of nodes (see ``BLOCK_BITS``) the lowest price while nodes are cleared, as it is blurred then
        (negative: to be worked out), and whose it is.
    lacks: bool[S]
        Shapes of the need that lack room at present; slots for others are worth nothing.
    slots: int64[S]
        Scratch for the slots of one node.
    """

    gone: Bools
    broken: Bools
    taken: Longs
    work: Floats
    role: Counts
    left: Longs
    may: Bools
    tabu: Bools
    refused: Bools
    closed: Bools
    ratio: Floats
    lowest: Floats
    cheapest: Longs
    lacks: Bools
    slots: Longs


@inlined
def weight_of(level: int) -> float:
    """The weight of work of a level, 0 for the highest: all on one scale."""
    return float(_LEVEL ** min(level, _LAST))


@inlined
def stale(g: int, pool: VictimPool, state: State) -> None:
    """Mark the prices of a podgroup's nodes as out of date."""
    ratio, lowest, at = state.ratio, state.lowest, pool.at
    for i in range(pool.start[g], pool.start[g + 1]):
        ratio[at[i]] = lowest[at[i] >> BLOCK_BITS] = -1.0


@linked
def shut_above(rank: float, pool: VictimPool, state: State) -> None:
    """Leave podgroups of queues above a rank alone from now on: fairness comes first in a price."""
    for g in range(len(pool.owner)):
        if pool.queue_rank[g] > rank:
            pool.may[g] = state.may[g] = False
            pool.free[pool.start[g] : pool.start[g + 1]] = False
            stale(g, pool, state)


@linked
def may_go_as_surplus(i: int, pool: VictimPool, state: State, ground: Ground) -> bool:
    """Whether an entry may go as surplus beside what is gone; a refusal of the quota holds for the step."""
    g = pool.seat[i]
    spare, role = pool.spare[g], pool.role[i]
    if not pool.free[i] or state.gone[i] or (spare >= 0 and state.taken[g] >= spare):
        return False
    if role >= 0 and spare >= 0 and state.role[role] <= 0:
        return False
    if not pool.counted:
        return True
    asked = ground.held[ground.shape[pool.entry[i]]]
    if may_go(asked, pool.queue[g], state.left, pool.entitled, pool.asking, True):
        return True
    state.refused[g] = True
    stale(g, pool, state)
    return False


@linked
def take(i: int, sign: int, pool: VictimPool, state: State, ground: Ground) -> None:
    """Count an entry as gone (sign 1) as surplus, or as returned (-1)."""
    g, role = pool.seat[i], pool.role[i]
    state.gone[i] = sign > 0
    state.taken[g] += sign
    state.work[g] += sign * pool.work[i]
    if role >= 0:
        state.role[role] -= sign
    if pool.counted:
        charge(ground.held[ground.shape[pool.entry[i]]], pool.queue[g], state.left, pool.entitled, sign)
    state.ratio[pool.at[i]] = state.lowest[pool.at[i] >> BLOCK_BITS] = -1.0
    if pool.spare[g] >= 0:  # prices elsewhere change once nothing is left to spare, or something is again
        last = state.taken[g] == (pool.spare[g] if sign > 0 else pool.spare[g] - 1)
        if last or (role >= 0 and state.role[role] == (0 if sign > 0 else 1)):
            stale(g, pool, state)


@linked
def return_surplus(g: int, pool: VictimPool, state: State, ground: Ground) -> None:
    """Let what went as surplus return."""
    if state.taken[g] > 0:
        for i in range(pool.start[g], pool.start[g + 1]):
            if state.gone[i]:
                come_back(pool.entry[i : i + 1], ground)
                take(i, -1, pool, state, ground)


@linked
def break_up(g: int, pool: VictimPool, state: State, ground: Ground) -> bool:
    """Let a podgroup go whole, if its queue can lose it; its surplus is no longer counted."""
    return_surplus(g, pool, state, ground)
    if pool.counted:
        if not may_go(pool.amount[g], pool.queue[g], state.left, pool.entitled, pool.asking, True):
            state.tabu[g] = True
            stale(g, pool, state)
            return False
        charge(pool.amount[g], pool.queue[g], state.left, pool.entitled, 1)
    leave(pool.entry[pool.start[g] : pool.start[g + 1]], ground)
    for i in range(pool.start[g], pool.start[g + 1]):
        state.gone[i] = True
    state.broken[g] = True
    stale(g, pool, state)
    return True


@linked
def count_back(g: int, pool: VictimPool, state: State) -> None:
    """Count a podgroup as returned."""
    for i in range(pool.start[g], pool.start[g + 1]):
        state.gone[i] = False
    state.broken[g] = False
    if pool.counted:
        charge(pool.amount[g], pool.queue[g], state.left, pool.entitled, -1)
    stale(g, pool, state)


@linked
def come_back_whole(g: int, pool: VictimPool, state: State, ground: Ground) -> None:
    """Let everything of a podgroup return."""
    if state.broken[g]:
        come_back(pool.entry[pool.start[g] : pool.start[g + 1]], ground)
        count_back(g, pool, state)
    else:
        return_surplus(g, pool, state, ground)


@linked
def write_cost(pool: VictimPool, state: State, cost: Floats) -> None:
    """Write the price of the state.

    Its fields: queue rank, work of podgroups that break by level, of surplus by level (-1: none), highest priority,
    victims, podgroups that break.
    """
    levels = (len(cost) - 4) // 2
    cost[:] = -1.0
    cost[0], cost[-3], cost[-2], cost[-1] = 0.0, NO_PRIORITY, 0.0, 0.0
    for g in range(len(pool.owner)):
        if not state.broken[g] and state.taken[g] == 0:
            continue
        field, work, victims = 1 + levels + pool.level[g], state.work[g], state.taken[g]
        if state.broken[g]:
            field, work, victims = 1 + pool.level[g], pool.loss[g], pool.victims[g]
            cost[-1] += 1.0
        cost[0] = max(cost[0], pool.queue_rank[g])
        cost[field] = max(cost[field], 0.0) + work
        cost[-3] = max(cost[-3], pool.priority[g])
        cost[-2] += victims
