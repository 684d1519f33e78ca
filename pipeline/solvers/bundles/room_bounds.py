"""Bounds by room: whether a domain holds the need once all has left that a price allows.

Sums of a resource do not see that what is free is strewn over nodes. Here the room of each node is counted, with all
that may leave it: tasks of podgroups of the price's leading level or lower, and in preempt surplus of all others. A
podgroup of that level whose loss alone exceeds the price stays. What regions then have for the parts of the need says
whether a selection can be that cheap.
"""

import numpy as np

from pipeline.cluster.arrays import Longs
from pipeline.decision.price import EQUAL_WORK, Price, Work
from pipeline.kernels import inlined, kernel
from pipeline.placement.layout.regions_of_parts import AskedOfRegions, may_find_regions
from pipeline.solvers.bundles.bundling.bundle_search import BundleSearch
from pipeline.solvers.bundles.bundling.kinds import GroupKinds
from pipeline.solvers.bundles.bundling.records import Site, Terms

#: More tasks than any podgroup has.
_ALL = (1 << 31) - 1
#: Works are rounded in a price; what they are multiplied with so that no sum is too low.
_ROUNDED_UP = 1 + 1e-9


def may_be_cheap(search: BundleSearch, domain: int, price: Price) -> bool:
    """Whether the room of a domain leaves a chance to a selection whose leading level is that of a price, or lower."""
    asked, nodes = search.asked_of_regions, search.nodes_of(domain)
    if asked is None:
        return True
    level, loss = leading_of(search, price)
    return bool(_holds_up_to(level, loss, search.site, asked, nodes, search.terms, search.kinds))


def leading_of(search: BundleSearch, price: Price) -> tuple[int, float]:
    """The leading level of a price, and the most that one podgroup of that level may lose where it breaks.

    Level 0 if none breaks in preempt.
    """
    if not search.rules.by_priority:
        return price.queue_rank, _rounded_up(price.broken)
    if not price.broken:
        return 0, 0.0
    return 1 + int(np.searchsorted(search.kinds.priority[1:], price.broken[0][0])), _rounded_up(price.broken[:1])


def _rounded_up(works: Work) -> float:
    return sum(work for _, work in works) * _ROUNDED_UP + 2 * EQUAL_WORK


@kernel
def _holds_up_to(
    level: int, loss: float, site: Site, asked: AskedOfRegions, nodes: tuple[int, int], terms: Terms, kinds: GroupKinds
) -> bool:
    """Whether nodes may hold the need once all has left that may go with podgroups of levels up to one.

    Podgroups of that level itself break only if they lose no more than ``loss``.
    """
    (first, last), resources = nodes, asked.request.shape[1]
    room, candidate = site.future[first:last, :resources].copy(), terms.entries.candidate
    for n in range(first, last):
        begin, end = site.start[n], site.start[n + 1]
        for entry in range(begin, end):
            most = _most(terms.entries.podgroup[entry], level, loss, terms, kinds) if candidate[entry] else 0
            if most > 0:
                _leave(entry, begin, end, most, terms, room[n - first])
    return may_find_regions(asked, site.allowed[:, first:last].copy(), room, first)


@inlined
def _most(group: int, level: int, loss: float, terms: Terms, kinds: GroupKinds) -> int:
    """How many tasks a podgroup can lose at most in a selection with podgroups of levels up to one."""
    groups, rules, spare = terms.groups, terms.rules, int(terms.surplus.gang[group])
    reached = groups.level[group] <= level
    if kinds.of[group] == 0 or not (reached or rules.by_priority):
        return 0
    breaks = reached and rules.allow_whole and (groups.complete[group] or not rules.cluster_wide)
    breaks &= groups.level[group] < level or groups.cost[group] * groups.lost_work[group] <= loss
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
