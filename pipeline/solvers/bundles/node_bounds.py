"""Lower bounds for gangs whose tasks take whole nodes: what the cheapest nodes cost that can be cleared.

A node that takes a task must lose every task that leaves too little of the scarcest resource by staying. So it costs at
least the dearest of the podgroups that break with these, or lose them; and as many nodes must be cleared as tasks lack
one. A podgroup that breaks is paid for once, however many of its nodes are cleared, so its work is divided among the
tasks that stand in the way, or among as many of them as so few nodes have at most: no choice of nodes is charged more
than it loses (cost splitting).
"""

import numpy as np

from pipeline.cluster.arrays import NONE, Ids, Longs
from pipeline.kernels import inlined
from pipeline.placement.layout.packing import slots_at
from pipeline.solvers.bundles.bundling.kinds import HOPELESS, GroupKinds
from pipeline.solvers.bundles.bundling.records import BREAKING, Site, Terms

#: The level of a node that takes a task as it is.
_FREE = -1


@inlined
def bound_by_nodes(
    site: Site, begin: int, end: int, terms: Terms, kinds: GroupKinds, seats: Ids, heads_only: bool
) -> tuple[int, float]:
    """The leading level and the work of a price on the nodes ``begin:end``, at least; see ``CostBounds``."""
    level = _node_levels(site, begin, end, terms, kinds)
    head, lacking, at_head = _cheapest_level(level, site.wanted[0], kinds.levels)
    if heads_only or lacking == 0 or (terms.rules.by_priority and head < BREAKING):
        return head, 0.0
    if terms.rules.by_priority:
        low, lacking = head, at_head
    else:
        low = 0
    return head, _least_work(site, begin, level, low, head, lacking, terms, kinds, seats)


@inlined
def _node_levels(site: Site, begin: int, end: int, terms: Terms, kinds: GroupKinds) -> Longs:
    """int64[n]: the level of the price that clearing each node of ``begin:end`` reaches at least.

    ``_FREE`` where nothing has to go, HOPELESS where the node takes no task whatever goes.
    """
    result = np.full(end - begin, HOPELESS, np.int64)
    start, candidate, podgroup = site.start, terms.entries.candidate, terms.entries.podgroup
    shape, of, reached = terms.entries.shape, kinds.of, _reached(kinds, terms.rules.by_priority)
    amount = kinds.amount
    for n in range(begin, end):
        if not site.allowed[0, n]:
            continue
        if slots_at(site.request, 0, site.future, n, 1) > 0:
            result[n - begin] = _FREE
            continue
        spare, level = site.future[n, site.scarce] - site.request[0, site.scarce], 0
        for entry in range(start[n], start[n + 1]):
            spare += amount[np.uint32(shape[entry])] * candidate[entry]
        for entry in range(
            start[n], start[n + 1]
        ):  # without a branch: what stands in the way differs from task to task
            held = amount[np.uint32(shape[entry])] * candidate[entry]
            level = max(level, reached[of[np.uint32(podgroup[entry])]] * (held > max(spare, 0)))
        if spare >= 0:
            result[n - begin] = level
    return result


@inlined
def _spare(site: Site, node: int, terms: Terms, kinds: GroupKinds) -> int:
    """How much more than a task asks for the node has of the scarcest resource once every candidate has left."""
    entries, there = terms.entries, site.future[node, site.scarce] - site.request[0, site.scarce]
    for entry in range(site.start[node], site.start[node + 1]):
        there += kinds.amount[entries.shape[entry]] * entries.candidate[entry]
    return int(there)


@inlined
def _reached(kinds: GroupKinds, by_priority: bool) -> Longs:
    """int64: by kind of podgroup the leading level that a price has at least if one of its tasks goes."""
    result = np.zeros(1 + 3 * kinds.levels, np.int64)
    result[0] = HOPELESS
    for kind in range(1, len(result)):
        result[kind] = (kind - 1) % kinds.levels + (BREAKING if by_priority and kind <= kinds.levels else 0)
    return result


@inlined
def _cheapest_level(level: Longs, wanted: int, levels: int) -> tuple[int, int, int]:
    """The lowest level up to which enough nodes can be cleared; HOPELESS if all are too few.

    Also how many nodes have to be cleared, and how many of them at that level.
    """
    many = np.zeros((2, levels), np.int64)
    for one in level:
        if one == _FREE:
            wanted -= 1
        elif one < HOPELESS:
            many[one // BREAKING, one % BREAKING] += 1
    lacking = wanted
    for breaking in range(2 if wanted > 0 else 0):
        for highest in range(levels):
            if many[breaking, highest] >= wanted:
                return breaking * BREAKING + highest, lacking, wanted
            wanted -= many[breaking, highest]
    return (HOPELESS if wanted > 0 else 0), 0, 0


@inlined
def _least_work(
    site: Site, begin: int, level: Longs, low: int, high: int, wanted: int, terms: Terms, kinds: GroupKinds, seats: Ids
) -> float:
    """The least work that clearing ``wanted`` nodes of the levels from ``low`` to ``high`` loses.

    In preempt (``low`` is ``high``) that of podgroups of this level, in reclaim of all that break.
    """
    many, groups, podgroup = len(level), 0, terms.entries.podgroup
    group = np.empty(site.start[begin + many] - site.start[begin], np.int64)
    tasks, last = np.zeros(len(group), np.int64), np.full(len(group), NONE, np.int64)
    here, most = np.zeros(len(group), np.int64), np.zeros(len(group), np.int64)
    work, nodes = np.zeros(many), 0
    for sums in (False, True):  # first the tasks of each podgroup are counted, then its work is divided among them
        for at in range(many):
            if not low <= level[at] <= high:
                continue
            spare = _spare(site, begin + at, terms, kinds)
            for entry in range(site.start[begin + at], site.start[begin + at + 1]):
                owner = podgroup[entry]
                kind = np.int64(kinds.of[owner])
                held = kinds.amount[terms.entries.shape[entry]] * terms.entries.candidate[entry]
                if held <= spare or not 1 + low % BREAKING <= kind <= 1 + high % BREAKING:
                    continue
                if sums:
                    shared_by = min(tasks[seats[owner]], wanted * most[seats[owner]])
                    work[nodes] += terms.groups.cost[owner] * terms.groups.lost_work[owner] / shared_by
                    continue
                if seats[owner] == NONE:
                    seats[owner], group[groups] = groups, owner
                    groups += 1
                seat = seats[owner]
                here[seat] = here[seat] + 1 if last[seat] == at else 1
                last[seat], most[seat] = at, max(most[seat], here[seat])
                tasks[seat] += 1
            nodes += int(sums)
    for owner in group[:groups]:
        seats[owner] = NONE
    return float(np.sort(work[:nodes])[:wanted].sum())
