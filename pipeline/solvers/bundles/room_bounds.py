"""Lower bounds by room: whether a domain holds the need once all has left that a price allows.

Sums of a resource do not see that what is free is strewn over nodes. Here the room of each node is counted, with all
that may leave it: tasks of podgroups of the price's leading level or lower, and in preempt surplus of all others. What
regions then have for the parts of the need says whether a selection can be that cheap.
"""

import numpy as np

from pipeline.cluster.arrays import Longs
from pipeline.decision.price import Price
from pipeline.kernels import inlined, kernel
from pipeline.placement.layout.regions_of_parts import AskedOfRegions, may_find_regions
from pipeline.solvers.bundles.bundling.kinds import GroupKinds
from pipeline.solvers.bundles.bundling.records import Site, Terms
from pipeline.solvers.bundles.bundling.terms import BundleSearch

#: More tasks than any podgroup has.
_ALL = (1 << 31) - 1


def may_be_cheap(search: BundleSearch, domain: int, price: Price) -> bool:
    """Whether the room of a domain leaves a chance to a selection whose leading level is that of a price, or lower."""
    asked, level = search.asked_of_regions, price.queue_rank
    if asked is None or (search.by_priority and not price.broken):
        return True
    if search.by_priority:
        level = 1 + int(np.searchsorted(search.kinds.priority[1:], price.broken[0][0]))
    nodes = search.nodes_of(domain)
    return bool(_holds_up_to(level, search.site, asked, nodes, search.terms, search.kinds))


@kernel
def _holds_up_to(
    level: int, site: Site, asked: AskedOfRegions, nodes: tuple[int, int], terms: Terms, kinds: GroupKinds
) -> bool:
    """Whether nodes may hold the need once all has left that may go with podgroups of levels up to one."""
    (first, last), resources = nodes, asked.request.shape[1]
    room, candidate = site.future[first:last, :resources].copy(), terms.entries.candidate
    for n in range(first, last):
        begin, end = site.start[n], site.start[n + 1]
        for entry in range(begin, end):
            most = _most(terms.entries.podgroup[entry], level, terms, kinds) if candidate[entry] else 0
            if most > 0:
                _leave(entry, begin, end, most, terms, room[n - first])
    return may_find_regions(asked, site.allowed[:, first:last].copy(), room, first)


@inlined
def _most(group: int, level: int, terms: Terms, kinds: GroupKinds) -> int:
    """How many tasks a podgroup can lose at most in a selection with podgroups of levels up to one."""
    rules, spare, reached = terms.rules, int(terms.surplus.gang[group]), terms.groups.level[group] <= level
    if kinds.of[group] == 0 or not (reached or rules.by_priority):
        return 0
    breaks = reached and rules.allow_whole and (terms.groups.complete[group] or not rules.cluster_wide)
    return _ALL if spare < 0 or breaks else spare


@inlined
def _leave(entry: int, begin: int, end: int, most: int, terms: Terms, room: Longs) -> None:
    """Add to the room of a node what ``most`` tasks of a podgroup leave at most, once for all of them that are there.

    The entries of the node are those from ``begin`` up to ``end``.
    """
    entries, held, many = terms.entries, terms.worth.request, 0
    group = entries.podgroup[entry]
    for other in range(begin, end):
        if entries.candidate[other] and entries.podgroup[other] == group:
            if other < entry:
                return
            many += 1
    for r in range(len(room)):
        total, largest = 0, 0
        for other in range(entry, end):
            if entries.candidate[other] and entries.podgroup[other] == group:
                amount = held[entries.shape[other], r]
                total, largest = total + amount, max(largest, amount)
        room[r] += total if many <= most else min(total, most * largest)
