"""What the bundles of a domain make room for: in which domain to begin, and which are left out for a price.

Bounds by sums are too low where room is strewn and surplus is spread over many nodes. Here the bundles leave that a
selection begins with, up to some level, and what regions then have for the parts of the need is counted. That bounds
selections among these bundles. It is no bound where yet other tasks go as surplus, so two choices of it are tried: by
the policy's order, and by the slots that tasks free.
"""

from heapq import heapify, heapreplace

import numpy as np

from pipeline.cluster.arrays import Ids, Longs, Rows
from pipeline.decision.price import EQUAL_WORK, Price, Work
from pipeline.kernels import inlined, writing
from pipeline.placement.layout.regions_of_parts import NOT_ASKED, AskedOfRegions, may_find_regions
from pipeline.solvers.bundles.bundling.bundle_search import BundleSearch
from pipeline.solvers.bundles.bundling.kinds import HOPELESS
from pipeline.solvers.bundles.bundling.records import BREAKING, Bundles, Favour, Site, Terms
from pipeline.solvers.bundles.bundling.splitting import split
from pipeline.solvers.bundles.covering.least import favour_of, indifferent

#: In up to this many domains bundles leave, so that the first one is known.
_LOOKED_AT = 32
#: Works are rounded in a price; what they are multiplied with so that no sum is too low.
_ROUNDED_UP = 1 + 1e-9


def in_order_of_room(search: BundleSearch, domains: Rows, head: Longs, order: Rows) -> Rows:
    """int64[D]: positions of domains in ``order``, but those that need a higher level than theirs wait for its turn.

    As many are looked at as it takes until the first one is known. ``head`` int64[D] as in ``CostBounds``. Domains that
    had to wait come after the others of their level.
    """
    asked = search.asked_of_regions
    if asked is None:
        return order
    turns, known = [(int(head[at]), 0, turn, at) for turn, at in enumerate(order.tolist())], set[int]()
    heapify(turns)
    while len(known) < _LOOKED_AT:
        least, _, turn, at = turns[0]
        if least >= HOPELESS or at in known:
            break
        known.add(at)
        reached = _head_reached(search, int(domains[at]), least)
        if reached > least:
            heapreplace(turns, (reached, 1, turn, at))
    return np.array([at for *_, at in sorted(turns)], np.int64)


def _head_reached(search: BundleSearch, domain: int, head: int) -> int:
    """The head, as in ``CostBounds`` and from one on, up to which bundles leave; HOPELESS if all are too few."""
    breaking = BREAKING if search.rules.by_priority else 0
    begin, last = max(head - breaking, 0), search.kinds.levels - 1
    reached = _reached(search, domain, (begin, last), np.inf, indifferent())
    if reached > last:
        return HOPELESS
    return head if reached == begin else reached + breaking


def bundles_may_reach(search: BundleSearch, domain: int, price: Price) -> bool:
    """Whether bundles of levels up to that of a price may make room in a domain."""
    if search.asked_of_regions is None:
        return True
    level, loss = _leading_of(search, price)
    if _reached(search, domain, (level, level), loss, indifferent()) == level:
        return True
    favour = favour_of(search.site, search.nodes_of(domain), search.terms)
    return _reached(search, domain, (level, level), loss, favour) == level


def _leading_of(search: BundleSearch, price: Price) -> tuple[int, float]:
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


def _reached(search: BundleSearch, domain: int, levels: tuple[int, int], loss: float, favour: Favour) -> int:
    """See ``_level_reached``."""
    asked, nodes = search.asked_of_regions or NOT_ASKED, search.nodes_of(domain)
    return int(_level_reached(levels, loss, favour, search.site, asked, nodes, search.terms, search.seats()))


@writing("seats")
def _level_reached(
    levels: tuple[int, int], loss: float, favour: Favour, site: Site, asked: AskedOfRegions, nodes: tuple[int, int],
    terms: Terms, seats: Ids,
) -> int:  # fmt: skip
    """The least level, from the first to the second, up to which bundles leave enough room; above both if none is.

    Podgroups of that level break only if they lose no more than ``loss``.
    """
    first, last = nodes
    room, allowed = site.future[first:last, : asked.request.shape[1]].copy(), site.allowed[:, first:last].copy()
    bundles = split(site.start[first], site.start[last], terms, favour, seats)
    after, level = -1, levels[0]
    while level <= levels[1]:
        gone = _leave_between(after, level, loss, bundles, terms, first, room)
        if (gone > 0 or level == levels[0]) and may_find_regions(asked, allowed, room, first):
            return level
        after, level = level, level + 1
    return level


@inlined
def _leave_between(after: int, level: int, loss: float, bundles: Bundles, terms: Terms, first: int, room: Longs) -> int:
    """Let bundles leave whose level is above one and up to another; returns how many tasks leave.

    In preempt surplus of all levels leaves with the first ones.
    """
    begin, gone, groups, entries = 0, 0, terms.groups, terms.entries
    for b in range(len(bundles.stop)):
        group, own = bundles.podgroup[b], groups.level[bundles.podgroup[b]]
        dear = not bundles.safe[b] and own == level and groups.cost[group] * groups.lost_work[group] > loss
        if bundles.safe[b] and terms.rules.by_priority:
            own = 0
        if after < own <= level and not dear:
            for entry in bundles.entry[begin : bundles.stop[b]]:
                for r in range(room.shape[1]):
                    room[entries.node[entry] - first, r] += terms.worth.request[entries.shape[entry], r]
            gone += bundles.stop[b] - begin
        begin = bundles.stop[b]
    return gone
