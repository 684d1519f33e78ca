"""What quotas permit to go while nothing else goes: what they refuse alone, they refuse in every set.

Each queue keeps what it deserves of everything that a set takes, and each budget what it covers. So a set that is
granted leaves more than that once any part of it goes alone.
"""

import numpy as np

from pipeline.cluster.arrays import Ids, Longs, Rows
from pipeline.cluster.rules.sparing import may_go
from pipeline.kernels import inlined, writing
from pipeline.solvers.bundles.bundling.records import Terms
from pipeline.solvers.bundles.bundling.splitting import by_podgroup, may_go_whole


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
