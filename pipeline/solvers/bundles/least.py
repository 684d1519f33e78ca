"""The victims of one domain where slots decide: cover, reprieve and improve, from one order of bundles or another.

A cover is the fewest leading bundles that make room. Its order is the policy's; for gangs that take whole nodes also
the order of the nodes (``node_clearing``). The cheaper outcome is kept.
"""

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Ids
from pipeline.kernels import inlined, kernel
from pipeline.solvers.bundles.bundles import arranged, first, order_of
from pipeline.solvers.bundles.cost import cost_of, is_cheaper
from pipeline.solvers.bundles.cover import count_slots, lead, reprieve, units_of
from pipeline.solvers.bundles.improve import costs_of, improve_class
from pipeline.solvers.bundles.records import Bundles, Ground, Outcome, Site, Terms, Units
from pipeline.solvers.bundles.splitting import split


@kernel
def ground_of(site: Site, nodes: tuple[int, int], terms: Terms) -> Ground:
    """The nodes from the first up to the second, without evictions."""
    begin, end = nodes
    room = site.future[begin:end].copy()
    slots, total = count_slots(site.request, site.wanted, site.allowed, begin, room)
    return Ground(
        begin, terms.entries.node, terms.entries.shape, terms.worth.request, site.request, site.wanted, site.allowed,
        room, slots, total,
    )  # fmt: skip


@inlined
def _of_a_class(bundles: Bundles, one: int, other: int, terms: Terms) -> bool:
    """Whether policy ranks two bundles equal; if the order of bundles is kept, no two are."""
    if terms.rules.keep_order or bundles.safe[one] != bundles.safe[other]:
        return one == other
    before = terms.groups.before
    return bool(before[bundles.podgroup[one]] == before[bundles.podgroup[other]])


@kernel
def least_of(bundles: Bundles, ground: Ground, scarce: int, terms: Terms, seats: Ids, effort: int) -> Outcome:
    """The cheapest victims that leading bundles give, and those that policy ranks equal to the last of them.

    Parameters
    ----------
    ground
        Without evictions; changed.
    effort
        How many steps a branch and bound may take; 0: what the reprieve leaves is not improved.
    """
    count = lead(bundles, ground)
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
        _settle(found, units, gone, ground, scarce, terms, effort)
    returned = ~gone
    return Outcome(count != NONE, found, units, returned, cost_of(found, units, returned, terms, seats))


@inlined
def _settle(
    bundles: Bundles, units: Units, gone: Bools, ground: Ground, scarce: int, terms: Terms, effort: int
) -> None:
    """Reprieve class by class, the most important first, and improve what is left of each."""
    if effort == 0:
        returned = ~gone
        reprieve(0, units, returned, True, ground.room[:0], returned[:0], ground)
        gone[:] = ~returned
        return
    cost = costs_of(bundles, units, terms)
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
        effort = improve_class(begin, end, units, gone, cost, ground, scarce, terms.rules.tolerance, effort)
        begin = end


@kernel
def solved(site: Site, nodes: tuple[int, int], terms: Terms, seats: Ids, effort: int) -> Outcome:
    """The victims on the nodes from the first up to the second: the cheaper of what the orders of bundles give."""
    found = split(site.start[nodes[0]], site.start[nodes[1]], terms, seats)
    return chosen_among(found, site, nodes, terms, seats, effort)


@kernel
def chosen_among(
    bundles: Bundles, site: Site, nodes: tuple[int, int], terms: Terms, seats: Ids, effort: int
) -> Outcome:
    """The same of given bundles, in whatever order."""
    groups, rules = terms.groups, terms.rules
    order = order_of(bundles, groups.before, groups, rules)
    best = least_of(arranged(bundles, order), ground_of(site, nodes, terms), site.scarce, terms, seats, effort)
    if best.found and len(groups.node_rank) > 0:
        order = order_of(bundles, groups.node_rank, groups, rules)
        other = least_of(arranged(bundles, order), ground_of(site, nodes, terms), site.scarce, terms, seats, effort)
        if is_cheaper(other.cost, best.cost):
            best = other
    return best
