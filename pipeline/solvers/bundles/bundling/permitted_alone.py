"""What quotas permit to go while nothing else goes: what they refuse alone, they refuse in every set.

Each queue keeps what it deserves of everything that a set takes, and each budget what it covers. So a set that is
granted leaves more than that once any part of it goes alone. And all sets together free no more than the part that is
worth most of what queues and budgets can lose.
"""

import numpy as np

from pipeline.cluster.arrays import NONE, Floats, Ids, Longs, Rows
from pipeline.cluster.resources import PODS
from pipeline.cluster.rules.sparing import may_go
from pipeline.kernels import inlined, kernel, linked, writing
from pipeline.placement.room.ground import missing_of
from pipeline.solvers.bundles.bundling.records import Site, Terms
from pipeline.solvers.bundles.bundling.splitting import by_podgroup, may_go_whole

#: What a sum of amounts is multiplied with so that it is not too low.
_ROUNDED_UP = 1 + 1e-9


@inlined
def _granted(taken: Longs, group: int, terms: Terms) -> bool:
    """Whether a podgroup may lose ``taken`` (int64[R]) while nothing else goes."""
    quota = terms.quota
    return may_go(taken, quota.queue[group], quota.allocated, quota.entitled, quota.asking, True)


@inlined
def _sum_of(mine: Rows, elsewhere: int, terms: Terms) -> Longs:
    """int64[R]: what goes with a podgroup that breaks, of whose tasks ``mine`` are here and some ``elsewhere``."""
    taken = np.zeros(terms.worth.request.shape[1], np.int64)
    if terms.rules.cluster_wide and elsewhere > 0:
        taken += terms.quota.held[terms.entries.podgroup[mine[0]]]
        return taken
    for entry in mine:
        for r in range(len(taken)):
            taken[r] += terms.worth.request[terms.entries.shape[entry], r]
    return taken


@writing("seats")
def permitted_alone(begin: int, end: int, terms: Terms, seats: Ids) -> tuple[Rows, Rows]:
    """The candidates among the entries ``begin:end``, a slice of nodes, that counted quotas permit alone.

    int64[C]: entries that may go as surplus with no other, or with their podgroup if that may break. int64[K]: the
    podgroups that may break.
    """
    surplus = terms.surplus.gang
    owner, start, local, shut = by_podgroup(begin, end, terms.entries, seats)
    some, broken, kept, breaks = np.empty(len(local), np.int64), np.empty(len(owner), np.int64), 0, 0
    for g in range(len(owner)):
        group, mine = owner[g], local[start[g] : start[g + 1]]
        whole = surplus[group] >= 0 and may_go_whole(group, shut[g], terms)
        whole = whole and _granted(_sum_of(mine, terms.groups.running[group] - len(mine), terms), group, terms)
        if whole:
            broken[breaks] = group
            breaks += 1
        for entry in mine:
            alone = surplus[group] != 0 and _granted(terms.worth.request[terms.entries.shape[entry]], group, terms)
            if whole or alone:
                some[kept] = entry
                kept += 1
    return some[:kept], broken[:breaks]


@kernel
def may_free_enough(some: Rows, nodes: tuple[int, int], site: Site, terms: Terms) -> bool:
    """Whether some entries (int64[C]) may free what nodes lack of the scarce resource while all quotas are kept."""
    if site.scarce == NONE:
        return True
    asked = site.request, site.wanted, site.allowed, site.scarce
    missing = missing_of(*asked, site.future[nodes[0] : nodes[1]], nodes[0])
    most, many = _most_freed(some, site.scarce, terms)
    answer, queues, sum_ = terms.quota.asking.answer, len(most), 0.0
    for queue in range(queues):
        least = np.inf if many[queue, 0] > 0 else 0.0
        for at in range(answer.shape[1] if many[queue, 0] > 0 else 0):
            if answer[queue, at] != NONE:
                least = min(least, most[answer[queue, at]])
        sum_ += least
    for row in range(queues):
        sum_ = min(sum_, most[row]) if many[row, 1] == len(some) else sum_
    return bool(sum_ * _ROUNDED_UP >= missing)


@linked
def _most_freed(some: Rows, scarce: int, terms: Terms) -> tuple[Floats, Longs]:
    """float64[Q]: how much of the scarce resource those entries free at most for which a queue answers.

    And int64[Q, 2]: how many of them are its own, and for how many it answers.
    """
    quota, request = terms.quota, terms.worth.request
    queues, resources = quota.allocated.shape
    held, many = np.zeros(queues), np.zeros((queues, 2), np.int64)
    without, ratio = np.zeros((queues, resources)), np.zeros((queues, resources))
    for entry in some:
        taken, queue = request[terms.entries.shape[entry]], quota.queue[terms.entries.podgroup[entry]]
        many[queue, 0] += 1
        for row in quota.asking.answer[queue]:
            if row == NONE:
                break
            many[row, 1] += 1
            held[row] += taken[scarce]
            for r in range(resources):
                if taken[r] <= 0:
                    without[row, r] += taken[scarce]
                else:
                    ratio[row, r] = max(ratio[row, r], taken[scarce] / taken[r])
    for row in range(queues):
        for r in range(resources):
            if r != PODS and quota.entitled.counts[row, r]:
                spare = max(quota.allocated[row, r] - quota.entitled.deserved[row, r], 0)
                held[row] = min(held[row], without[row, r] + ratio[row, r] * spare)
    return held, many
