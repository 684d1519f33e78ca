"""Victims of one domain: bundle, order, vote, cover, reprieve, price.

The steps are those of "Gang-Aware Preemption and Reclaim", section 3.4.1. Differences: room without evictions is used
first; the gang must really be placed, where the design sums resources; victims that are not needed are reprieved; and
the whole selection is priced, so that domains can be compared.
"""

from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, NONE, Bools, Ids, Longs, Rows
from pipeline.decision.explanation import Reason, VictimBundle
from pipeline.decision.price import Price
from pipeline.kernels import kernel
from pipeline.solvers.bundles.bundling.bundles import NO_BUNDLES, arranged, counted_off, first, order_of, within_quota
from pipeline.solvers.bundles.bundling.cost import cost_of, is_cheaper
from pipeline.solvers.bundles.bundling.records import Bundles, Cost, Outcome, Units
from pipeline.solvers.bundles.bundling.splitting import split
from pipeline.solvers.bundles.bundling.terms import Search
from pipeline.solvers.bundles.covering.cover import units_of
from pipeline.solvers.bundles.covering.exact import cheapest_sets, outcome_of_set
from pipeline.solvers.bundles.covering.free_room import FreeRoom
from pipeline.solvers.bundles.covering.least import chosen_among, favour_of, indifferent, solved

#: Up to this many units, every set is tried where slots leave a doubt.
_FEW = 8
#: Steps of branch and bound in a domain that is selected, and for its price; 0 for an estimate.
EFFORT = 1_000
#: How many sets of a small domain are tried where slots leave a doubt, and how many steps are spent on finding them.
_SETS, _STEPS = 256, 8_000


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
    """Why a domain fell.

    ``room`` and ``reachable`` are slots for each shape, without evictions and after all permitted ones (int64[S] as
    tuples).
    """

    reason: Reason
    room: tuple[int, ...] = ()
    reachable: tuple[int, ...] = ()


def select(search: Search, domain: int) -> Selection | Shortfall:
    """Choose victims in one domain and place the minimum; every refusal is a ``Shortfall``."""
    free = FreeRoom(search, domain)
    room = tuple(free.ground.total.tolist())
    nothing = _nothing(search)
    places = free.places(_left(search, domain, nothing).victims)
    if places and _left(search, domain, nothing).lawful():
        return _selected(search, domain, nothing, free) or Shortfall(Reason.NO_ARRANGEMENT, room, room)
    bundles = bundles_of(search, domain)
    if bundles.many == 0:
        kept = Reason.NO_ARRANGEMENT if free.enough else Reason.NO_CANDIDATES
        return Shortfall(Reason.ILLEGAL if places else kept, room, room)
    permitted = _permitted(search, domain, bundles, EFFORT)
    return _cheapest(search, domain, permitted) or _shortfall(search, domain, bundles, permitted[0], room)


def estimate(search: Search, domain: int) -> Price | None:
    """The price of the selection where slots decide, without effort, law or placement; None if there is none."""
    found = _by_slots(search, domain, _permitted(search, domain, bundles_of(search, domain), 0), 0)
    return None if found is None else price_of(search, domain, found.cost)


def _permitted(search: Search, domain: int, bundles: Bundles, effort: int) -> list[Bundles]:
    """The bundles that quotas permit: as in the design, with surplus chosen by slots, and in the order of nodes."""
    if search.quota.counted:
        begin = int(search.site.start[search.nodes_of(domain)[0]])
        return [counted_off(bundles, search.terms, indifferent(begin), search.seats())]
    orders = [bundles]
    other = bundles_of(search, domain, favoured=True) if effort else bundles
    if not np.array_equal(other.entry, bundles.entry):
        orders.append(other)
    if search.quota_filter is None:
        return orders
    if search.node_rank is not None:
        terms = search.terms
        orders.append(arranged(bundles, order_of(bundles, terms.groups.node_rank, terms.groups, terms.rules)))
    nodes = search.nodes_of(domain)
    return [
        within_quota(one, search.quota_filter, search.snapshot, nodes, cluster_wide=search.cluster_wide)
        for one in orders
    ]


def _nothing(search: Search) -> Outcome:
    """No victims."""
    returned = np.zeros(0, np.bool_)
    units = Units(NO_ROWS, NO_ROWS, NO_ROWS, NO_ROWS)
    return Outcome(
        True, NO_BUNDLES, units, returned, cost_of(NO_BUNDLES, units, returned, search.terms, search.seats())
    )


def bundles_of(search: Search, domain: int, *, favoured: bool = False) -> Bundles:
    """The bundles of a domain, in order, before the vote (phases 1 and 2 of the design).

    ``favoured``: surplus is chosen by the slots that it frees, not as in the design.
    """
    nodes, terms, site = search.nodes_of(domain), search.terms, search.site
    begin, end = int(site.start[nodes[0]]), int(site.start[nodes[1]])
    favour = favour_of(site, nodes, terms) if favoured else indifferent(begin)
    bundles = split(begin, end, terms, favour, search.seats())
    return arranged(bundles, order_of(bundles, terms.groups.before, terms.groups, terms.rules))


def _shortfall(search: Search, domain: int, bundles: Bundles, permitted: Bundles, room: tuple[int, ...]) -> Shortfall:
    """What was in the way: the law, the vote, or the nodes."""
    everything, allowed = FreeRoom(search, domain), FreeRoom(search, domain)
    everything.leave(bundles.entry)
    allowed.leave(permitted.entry)
    reachable = tuple(allowed.ground.total.tolist())
    if allowed.places(_all_of(search, domain, permitted).victims):
        return Shortfall(Reason.ILLEGAL, room, reachable)
    vetoed = everything.places(_all_of(search, domain, bundles).victims)
    if vetoed:
        return Shortfall(Reason.VETOED, room, reachable)
    return Shortfall(Reason.NO_ARRANGEMENT if allowed.enough else Reason.UNPLACEABLE, room, reachable)


# -- choosing ----------------------------------------------------------------------------------------------------------


@kernel
def _members(
    podgroups: Rows, start: Longs, rows: Rows, candidate: Bools, node: Ids, nodes: tuple[int, int], limit: int
) -> Rows:
    """Running members of the podgroups outside the ``nodes``; at most ``limit``."""
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
        """All victims, ascending: those of the domain, and members elsewhere that go along."""
        snapshot = self.search.snapshot
        here = snapshot.occupancy.task[self.entry]
        if not self.search.cluster_wide or len(self.broken) == 0:
            return np.sort(here)
        limit = int(self.search.terms.groups.running[self.broken].sum())
        nodes = self.search.nodes_of(self.domain)
        along = _members(self.broken, *snapshot.by_podgroup, self.search.candidate, snapshot.tasks.node, nodes, limit)
        return np.sort(np.concatenate([here, along]))

    def lawful(self) -> bool:
        """Whether the victims may go together."""
        return self.search.validate_set is None or self.search.validate_set(self.victims())


def _all_of(search: Search, domain: int, bundles: Bundles) -> _Chosen:
    """All entries of the bundles."""
    return _Chosen(search, domain, bundles.entry, bundles.podgroup[~bundles.safe])


def _left(search: Search, domain: int, outcome: Outcome) -> _Chosen:
    """The victims of an outcome."""
    units, size = outcome.units, np.diff(outcome.units.stop, prepend=0)
    gone = units.bundle[~outcome.returned]
    broken = outcome.bundles.podgroup[gone[~outcome.bundles.safe[gone]]]
    return _Chosen(search, domain, units.entry[np.repeat(~outcome.returned, size)], broken)


def _told(search: Search, outcome: Outcome) -> tuple[VictimBundle, ...]:
    """The bundles of the final victims, in the order in which they were chosen."""
    bundles, size = outcome.bundles, np.diff(outcome.units.stop, prepend=0)
    tasks = np.zeros(bundles.many, np.int64)
    np.add.at(tasks, outcome.units.bundle[~outcome.returned], size[~outcome.returned])
    priority = search.snapshot.podgroups.priority
    return tuple(
        VictimBundle(
            podgroup=int(bundles.podgroup[b]),
            safe=bool(bundles.safe[b]),
            tasks=int(tasks[b]),
            elsewhere=int(bundles.elsewhere[b]),
            priority=int(priority[bundles.podgroup[b]]),
            efficiency=0.0 if bundles.safe[b] else round(float(bundles.efficiency[b]), 6),
        )
        for b in np.flatnonzero(tasks).tolist()
    )


def _in_order(search: Search, domain: int, permitted: list[Bundles]) -> Selection | None:
    """The cheapest victims among those that the order of bundles and the quotas leave, or None.

    The law is asked about the outcome. If it refuses (the gang's own queue may need more victims than the nodes), the
    search is repeated with the law asked at every step.
    """
    free = FreeRoom(search, domain)
    found = _by_slots(search, domain, permitted, EFFORT)
    if found is None:
        return None
    chosen = _left(search, domain, found)
    free.leave(chosen.entry)
    if free.places(chosen.victims) and chosen.lawful():  # where slots are not exact, the gang may not fit after all
        return _selected(search, domain, found, free)
    for by_law in (True,) if free.exact else (False, True):
        least = _least(search, domain, FreeRoom(search, domain), permitted[0], by_law=by_law)
        if by_law or least is None or _left(search, domain, least).lawful():
            break
    least = _of_few(search, domain, permitted, least)
    if least is None or not _left(search, domain, least).lawful():
        return None
    free = FreeRoom(search, domain)
    free.leave(_left(search, domain, least).entry)
    return _selected(search, domain, least, free)


def _cheapest(search: Search, domain: int, permitted: list[Bundles]) -> Selection | None:
    """The cheapest victims: as the order of bundles gives them, or of all sets if those are few."""
    found = _in_order(search, domain, permitted)
    return found if search.keep_order else _of_all(search, domain, permitted[0], found) or found


def _of_all(search: Search, domain: int, bundles: Bundles, best: Selection | None) -> Selection | None:
    """The cheapest set of all there are that places and is lawful, if it is cheaper than the best so far."""
    nodes, seats, terms, free = search.nodes_of(domain), search.seats(), search.terms, FreeRoom(search, domain)
    doubt = not free.exact or search.validate_set is not None or search.quota_filter is not None
    wanted, steps = (_SETS, _STEPS) if doubt else (1, EFFORT)
    sets = cheapest_sets(search.site, nodes, free.ground, terms, search.alike, seats, wanted, steps)
    for at in range(len(sets.gone)):
        found = outcome_of_set(sets, at, terms, seats)
        price = price_of(search, domain, found.cost)
        if best is not None and price >= best.price:
            return None
        if best is not None and not _saves(price, best.price, terms.rules.tolerance):
            continue
        chosen, free = _left(search, domain, found), FreeRoom(search, domain)
        free.leave(chosen.entry)
        if free.places(chosen.victims) and chosen.lawful() and _voted(search, domain, found.bundles):
            selected = _selected(search, domain, found, free)
            if selected is not None:
                count = FreeRoom(search, domain).cover(bundles, None)
                leading = first(bundles, max(count, 0)).entry
                return replace(selected, given_back=int((~np.isin(leading, chosen.entry)).sum()))
    return None


def _saves(price: Price, other: Price, tolerance: float) -> bool:
    """Whether the lower of two prices saves so much work that it may take victims of a higher priority."""
    if price.highest_priority <= other.highest_priority or price.queue_rank != other.queue_rank:
        return True
    work = [(sum(lost for _, lost in mine.broken), sum(lost for _, lost in mine.surplus)) for mine in (price, other)]
    saved = next(((less, more) for less, more in zip(*work, strict=True) if less != more), (0.0, 0.0))
    return tolerance == 0 or saved[0] < saved[1] * (1.0 - tolerance)


def _voted(search: Search, domain: int, bundles: Bundles) -> bool:
    """Whether quotas grant all of the bundles, if it were just them."""
    if search.quota_filter is None:
        return True
    groups, nodes = search.terms.groups, search.nodes_of(domain)
    mine = arranged(bundles, order_of(bundles, groups.before, groups, search.terms.rules))
    left = within_quota(mine, search.quota_filter, search.snapshot, nodes, cluster_wide=search.cluster_wide)
    return len(left.entry) == len(bundles.entry)


def _of_few(search: Search, domain: int, permitted: list[Bundles], best: Outcome | None) -> Outcome | None:
    """Where units are few, the cheapest lawful set of all sets, each tried by placing the gang; else ``best``."""
    terms, found = search.terms, list[tuple[Price, int, Outcome]]()
    for bundles in permitted:
        units = units_of(bundles, terms.entries, terms.groups, terms.rules, search.seats())
        if len(units.stop) > _FEW:
            return best
        for returned in product((True, False), repeat=len(units.stop)):
            stays = np.array(returned, np.bool_)
            if (stays & (units.after != NONE) & ~stays[units.after]).any():
                continue
            cost = cost_of(bundles, units, stays, terms, search.seats())
            if best is None or is_cheaper(cost, best.cost):
                found.append((price_of(search, domain, cost), len(found), Outcome(True, bundles, units, stays, cost)))
    for _, _, one in sorted(found, key=lambda entry: entry[:2]):
        free, chosen = FreeRoom(search, domain), _left(search, domain, one)
        free.leave(chosen.entry)
        if free.places(chosen.victims) and chosen.lawful():
            return one
    return best


def _by_slots(search: Search, domain: int, permitted: list[Bundles], effort: int) -> Outcome | None:
    """The cheapest outcome of the lists of bundles by slots; None if there are too few slots."""
    best: Outcome | None = None
    nodes, seats = search.nodes_of(domain), search.seats()
    if not search.asks_in_order:
        found = solved(search.site, nodes, search.terms, seats, effort)
        return found if found.found else None
    for bundles in permitted:
        found = chosen_among(bundles, search.site, nodes, search.terms, seats, effort)
        if found.found and (best is None or is_cheaper(found.cost, best.cost)):
            best = found
    return best


def _least(search: Search, domain: int, free: FreeRoom, bundles: Bundles, *, by_law: bool) -> Outcome | None:
    """The fewest leading bundles that work, the gang being placed where slots leave a doubt; None if none do."""

    def works(chosen: _Chosen) -> bool:
        return free.places(chosen.victims) and not (by_law and not chosen.lawful())

    def leading_work(count: int) -> bool:
        return works(_all_of(search, domain, first(bundles, count)))

    count = free.cover(bundles, leading_work)
    if count == NONE:
        return None
    terms, leading = search.terms, first(bundles, count)
    units = units_of(leading, terms.entries, terms.groups, terms.rules, search.seats())

    def rest(returned: Bools) -> Outcome:
        cost = cost_of(leading, units, returned, terms, search.seats())
        return Outcome(True, leading, units, returned, cost)

    def still_works(returned: Bools) -> bool:
        return works(_left(search, domain, rest(returned)))

    return rest(free.reprieve(units, still_works, lawful=by_law))


def _selected(search: Search, domain: int, chosen: Outcome, free: FreeRoom) -> Selection | None:
    """Place the gang and price the victims; None if no placement is found."""
    victims = _left(search, domain, chosen).victims()
    node = free.arranged(victims)
    if node is None:
        return None
    price = price_of(search, domain, chosen.cost)
    given_back = int(np.diff(chosen.units.stop, prepend=0)[chosen.returned].sum())
    return Selection(victims, node, price, _told(search, chosen), given_back)


def price_of(search: Search, domain: int, cost: Cost) -> Price:
    """The price of lawful victims in a domain."""
    return Price(
        budgets_violated=0,
        queue_rank=int(cost.queue_rank),
        broken=tuple(zip(cost.broken_level.tolist(), cost.broken_work.tolist(), strict=True)),
        surplus=tuple(zip(cost.surplus_level.tolist(), cost.surplus_work.tolist(), strict=True)),
        highest_priority=int(cost.highest_priority),
        victims=int(cost.victims),
        tier=int(search.snapshot.topology.tier[domain]),
        domain=domain,
        gangs_broken=int(cost.gangs_broken),
    )
