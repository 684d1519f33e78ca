"""Victims of one domain: bundle, order, vote, cover, reprieve, price.

The steps are those of "Gang-Aware Preemption and Reclaim", section 3.4.1. Where we differ: room without evictions comes
first; the gang must really place, where the design sums resources up; what is not needed is reprieved; and the whole
selection is priced, so that domains can be compared.
"""

from dataclasses import dataclass

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Ids, Longs, Rows
from pipeline.decision.explanation import Reason, VictimBundle
from pipeline.decision.price import Price
from pipeline.kernels import kernel
from pipeline.solvers.bundles.bundles import NO_BUNDLES, arranged, first, order_of, within_quota
from pipeline.solvers.bundles.cost import cost_of
from pipeline.solvers.bundles.cover import units_of
from pipeline.solvers.bundles.free_room import FreeRoom
from pipeline.solvers.bundles.records import Bundles, Cost, Units
from pipeline.solvers.bundles.splitting import split
from pipeline.solvers.bundles.terms import Search


@dataclass(frozen=True)
class Selection:
    """Victims in one domain, and a node for every task of the minimum.

    Attributes
    ----------
    victims: int64[V]
        Task rows, ascending, those outside the domain included.
    node: int64[minimum]
        Node rows, in the order of ``need.tasks``.
    """

    victims: Rows
    node: Rows
    price: Price
    bundles: tuple[VictimBundle, ...]
    given_back: int


@dataclass(frozen=True)
class Shortfall:
    """Why a domain fell; slots for the shape that is shortest, without evictions and with all permitted ones."""

    reason: Reason
    room: int = 0
    reachable: int = 0


def select(search: Search, domain: int) -> Selection | Shortfall:
    """Choose victims in one domain and place the minimum, or say why it cannot be done.

    Every refusal is a ``Shortfall``.
    """
    free = _free_room(search, domain)
    room = free.shortest
    nobody = np.zeros(0, np.int64)
    nothing = _Outcome(search, domain, NO_BUNDLES, Units(nobody, nobody, nobody, nobody), np.zeros(0, np.bool_))
    if free.places(nothing.left.victims) and nothing.left.lawful():
        return _selected(nothing, free) or Shortfall(Reason.UNPLACEABLE, room, room)
    bundles = bundles_of(search, domain)
    if bundles.many == 0:
        return Shortfall(Reason.NO_CANDIDATES, room, room)
    permitted = bundles
    if search.quota_filter is not None:
        nodes = search.nodes_of(domain)
        permitted = within_quota(bundles, search.quota_filter, search.snapshot, nodes, cluster_wide=search.cluster_wide)
    return _cheapest(search, domain, permitted) or _shortfall(search, domain, bundles, permitted, room)


def bundles_of(search: Search, domain: int) -> Bundles:
    """The bundles of a domain, in order, before the vote (the design's phases 1 and 2)."""
    start, (first_node, last_node) = search.snapshot.occupancy.start, search.nodes_of(domain)
    terms, seats = search.terms, search.seats()
    bundles = split(int(start[first_node]), int(start[last_node]), terms, seats)
    return arranged(bundles, order_of(bundles, terms.groups, terms.rules))


def _free_room(search: Search, domain: int) -> FreeRoom:
    return FreeRoom(
        search.snapshot, search.need, search.allowed, *search.nodes_of(domain), interchangeable=search.interchangeable
    )


def _shortfall(search: Search, domain: int, bundles: Bundles, permitted: Bundles, room: int) -> Shortfall:
    """Say what was in the way: the law, the vote, or the nodes."""
    everything, allowed = _free_room(search, domain), _free_room(search, domain)
    everything.leave(bundles.entry)
    allowed.leave(permitted.entry)
    reachable = allowed.shortest
    if allowed.places(_all_of(search, domain, permitted).victims):
        return Shortfall(Reason.ILLEGAL, room, reachable)
    vetoed = everything.places(_all_of(search, domain, bundles).victims)
    return Shortfall(Reason.VETOED if vetoed else Reason.UNPLACEABLE, room, reachable)


# -- choosing ----------------------------------------------------------------------------------------------------------


@kernel
def _members(
    podgroups: Rows, start: Longs, rows: Rows, candidate: Bools, node: Ids, nodes: tuple[int, int], limit: int
) -> Rows:
    """Running members of the podgroups that lie outside the ``nodes``; at most ``limit``."""
    found, many = np.empty(limit, np.int64), 0
    for group in podgroups:
        for row in rows[start[group] : start[group + 1]]:
            if candidate[row] and not nodes[0] <= node[row] < nodes[1]:
                found[many] = row
                many += 1
    return found[:many]


@dataclass(frozen=True)
class _Chosen:
    """Victims of one domain: their entries int64[C], and the podgroups that break int64[K]."""

    search: Search
    domain: int
    entry: Rows
    broken: Rows

    def victims(self) -> Rows:
        """All victims, ascending: those of the domain, and the members elsewhere that go along."""
        snapshot = self.search.snapshot
        here = snapshot.occupancy.task[self.entry]
        if not self.search.cluster_wide or len(self.broken) == 0:
            return np.sort(here)
        limit = int(self.search.terms.groups.running[self.broken].sum())
        nodes = self.search.nodes_of(self.domain)
        along = _members(self.broken, *snapshot.by_podgroup, self.search.candidate, snapshot.tasks.node, nodes, limit)
        return np.sort(np.concatenate([here, along]))

    def lawful(self) -> bool:
        """Whether they may go together."""
        return self.search.validate_set is None or self.search.validate_set(self.victims())


def _all_of(search: Search, domain: int, bundles: Bundles) -> _Chosen:
    """Everybody in the bundles."""
    return _Chosen(search, domain, bundles.entry, bundles.podgroup[~bundles.safe])


@dataclass(frozen=True)
class _Outcome:
    """Leading bundles, their units, and which of those were reprieved."""

    search: Search
    domain: int
    bundles: Bundles
    units: Units
    returned: Bools

    @property
    def left(self) -> _Chosen:
        """The victims."""
        size = np.diff(self.units.stop, prepend=0)
        gone = self.units.bundle[~self.returned]
        broken = self.bundles.podgroup[gone[~self.bundles.safe[gone]]]
        return _Chosen(self.search, self.domain, self.units.entry[np.repeat(~self.returned, size)], broken)

    def cost(self) -> Cost:
        """What they cost."""
        return cost_of(self.bundles, self.units, self.returned, self.search.terms, self.search.seats())

    def told(self) -> tuple[VictimBundle, ...]:
        """The bundles that are victims in the end, in the order in which they were chosen."""
        size = np.diff(self.units.stop, prepend=0)
        tasks = np.zeros(self.bundles.many, np.int64)
        np.add.at(tasks, self.units.bundle[~self.returned], size[~self.returned])
        priority = self.search.snapshot.podgroups.priority
        return tuple(
            VictimBundle(
                int(self.bundles.podgroup[b]),
                bool(self.bundles.safe[b]),
                int(tasks[b]),
                int(self.bundles.elsewhere[b]),
                int(priority[self.bundles.podgroup[b]]),
                0.0 if self.bundles.safe[b] else round(float(self.bundles.efficiency[b]), 6),
            )
            for b in np.flatnonzero(tasks).tolist()
        )


def _cheapest(search: Search, domain: int, bundles: Bundles) -> Selection | None:
    """Cover with the fewest leading bundles, then reprieve.

    The law is asked about the outcome. Where it refuses (the gang's own queue may need more victims than the nodes do),
    the search is repeated with the law asked at every step.
    """
    for by_law in (False, True):
        free = _free_room(search, domain)
        chosen = _least(search, domain, free, bundles, by_law=by_law)
        if chosen is None:
            return None
        if chosen.left.lawful():
            return _selected(chosen, free)
    return None


def _least(search: Search, domain: int, free: FreeRoom, bundles: Bundles, *, by_law: bool) -> _Outcome | None:
    """The least that works of the bundles in their order; None if nothing does."""

    def works(chosen: _Chosen) -> bool:
        return free.places(chosen.victims) and not (by_law and not chosen.lawful())

    def leading_work(count: int) -> bool:
        return works(_all_of(search, domain, first(bundles, count)))

    slots_decide = free.exact and not by_law
    count = free.cover(bundles, None if slots_decide else leading_work)
    if count == NONE:
        return None
    terms, leading = search.terms, first(bundles, count)
    units = units_of(leading, terms.entries, terms.groups, terms.rules, search.seats())

    def rest(returned: Bools) -> _Outcome:
        return _Outcome(search, domain, leading, units, returned)

    returned = free.reprieve(
        units, None if slots_decide else lambda returned: works(rest(returned).left), lawful=by_law
    )
    return rest(returned)


def _selected(chosen: _Outcome, free: FreeRoom) -> Selection | None:
    """Lay the gang out and price what it takes; None if no layout is found."""
    search, victims = chosen.search, chosen.left.victims()
    node = free.arranged(victims)
    if node is None:
        return None
    violated = 0 if search.violations is None else search.violations(victims)
    price = price_of(search, chosen.domain, chosen.cost(), violated)
    return Selection(
        victims, node, price, chosen.told(), int(np.diff(chosen.units.stop, prepend=0)[chosen.returned].sum())
    )


def price_of(search: Search, domain: int, cost: Cost, budgets_violated: int = 0) -> Price:
    """The price of victims in a domain."""
    return Price(
        budgets_violated=budgets_violated,
        gangs_broken=int(cost.gangs_broken),
        highest_priority=int(cost.highest_priority),
        unfairness=int(cost.queue_rank),
        important=int(cost.important),
        lost_work=round(float(cost.lost_work), 6),
        victims=int(cost.victims),
        tier=int(search.snapshot.topology.tier[domain]),
        domain=domain,
    )
