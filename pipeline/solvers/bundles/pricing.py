"""What the selection in every domain would cost, in one compiled sweep, before any gang is laid out.

Where slots decide (one shape, interchangeable tasks, no quota that is counted along the list), a price needs neither a
layout nor the law. So every domain is priced with the stages of ``selection.select``, and only the cheapest is selected
for good. "Gang-Aware Preemption and Reclaim" looks at a few domains because it holds simulating them all to be
too dear.
"""

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Ids, Longs, Rows
from pipeline.decision.price import NO_PRIORITY, Price
from pipeline.kernels import inlined, kernel
from pipeline.solvers.bundles.bundles import arranged, first, order_of
from pipeline.solvers.bundles.cost import cost_of
from pipeline.solvers.bundles.cover import count_slots, lead, reprieve, units_of
from pipeline.solvers.bundles.records import Bundles, Cost, Costs, Ground, Site, Terms
from pipeline.solvers.bundles.selection import price_of
from pipeline.solvers.bundles.splitting import split
from pipeline.solvers.bundles.terms import Search

#: What became of a domain.
_NOTHING, _PRICED, _LEFT = 0, 1, 2


@inlined
def _fewest_gangs(missing: int, bundles: Bundles, terms: Terms, slots: Longs) -> int:
    """At least so many gangs must stay broken, whatever is reprieved.

    In one resource alone the slots of the need are at most what is free plus what each victim holds of it, rounded up:
    ``slots`` by shape. What is surplus, and podgroups that are no gangs, are counted as gone; of the gangs the largest
    go first.
    """
    size, gangs, begin = np.zeros(len(bundles.stop), np.int64), 0, 0
    for b in range(len(bundles.stop)):
        amount = 0
        for at in range(begin, bundles.stop[b]):
            amount += slots[terms.entries.shape[bundles.entry[at]]]
        begin = bundles.stop[b]
        if bundles.safe[b] or terms.groups.minimum[bundles.podgroup[b]] <= 1:
            missing -= amount
        else:
            size[gangs] = -amount
            gangs += 1
    size[:gangs].sort()
    for fewest in range(gangs):
        if missing <= 0:
            return fewest
        missing += size[fewest]
    return gangs


@inlined
def _idle_slots(site: Site, begin: int, room: Longs) -> int:
    """Slots that the scarce resource alone would give."""
    slots, asked = 0, site.request[0, site.scarce]
    for n in range(len(room)):
        if room[n, site.scarce] >= asked and site.allowed[0, begin + n]:
            slots += room[n, site.scarce] // asked
    return slots


@inlined
def price_domain(site: Site, nodes: tuple[int, int], terms: Terms, seats: Ids, bound: int) -> tuple[int, Cost]:
    """Price the selection on the nodes from the first up to the second; what became of it, and its cost.

    A domain that must break more gangs than ``bound`` is left.
    """
    begin, end = nodes
    nothing = Cost(0, NO_PRIORITY, 0, 0, 0.0, 0)
    room = site.future[begin:end].copy()
    slots, total = count_slots(site.request, site.wanted, site.allowed, begin, room)
    if total[0] >= site.wanted[0]:
        return _PRICED, nothing
    missing = site.wanted[0] - _idle_slots(site, begin, room)
    ground = Ground(
        begin, terms.entries.node, terms.entries.shape, terms.worth.request, site.request, site.wanted, site.allowed,
        room, slots, total,
    )  # fmt: skip
    found = split(site.start[begin], site.start[end], terms, seats)
    found = arranged(found, order_of(found, terms.groups, terms.rules))
    many = lead(found, ground)
    if many == NONE:
        return _NOTHING, nothing
    found = first(found, many)
    if _fewest_gangs(missing, found, terms, site.upper) > bound:
        return _LEFT, nothing
    units = units_of(found, terms.entries, terms.groups, terms.rules, seats)
    returned = np.zeros(len(units.stop), np.bool_)
    reprieve(0, units, returned, True, room[:0], ground)
    return _PRICED, cost_of(found, units, returned, terms, seats)


@kernel
def price_domains(site: Site, starts: Longs, stops: Longs, terms: Terms, seats: Ids) -> Costs:
    """Price the selection on each slice of nodes ``starts[i]:stops[i]``."""
    many = len(starts)
    costs = Costs(
        np.zeros(many, np.uint8), np.zeros(many, np.int64), np.zeros(many, np.int64), np.zeros(many, np.int64),
        np.zeros(many, np.int64), np.zeros(many), np.zeros(many, np.int64),
    )  # fmt: skip
    fewest = len(terms.groups.minimum)
    for at in range(many):
        state, cost = price_domain(site, (starts[at], stops[at]), terms, seats, fewest)
        costs.state[at], costs.gangs_broken[at], costs.highest_priority[at] = (
            state,
            cost.gangs_broken,
            cost.highest_priority,
        )
        costs.queue_rank[at], costs.important[at], costs.lost_work[at] = cost.queue_rank, cost.important, cost.lost_work
        costs.victims[at] = cost.victims
        if state == _PRICED and cost.victims > 0:
            fewest = min(fewest, cost.gangs_broken)
    return costs


def priceable(search: Search) -> bool:
    """Whether slots decide everything in this search."""
    carded = search.snapshot.shapes.on_card[search.need.shapes].any()  # cards are not in the sweep
    one_shape = len(search.need.shapes) == 1 and not carded
    return one_shape and search.interchangeable and search.quota_filter is None


def prices(search: Search, domains: Rows) -> tuple[list[Price | None], Bools]:
    """What the selection in each domain would cost; for searches in which slots decide.

    Returns
    -------
    Per domain the price, None where there is no selection or it was not priced; bool[D]: it was not priced, because it
    must break more gangs than another that was.
    """
    topology = search.snapshot.topology
    costs = price_domains(_site(search), topology.start[domains], topology.stop[domains], search.terms, search.seats())
    priced = [
        price_of(search, int(domain), _cost_at(costs, at)) if costs.state[at] == _PRICED else None
        for at, domain in enumerate(domains)
    ]
    return priced, np.asarray(costs.state == _LEFT)


def _site(search: Search) -> Site:
    snapshot, need = search.snapshot, search.need
    future = snapshot.room.future
    total = np.maximum(future, 0).sum(axis=0)
    scarce = int(np.argmax(need.total / (total + 1.0)))
    upper = -(-snapshot.shapes.request[:, scarce] // need.request[0, scarce])
    return Site(snapshot.occupancy.start, future, need.request, need.count, search.allowed, scarce, upper)


def _cost_at(costs: Costs, at: int) -> Cost:
    return Cost(*(column[at] for column in costs[1:]))
