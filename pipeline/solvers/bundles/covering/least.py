"""The victims of one domain where slots decide: cover, reprieve and improve, from one order of bundles or another.

A cover is the fewest leading bundles that make room. Bundles are in the policy's order; for gangs that take whole nodes
the order by nodes (``node_clearing``) is tried too. The cheaper outcome is kept.
"""

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Ids, Longs
from pipeline.kernels import inlined, kernel, linked, shared, writing
from pipeline.placement.layout.packing import slots_at
from pipeline.placement.room.ground import Ground, lead
from pipeline.solvers.bundles.bundling.bundles import arranged, first, left_by_quota, order_of
from pipeline.solvers.bundles.bundling.cost import cost_of, is_cheaper
from pipeline.solvers.bundles.bundling.records import Bundles, Favour, Outcome, Rules, Site, Terms, Units
from pipeline.solvers.bundles.bundling.splitting import split
from pipeline.solvers.bundles.covering.cover import ground_of, reprieve, units_of
from pipeline.solvers.bundles.covering.fairest import of_fairest
from pipeline.solvers.bundles.covering.unit_class.branch_and_bound import costs_of
from pipeline.solvers.bundles.covering.unit_class.improve import improve_class

#: The highest rank of favour, and the steps that a unit of the need is divided into.
_LAST = (1 << 30) - 1
_FINE = 1 << 20


@inlined
def _of_a_class(bundles: Bundles, one: int, other: int, terms: Terms) -> bool:
    """Whether policy ranks two bundles equal; never if the order of bundles is to be kept."""
    if terms.rules.keep_order or bundles.safe[one] != bundles.safe[other]:
        return one == other
    before = terms.groups.rank_before
    return bool(before[bundles.podgroup[one]] == before[bundles.podgroup[other]])


@linked
def least_of(bundles: Bundles, ground: Ground, terms: Terms, seats: Ids, effort: int) -> Outcome:
    """The cheapest victims among the leading bundles, and the bundles that policy ranks equal to the last of them.

    Parameters
    ----------
    ground
        Before any eviction; changed.
    effort
        How many steps branch and bound may take; 0: the set after the reprieve is not improved.
    """
    count = lead(bundles.stop, bundles.entry, ground)
    pool = max(count, 0)
    if effort > 0 and count > 0:
        while pool < len(bundles.stop) and _of_a_class(bundles, count - 1, pool, terms):
            pool += 1
    found = first(bundles, pool)
    units = units_of(found, terms.entries, terms.groups, terms.rules, seats)
    gone = np.zeros(len(units.stop), np.bool_)
    for unit in range(len(gone)):
        gone[unit] = units.bundle[unit] < count
    if count != NONE:
        _settle(found, units, gone, ground, terms, effort)
    returned = ~gone
    return Outcome(count != NONE, found, units, returned, cost_of(found, units, returned, terms, seats))


@inlined
def _settle(bundles: Bundles, units: Units, gone: Bools, ground: Ground, terms: Terms, effort: int) -> None:
    """Reprieve class by class, the one that policy takes last first, and improve the set of each."""
    if effort == 0:
        returned = ~gone
        reprieve(0, units, returned, True, ground.room[:0], returned[:0], ground)
        gone[:] = ~returned
        return
    cost, place = costs_of(bundles, units, terms), np.full(len(ground.room), NONE, np.int64)
    begin = 0
    while begin < len(gone):
        end = begin + 1
        while end < len(gone) and _of_a_class(bundles, units.bundle[begin], units.bundle[end], terms):
            end += 1
        returned = ~gone
        for unit in range(end, len(gone)):
            returned[unit] = True  # not their turn yet
        reprieve(begin, units, returned, True, ground.room[:0], returned[:0], ground)
        for unit in range(begin, end):
            gone[unit] = not returned[unit]
        effort = improve_class(begin, end, units, gone, cost, ground, place, terms.rules.tolerance, effort)
        begin = end


@writing("seats")
def selected(
    asked: Bundles, in_order: bool, site: Site, nodes: tuple[int, int], terms: Terms, seats: Ids, effort: int
) -> Outcome:
    """The victims on the nodes from the first up to the second: the cheapest set of several ways, see `solved`.

    ``in_order``: among the bundles ``asked`` in their order, of the fairest queues if these are enough.
    """
    # One kernel for both, since nearly all of either is what they share.
    if not in_order:
        return solved(site, nodes, terms, seats, effort)
    favour = indifferent()
    copied = arranged(asked, np.arange(len(asked.podgroup)))  # what is asked is read only, what is found is not
    some = of_fairest(copied, favour, site, nodes, terms, seats)
    return _in_either_order(some, favour, site, nodes, terms, seats, effort)


@linked
def solved(site: Site, nodes: tuple[int, int], terms: Terms, seats: Ids, effort: int) -> Outcome:
    """The victims on the nodes from the first up to the second: the cheapest set of several ways.

    The surplus of a podgroup is chosen as in "Gang-Aware Preemption and Reclaim" (section 3.4.1); with effort, or where
    that does not suffice, also by the slots that it frees.
    """
    best = _permitted_of(indifferent(), site, nodes, terms, seats, effort)
    if ((effort > 0 and best.cost.victims > 0) or not best.found) and _any_surplus(site, nodes, terms):
        # Where surplus suffices in the one way, podgroups that break would cost more in the other.
        spares = best.found and best.cost.gangs_broken == 0 and best.cost.queue_rank == 0
        some = _whole_kept(terms) if spares else terms
        other = _permitted_of(favour_of(site, nodes, terms), site, nodes, some, seats, effort)
        if other.found and (not best.found or is_cheaper(other.cost, best.cost)):
            best = other
    return best


@inlined
def _whole_kept(terms: Terms) -> Terms:
    """The same where no podgroup may break."""
    of = terms.rules
    rules = Rules(
        False, of.cluster_wide, of.asks_in_order, of.keep_order, of.by_priority, of.efficiency_step, of.tolerance
    )  # fmt: skip
    return Terms(terms.entries, terms.groups, terms.surplus, terms.worth, rules, terms.quota)


@inlined
def _any_surplus(site: Site, nodes: tuple[int, int], terms: Terms) -> bool:
    """Whether any podgroup can lose tasks on these nodes without breaking, so that there is something to favour."""
    for entry in range(site.start[nodes[0]], site.start[nodes[1]]):
        if terms.entries.candidate[entry] and terms.surplus.gang[terms.entries.podgroup[entry]] != 0:
            return True
    return False


@linked
def _permitted_of(favour: Favour, site: Site, nodes: tuple[int, int], terms: Terms, seats: Ids, effort: int) -> Outcome:
    """The same of one way to choose surplus; of the fairest queues, if these are enough."""
    bundles = split(site.start[nodes[0]], site.start[nodes[1]], terms, favour, seats)
    some = of_fairest(bundles, favour, site, nodes, terms, seats)
    while True:  # one call, which the compiler compiles once
        best = _in_either_order(some, favour, site, nodes, terms, seats, effort)
        if best.found or len(some.stop) == len(bundles.stop):
            return best
        some = bundles


@shared
def indifferent() -> Favour:
    """No favour."""
    return Favour(0, np.empty(0, np.int64))


@kernel
def favour_of(site: Site, nodes: tuple[int, int], terms: Terms) -> Favour:
    """Favour tasks that free a slot by themselves, the smallest first; then those whose node then lacks least.

    Tasks of podgroups that are never sorted are not ranked: nothing of them is surplus, or all is and no quota counts.
    """
    begin, end = site.start[nodes[0]], site.start[nodes[1]]
    podgroup, candidate, surplus = terms.entries.podgroup, terms.entries.candidate, terms.surplus.gang
    in_order, counted = terms.rules.asks_in_order, terms.quota.counted
    ground, rank = ground_of(site, nodes, terms), np.empty(end - begin, np.int64)
    asked = max(site.request[0, site.scarce], 1)
    for entry in range(begin, end):
        spare = surplus[podgroup[entry]]
        is_sorted = in_order or spare > 0 or (spare < 0 and counted)
        if not (candidate[entry] and is_sorted):
            rank[entry - begin] = _LAST
            continue
        n, shape = ground.node[entry] - ground.first, ground.shape[entry]
        more = 0
        for r in range(ground.room.shape[1]):
            ground.room[n, r] += ground.held[shape, r]
        for s in range(len(ground.wanted)):
            if ground.allowed[s, ground.first + n]:
                more += slots_at(ground.request, s, ground.room, n, ground.wanted[s]) - ground.slots[s, n]
        lacks = asked - max(ground.room[n, site.scarce], 0) % asked
        for r in range(ground.room.shape[1]):
            ground.room[n, r] -= ground.held[shape, r]
        size = min(int(terms.worth.unit[shape] * _FINE), _LAST // 4)
        if more > 0:
            rank[entry - begin] = size
        else:
            rank[entry - begin] = _LAST // 2 + min(lacks * _FINE // asked, _LAST // 4)
    return Favour(begin, rank)


@linked
def _in_either_order(
    bundles: Bundles, favour: Favour, site: Site, nodes: tuple[int, int], terms: Terms, seats: Ids, effort: int
) -> Outcome:
    """The cheapest set of victims among given bundles, in the policy's order or in that by nodes."""
    best = _in_one_order(bundles, terms.groups.rank_before, favour, site, nodes, terms, seats, effort)
    if len(terms.groups.node_rank) > 0 and (best.found or terms.quota.counted):
        other = _in_one_order(bundles, terms.groups.node_rank, favour, site, nodes, terms, seats, effort)
        if other.found and (not best.found or is_cheaper(other.cost, best.cost)):
            best = other
    return best


@linked
def _in_one_order(
    bundles: Bundles, before: Longs, favour: Favour, site: Site, nodes: tuple[int, int], terms: Terms, seats: Ids,
    effort: int,
) -> Outcome:  # fmt: skip
    """The same in the order of the ranks ``before`` (int64[G], see ``order_of``), as far as quotas go along it."""
    some = arranged(bundles, order_of(bundles, before, terms.groups, terms.rules))
    if terms.quota.counted:
        some = left_by_quota(some, terms, favour, seats)
    return least_of(some, ground_of(site, nodes, terms), terms, seats, effort)
