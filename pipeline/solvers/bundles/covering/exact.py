"""The cheapest sets of victims of a small domain, in order of price: branch and bound over podgroups and their tasks.

For every podgroup it is decided whether it breaks; if not, which of its tasks go as surplus. This covers every set,
unlike bundles, which fix what is surplus. A branch is abandoned when the tasks that may still go free too few slots,
when what is decided is more than queues can lose, or costs no less than what is known already, or more than the sets
that are kept. Slots decide; where they leave a doubt (several shapes, anti-affinity, cards, topology inside, the law)
the sets are tried in their order by the caller.

The work is counted in steps, never by the clock; where they run out, the result is the best sets that were seen.
"""

from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Bytes, Floats, Ids, Longs, Rows
from pipeline.cluster.rules.sparing import charge, may_go
from pipeline.decision.price import EQUAL_WORK, NO_PRIORITY
from pipeline.kernels import linked, writing
from pipeline.placement.room.ground import Ground, enough, move
from pipeline.solvers.bundles.bundling.records import Site, Terms
from pipeline.solvers.bundles.bundling.sorting import sort_by
from pipeline.solvers.bundles.bundling.splitting import by_podgroup, levels_of, may_go_whole
from pipeline.solvers.bundles.bundling.surplus import stays_whole
from pipeline.solvers.bundles.covering.sets import Sets

#: Domains with more candidates are not tried.
MOST = 40

#: The ways of a decision, in the order in which they are tried: the victim stays, or goes.
_STAYS, _GOES = 1, 2


class _Tree(NamedTuple):
    """The decisions in their order: at each whether a podgroup (``entry`` is NONE) breaks, or a task of it goes.

    Attributes
    ----------
    group, entry: int64[V]
        Positions in ``owner`` and in ``Sets.entry``.
    twin: bool[V]
        The task is interchangeable with the one before it, and goes only if that one does.
    level: int64[P]
        Where each podgroup's work stands among the levels.
    """

    group: Rows
    entry: Rows
    twin: Bools
    level: Longs


class _Walk(NamedTuple):
    """Where the walk through the tree is.

    Attributes
    ----------
    now: bool[C]
        Entries that have left: they go, or are not decided yet.
    broken: bool[P]
        Podgroups that break.
    cost: float64[V + 1, F]
        What the decisions before each cost: queue rank, work of podgroups that break by level, of surplus by level (-1:
        none), highest priority, victims.
    state: uint8[V + 1]
        At each decision the way that is tried at present (``_STAYS``, ``_GOES``): 0 before the first, and larger than
        ``_GOES`` once both were tried.
    left: int64[Q, R]
        What queues hold without what goes; no rows where no quota is counted.
    charged: bool[V + 1]
        Decisions whose victims are counted there.
    """

    now: Bools
    broken: Bools
    cost: Floats
    state: Bytes
    left: Longs
    charged: Bools


@linked
def _loss(group: int, terms: Terms) -> float:
    return float(terms.groups.cost[group] * terms.groups.lost_work[group])


@linked
def _tree(owner: Rows, start: Longs, local: Rows, may: Bools, alike: Bools, terms: Terms) -> tuple[_Tree, int]:
    """The decisions, costly podgroups first; and how many levels there are."""
    entries, many = terms.entries, len(owner)
    level, levels = levels_of(owner, terms)
    order, high, low = np.arange(many), np.empty(many), np.arange(many)
    for g in range(many):
        high[g] = -_loss(owner[g], terms)
    sort_by(order, high, low)
    sort_by(order, level[order], np.arange(many))  # the highest level first
    group, entry = np.empty(len(local) + many, np.int64), np.empty(len(local) + many, np.int64)
    twin, at = np.zeros(len(local) + many, np.bool_), 0
    for i in range(many):
        g = order[i]
        if may[g]:
            group[at], entry[at] = g, NONE
            at += 1
        if terms.surplus.gang[owner[g]] == 0:
            continue
        mine = np.arange(start[g], start[g + 1])
        first, second = np.empty(len(mine), np.int64), np.empty(len(mine), np.int64)
        for m in range(len(mine)):
            one, task = local[mine[m]], entries.task[local[mine[m]]]
            first[m] = (np.int64(entries.node[one]) << 31) + entries.shape[one]
            second[m] = (np.int64(entries.of_tasks.priority[task]) << 32) - entries.of_tasks.order[task]
        sort_by(mine, first, second)
        for m in range(len(mine)):
            group[at], entry[at] = g, mine[m]
            if m > 0:
                twin[at] = _twins(local[mine[m - 1]], local[mine[m]], alike[mine[m - 1]] and alike[mine[m]], terms)
            at += 1
    return _Tree(group[:at], entry[:at], twin[:at], level), levels


@linked
def _twins(one: int, other: int, alike: bool, terms: Terms) -> bool:
    entries, of_tasks = terms.entries, terms.entries.of_tasks
    first, second = entries.task[one], entries.task[other]
    return bool(
        alike
        and entries.node[one] == entries.node[other]
        and entries.shape[one] == entries.shape[other]
        and of_tasks.role[first] == of_tasks.role[second]
        and of_tasks.subgroup[first] == of_tasks.subgroup[second]
    )


@linked
def _dearer(cost: Floats, other: Floats) -> bool:
    """Whether a cost is at least another, field by field."""
    for field in range(len(cost)):
        if cost[field] < other[field] - EQUAL_WORK:
            return False
        if cost[field] > other[field] + EQUAL_WORK:
            return True
    return True


@linked
def _kept(costs: Floats, gone: Bools, breaks: Bools, many: int, cost: Floats, now: Bools, broken: Bools) -> int:
    """Keep a set in its place among the ``many`` cheapest; how many there are then."""
    at = many
    while at > 0 and not _dearer(cost, costs[at - 1]):
        at -= 1
    if at == len(costs):
        return many
    many = min(many + 1, len(costs))
    for row in range(many - 1, at, -1):
        costs[row], gone[row], breaks[row] = costs[row - 1], gone[row - 1], breaks[row - 1]
    costs[at], gone[at], breaks[at] = cost, now, broken
    return many


@writing("ground", "seats")
def cheapest_sets(
    site: Site, nodes: tuple[int, int], ground: Ground, terms: Terms, alike: Bools, seats: Ids, known: Floats,
    wanted: int, steps: int,
) -> tuple[Sets, bool]:  # fmt: skip
    """The ``wanted`` cheapest sets of victims with slots enough, and whether no other costs less.

    Parameters
    ----------
    ground
        Of the nodes, without evictions; changed.
    alike: bool[M]
        Entries that only node, shape, role and subgroup tell apart from others of their podgroup.
    known: float64[F]
        What a set must cost less than, by field as in ``_Walk.cost``; no rows: any set will do.
    """
    begin, end = site.start[nodes[0]], site.start[nodes[1]]
    owner, start, local, shut = by_podgroup(begin, end, terms.entries, seats)
    none = Sets(owner, start, local, np.zeros((0, len(local)), np.bool_), np.zeros((0, len(owner)), np.bool_))
    if len(local) > MOST or len(local) == 0:
        return none, len(local) == 0
    may = np.zeros(len(owner), np.bool_)
    for g in range(len(owner)):
        may[g] = terms.surplus.gang[owner[g]] >= 0 and may_go_whole(owner[g], shut[g], terms)
    tree, levels = _tree(owner, start, local, may, alike[local], terms)
    many, depth, fields = len(tree.group), 0, 2 * levels + 3
    walk = _Walk(
        now=np.zeros(len(local), np.bool_),
        broken=np.zeros(len(owner), np.bool_),
        cost=np.full((many + 1, fields), -1.0),
        state=np.zeros(many + 1, np.uint8),
        left=terms.quota.allocated.copy(),
        charged=np.zeros(many + 1, np.bool_),
    )
    walk.cost[0, 0], walk.cost[0, fields - 2], walk.cost[0, fields - 1] = 0.0, NO_PRIORITY, 0.0
    for g in range(len(owner)):  # what can neither break nor spare anything stays; everything else is gone at first
        if may[g] or terms.surplus.gang[owner[g]] != 0:
            move(local[start[g] : start[g + 1]], 1, ground)
            walk.now[start[g] : start[g + 1]] = True
    if not enough(ground):
        return none, True
    costs, found = np.empty((wanted, fields)), 0
    gone, breaks = np.zeros((wanted, len(local)), np.bool_), np.zeros((wanted, len(owner)), np.bool_)
    while depth >= 0 and steps > 0:
        steps -= 1
        if depth == many:
            found = _kept(costs, gone, breaks, found, walk.cost[depth], walk.now, walk.broken)
            depth -= 1
            continue
        walk.state[depth] += 1
        if tree.entry[depth] == NONE:
            forward = _podgroup(depth, none, tree, walk, ground, terms)
        else:
            forward = _task(depth, none, tree, walk, ground, terms)
        if walk.state[depth] > _GOES:
            walk.state[depth] = 0
            depth -= 1
            continue
        hopeful = forward and enough(ground) and not (len(known) > 0 and _dearer(walk.cost[depth + 1], known))
        if hopeful and (found < wanted or not _dearer(walk.cost[depth + 1], costs[wanted - 1])):
            depth += 1
    return Sets(owner, start, local, gone[:found], breaks[:found]), depth < 0


@linked
def _podgroup(depth: int, sets: Sets, tree: _Tree, walk: _Walk, ground: Ground, terms: Terms) -> bool:
    """Try the next way of a podgroup: it keeps its minimum, then it breaks, then it is undecided again.

    Returns
    -------
    Whether there was a way left, so that the next decision is to be made.
    """
    g, state = tree.group[depth], walk.state[depth]
    some, rigid = sets.entry[sets.start[g] : sets.start[g + 1]], terms.surplus.gang[sets.owner[g]] == 0
    walk.cost[depth + 1] = walk.cost[depth]
    if state == _STAYS:
        if rigid:
            move(some, -1, ground)
            walk.now[sets.start[g] : sets.start[g + 1]] = False
        return True
    if state == _GOES and rigid:
        move(some, 1, ground)
        walk.now[sets.start[g] : sets.start[g + 1]] = True
    walk.broken[g] = state == _GOES
    if walk.broken[g]:
        owner, running = sets.owner[g], len(some)
        if terms.rules.cluster_wide:
            running = terms.groups.running[owner]
        _charge(walk.cost[depth + 1], owner, 1 + tree.level[g], _loss(owner, terms), running, terms)
    taken = np.zeros(terms.worth.request.shape[1], np.int64)
    if terms.quota.counted and terms.rules.cluster_wide:
        taken[:] = terms.quota.held[sets.owner[g]]
    for entry in some if terms.quota.counted and not terms.rules.cluster_wide else some[:0]:
        taken += terms.worth.request[terms.entries.shape[entry]]
    return bool(_spares(depth, taken, sets.owner[g], walk, terms) and walk.broken[g])


@linked
def _spares(depth: int, taken: Longs, group: int, walk: _Walk, terms: Terms) -> bool:
    """Whether its queue can lose what a podgroup loses with this decision (int64[R]), counted if so; else undone."""
    quota = terms.quota
    if not quota.counted:
        return True
    if walk.charged[depth]:
        charge(taken, quota.queue[group], walk.left, quota.entitled, -1)
        walk.charged[depth] = False
    elif walk.state[depth] == _GOES and may_go(
        taken, quota.queue[group], walk.left, quota.entitled, quota.asking, True
    ):
        charge(taken, quota.queue[group], walk.left, quota.entitled, 1)
        walk.charged[depth] = True
    return bool(walk.charged[depth])


@linked
def _task(depth: int, sets: Sets, tree: _Tree, walk: _Walk, ground: Ground, terms: Terms) -> bool:
    """Try the next way of a task: it stays, then it goes as surplus, then it is undecided again.

    Returns
    -------
    Whether the way is lawful, so that the next decision is to be made.
    """
    g, at, state = tree.group[depth], tree.entry[depth], walk.state[depth]
    owner, some = sets.owner[g], sets.entry[at : at + 1]
    walk.cost[depth + 1] = walk.cost[depth]
    if walk.broken[g]:  # it goes along
        return bool(state == _STAYS)
    if state == _STAYS:
        move(some, -1, ground)
        walk.now[at] = False
        return True
    taken = terms.worth.request[terms.entries.shape[some[0]]]
    spares = _spares(depth, taken, owner, walk, terms)
    if state > _GOES:
        return False
    move(some, 1, ground)
    walk.now[at] = True
    if not spares or (tree.twin[depth] and not walk.now[tree.entry[depth - 1]]):
        return False
    going, many, before = np.empty(len(sets.entry), np.int64), 0, depth
    while before >= 0 and tree.group[before] == g and tree.entry[before] != NONE:
        if walk.now[tree.entry[before]]:
            going[many] = sets.entry[tree.entry[before]]
            many += 1
        before -= 1
    if not stays_whole(going[:many], terms.entries, terms.surplus):
        return False
    work, levels = 0.0, (walk.cost.shape[1] - 3) // 2
    if terms.surplus.gang[owner] >= 0:
        work = terms.worth.unit[terms.entries.shape[some[0]]] * terms.groups.lost_work[owner]
    _charge(walk.cost[depth + 1], owner, 1 + levels + tree.level[g], work, 1, terms)
    return True


@linked
def _charge(cost: Floats, group: int, field: int, work: float, victims: int, terms: Terms) -> None:
    """Add to a cost what some victims of a podgroup lose."""
    cost[0] = max(cost[0], terms.groups.queue_rank[group])
    cost[field] = max(cost[field], 0.0) + work
    cost[-2] = max(cost[-2], terms.groups.priority[group])
    cost[-1] += victims
