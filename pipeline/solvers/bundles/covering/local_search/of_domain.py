"""The victims of one domain as a local search begins with them."""

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Counts, Floats, Ids, Longs, Rows
from pipeline.kernels import linked
from pipeline.solvers.bundles.bundling.records import Ground, Site, Terms
from pipeline.solvers.bundles.bundling.sorting import sort_by
from pipeline.solvers.bundles.bundling.splitting import by_podgroup
from pipeline.solvers.bundles.covering.cover import leave
from pipeline.solvers.bundles.covering.local_search.pool import BLOCK_BITS, State, VictimPool, break_up, take

#: How rare surplus is where all of it can be spared.
_PLENTY = 1e-3


@linked
def _by_node(at: Rows, nodes: int) -> tuple[Longs, Rows]:
    """Positions by the node of each: offsets and positions."""
    start, on = np.zeros(nodes + 1, np.int64), np.empty(len(at), np.int64)
    for i in range(len(at)):
        start[at[i] + 1] += 1
    for n in range(nodes):
        start[n + 1] += start[n]
    fill = start.copy()
    for i in range(len(at)):
        on[fill[at[i]]] = i
        fill[at[i]] += 1
    return start, on


@linked
def _levels(owner: Rows, terms: Terms) -> tuple[Longs, int]:
    """The level of each podgroup, 0 for the highest; how many there are."""
    level = np.zeros(len(owner), np.int64)
    if not terms.rules.by_priority or len(owner) == 0:
        return level, 1
    order, high = np.arange(len(owner)), np.empty(len(owner), np.int64)
    for g in range(len(owner)):
        high[g] = -np.int64(terms.groups.priority[owner[g]])
    sort_by(order, high, order.copy())
    for k in range(1, len(order)):
        level[order[k]] = level[order[k - 1]] + (high[k] != high[k - 1])
    return level, int(level[order[-1]]) + 1


@linked
def _rare(seat: Rows, role: Rows, spare: Longs, of_role: Counts, start: Longs) -> Floats:
    """How little podgroups and roles can spare, see ``VictimPool``."""
    rare, here = np.full(len(seat), _PLENTY), np.zeros(len(of_role), np.int64)
    for i in range(len(seat)):
        if role[i] >= 0:
            here[role[i]] += 1
    for i in range(len(seat)):
        g = seat[i]
        if spare[g] >= 0:
            rare[i] = max(rare[i], 1.0 - spare[g] / (start[g + 1] - start[g]))
            if role[i] >= 0:
                rare[i] = max(rare[i], 1.0 - of_role[role[i]] / here[role[i]])
    return rare


@linked
def pool_of(
    site: Site, nodes: tuple[int, int], here: Bools, terms: Terms, leaving: Rows, highest: tuple[int, int], seats: Ids
) -> tuple[VictimPool, int]:
    """The pool, and how many levels there are.

    ``leaving``: entries that go as surplus at first. ``highest``: podgroups of a higher priority, or of a queue of a
    higher rank, stay.
    """
    begin, end = site.start[nodes[0]], site.start[nodes[1]]
    owner, start, local, shut = by_podgroup(begin, end, terms.entries, seats)
    entries, groups, rules, worth, many = terms.entries, terms.groups, terms.rules, terms.worth, len(local)
    level, levels = _levels(owner, terms)
    less = (groups.priority[owner] <= highest[0]) & (groups.queue_rank[owner] <= highest[1])
    marked = np.zeros(end - begin, np.bool_)
    for entry in leaving:
        marked[entry - begin] = True
    may, free, loss = np.zeros(len(owner), np.bool_), np.zeros(many, np.bool_), np.zeros(len(owner))
    seat, at, role, size = np.empty(many, np.int64), np.empty(many, np.int64), np.empty(many, np.int64), np.empty(many)
    work, whole, single = np.zeros(many), np.zeros(many), np.zeros(many)
    victims, amount = np.diff(start), np.zeros((len(owner), worth.request.shape[1]), np.int64)
    for g in range(len(owner)):
        group = owner[g]
        spare = terms.surplus.gang[group]
        all_may = not shut[g] and (groups.complete[group] or not rules.cluster_wide)
        may[g] = rules.allow_whole and all_may and spare >= 0 and less[g]
        loss[g] = groups.cost[group] * groups.lost_work[group]
        if rules.cluster_wide:
            victims[g] = groups.running[group]
        for i in range(start[g], start[g + 1]):
            entry, task = local[i], entries.task[local[i]]
            shape = entries.shape[entry]
            seat[i], at[i], role[i] = g, entries.node[entry] - nodes[0], entries.of_tasks.role[task]
            size[i] = max(float(worth.request[shape, site.scarce]), 1e-3)
            alone = entries.of_tasks.subgroup[task] == NONE
            free[i] = spare != 0 and less[g] and (alone or spare < 0 or marked[entry - begin])
            if spare >= 0:
                work[i] = worth.unit[shape] * groups.lost_work[group]
            for r in range(amount.shape[1]):
                amount[g, r] += worth.request[shape, r]
        if terms.quota.counted and rules.cluster_wide:
            amount[g] = terms.quota.held[group]
    node, on = _by_node(at, nodes[1] - nodes[0])
    queue = np.zeros(len(owner), np.int64)
    if terms.quota.counted:
        for g in range(len(owner)):
            queue[g] = terms.quota.queue[owner[g]]
    spares = terms.surplus.gang[owner].astype(np.int64)
    rare = _rare(seat, role, spares, terms.surplus.role, start)
    return VictimPool(
        owner, start, local, seat, at, may, spares, free, role, level, victims, groups.priority[owner].astype(np.int64),
        groups.queue_rank[owner], queue, loss, work, rare, whole, single, size, node, on, here, site.scarce,
        terms.quota.counted, amount, terms.quota.entitled, terms.quota.asking,
    ), levels  # fmt: skip


@linked
def begin(
    pool: VictimPool, leaving: Rows, breaking: Rows, role: Counts, left: Longs, ground: Ground, seats: Ids
) -> State:
    """The state in which the given victims are gone."""
    many, blocks = len(pool.owner), (len(ground.room) >> BLOCK_BITS) + 1
    state = State(
        np.zeros(len(pool.entry), np.bool_), np.zeros(many, np.bool_), np.zeros(many, np.int64), np.zeros(many), role,
        left, pool.may.copy(), np.zeros(many, np.bool_), np.zeros(many, np.bool_), np.zeros(len(ground.room), np.bool_),
        np.full(len(ground.room), -1.0), np.full(blocks, -1.0), np.empty(blocks, np.int64),
        np.ones(len(ground.wanted), np.bool_),
        np.zeros(len(ground.wanted), np.int64),
    )  # fmt: skip
    for g in range(many):
        seats[pool.owner[g]] = g
    for group in breaking:
        if seats[group] != NONE:
            break_up(seats[group], pool, state, ground)
    for g in range(many):
        seats[pool.owner[g]] = NONE
    marked = set(leaving)
    for i in range(len(pool.entry)):
        if not state.gone[i] and pool.entry[i] in marked:
            leave(pool.entry[i : i + 1], ground)
            take(i, 1, pool, state, ground)
    return state
