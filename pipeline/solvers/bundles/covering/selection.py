"""Victims of one domain: bundle, order, vote, cover, reprieve, price.

The steps are those of "Gang-Aware Preemption and Reclaim", section 3.4.1. Differences: room without evictions is used
first; the gang must really be placed, where that algorithm sums resources; victims that are not needed are reprieved;
and the whole selection is priced, so that domains can be compared.
"""

from bisect import bisect_left
from dataclasses import dataclass
from typing import NamedTuple

from pipeline.cluster.arrays import NO_ROWS, NONE, Bools
from pipeline.decision.explanation import Reason
from pipeline.decision.price import Price
from pipeline.solvers.bundles.bundling.bundle_search import BundleSearch
from pipeline.solvers.bundles.bundling.bundles import first
from pipeline.solvers.bundles.bundling.cost import cost_of
from pipeline.solvers.bundles.bundling.records import Outcome
from pipeline.solvers.bundles.covering.cheaper import of_local_search
from pipeline.solvers.bundles.covering.chosen import (
    NO_VICTIMS,
    Chosen,
    Selection,
    all_chosen,
    left_by,
    left_of,
    placed,
    price_in_domain,
)
from pipeline.solvers.bundles.covering.cover import units_of
from pipeline.solvers.bundles.covering.domain_bundles import DomainBundles, least_leading
from pipeline.solvers.bundles.covering.every_set import of_all_sets, of_few_units
from pipeline.solvers.bundles.covering.free_room import FreeRoom
from pipeline.solvers.bundles.covering.put_right.kept_minima import minima_kept
from pipeline.solvers.bundles.covering.put_right.out_of_order import out_of_order
from pipeline.solvers.bundles.covering.put_right.task_priorities import by_task_priority


class _Leading(NamedTuple):
    """The outcome in which leading bundles go, and the nodes after their victims left."""

    outcome: Outcome
    free: FreeRoom


@dataclass(frozen=True)
class Shortfall:
    """Why a domain fell.

    ``room`` and ``reachable`` are slots for each shape, without evictions and after all permitted ones (int64[S] as
    tuples).
    """

    reason: Reason
    room: tuple[int, ...] = ()
    reachable: tuple[int, ...] = ()


def select(search: BundleSearch, domain: int, known: Outcome | None = None) -> Selection | Shortfall:
    """Choose victims in one domain and place the minimum; every refusal is a ``Shortfall``.

    ``known``: the outcome by slots, if a comparison of domains has made it.
    """
    free, nothing = FreeRoom(search, domain), Chosen(search, domain, NO_ROWS, NO_ROWS)
    room = tuple(free.ground.total.tolist())
    places = free.places(nothing)
    if places and nothing.lawful():
        return placed(NO_VICTIMS, nothing, free) or Shortfall(Reason.NO_PACKING, room, room)
    here = DomainBundles(search, domain)
    found = _in_order(here, free, known)
    if found is None and here.ordered.many == 0:
        kept = Reason.NO_PACKING if free.enough else Reason.NO_CANDIDATES
        return Shortfall(Reason.ILLEGAL if places else kept, room, room)
    if not search.rules.keep_order and (search.effort > 0 or found is None):
        found, every = of_all_sets(here, found)
        found = found if every else found and of_local_search(here, found)
    if found is None:
        return _shortfall(here, room)
    return _ranked(here, found)


def select_out_of_order(search: BundleSearch, domain: int, among: int) -> Selection | None:
    """Other victims in a domain where the order of bundles and the quotas leave too little room, or None.

    ``among``: in how many domains they are sought; all together may take as long as one.
    """
    here = DomainBundles(search, domain)
    found = out_of_order(here, among)
    return found and _ranked(here, of_local_search(here, found))


def _ranked(here: DomainBundles, found: Selection) -> Selection:
    """The selection in which no podgroup breaks needlessly, put right if it was polished."""
    found = minima_kept(here, found)
    return by_task_priority(here, found) if here.search.effort > 0 else found


def estimate(search: BundleSearch, domain: int) -> Price | None:
    """The price of the selection where slots decide, without effort, law or placement; None if there is none."""
    found = DomainBundles(search, domain, estimated=True).by_slots()
    return None if found is None else price_in_domain(search, domain, found.cost)


def _shortfall(here: DomainBundles, room: tuple[int, ...]) -> Shortfall:
    """What stood in the way: the law, the vote, or the nodes."""
    search, domain, bundles, permitted = here.search, here.domain, here.ordered, here.first_permitted
    allowed = FreeRoom(search, domain, permitted.entry)
    reachable = tuple(allowed.ground.total.tolist())
    if allowed.places(all_chosen(search, domain, permitted)):
        return Shortfall(Reason.ILLEGAL, room, reachable)
    if FreeRoom(search, domain, bundles.entry).places(all_chosen(search, domain, bundles)):
        return Shortfall(Reason.VETOED, room, reachable)
    return Shortfall(Reason.NO_PACKING if allowed.enough else Reason.UNPLACEABLE, room, reachable)


def _in_order(here: DomainBundles, free: FreeRoom, known: Outcome | None) -> Selection | None:
    """The cheapest victims among those that the order of bundles and the quotas leave, or None.

    The law is asked about the outcome. If it refuses (the gang's own queue may need more victims than the nodes), the
    search is repeated with the law asked at every step. ``free``: without evictions; changed.
    """
    search, domain, found = here.search, here.domain, known or here.by_slots()
    if found is None:
        return None
    chosen = left_by(search, domain, found)
    free.leave(chosen.entry)
    if free.places(chosen) and chosen.lawful():  # where slots are not exact, the gang may not fit after all
        return placed(found, chosen, free)
    return _fairest_by_placing(here, found.cost.queue_rank)


def _fairest_by_placing(here: DomainBundles, least: int) -> Selection | None:
    """Victims of the fairest queues with which the gang places, of ranks from ``least`` on.

    The fairest are tried whose bundles all together make room; if these do not do, ranks above them by bisection.
    """
    ranks = [one for one in here.queue_ranks if one >= least]
    ranks = ranks[bisect_left(ranks, True, key=lambda rank: _make_room(here.of_fairest(rank))) :]
    fairest = _by_placing(here.of_fairest(ranks[0])) if len(ranks) > 1 else None
    best = fairest or _by_placing(here)
    ranks = [] if best is None or fairest else [one for one in ranks[1:] if one < best.price.queue_rank]
    while ranks:
        middle = len(ranks) // 2
        fairer = _by_placing(here.of_fairest(ranks[middle]))
        best, ranks = (fairer, ranks[:middle]) if fairer else (best, ranks[middle + 1 :])
    return best


def _make_room(here: DomainBundles) -> bool:
    """Whether the gang places once all bundles have gone that quotas permit."""
    free, bundles = FreeRoom(here.search, here.domain), here.first_permitted
    free.leave(bundles.entry)
    return free.places(all_chosen(here.search, here.domain, bundles))


def _by_placing(here: DomainBundles) -> Selection | None:
    """The fewest leading bundles that work where slots leave a doubt, or the law refuses what they say.

    They must make room on the nodes; where what is needed of them is refused, below the limits of the queue as well.
    The law is asked about what is needed, since it refuses more than that; and at every step where it still refuses.
    """
    search, domain = here.search, here.domain
    heeded = [] if FreeRoom(search, domain).exact else [(False, False)]  # what slots say alone was refused before
    heeded += [] if search.exceeded is None else [(True, False)]
    least = None
    for by_limits, by_law in (*heeded, (True, True)):
        least = _least(here, by_limits=by_limits, by_law=by_law)
        if by_law or least is None or left_by(search, domain, least.outcome).lawful():
            break
    best = of_few_units(here, None if least is None else least.outcome)
    if best is None or not (chosen := left_by(search, domain, best)).lawful():
        return None
    if least is not None and best is least.outcome:
        return placed(best, chosen, least.free)
    return placed(best, chosen, FreeRoom(search, domain, chosen.entry))


def _least(here: DomainBundles, *, by_limits: bool, by_law: bool) -> _Leading | None:
    """The fewest leading bundles that work, the gang being placed where slots leave a doubt; None if none do."""
    search, domain, bundles, free = here.search, here.domain, here.first_permitted, FreeRoom(here.search, here.domain)
    limited = by_limits and search.exceeded is not None
    least = least_leading(search, bundles) if limited else 0

    def relieving(chosen: Chosen) -> bool:
        return (not limited or chosen.relieves()) and (not by_law or chosen.lawful())

    def leave(count: int) -> Chosen:
        return all_chosen(search, domain, first(bundles, count))

    permits = relieving if by_law or limited else None
    count = NONE if least == NONE else free.cover(bundles, leave, permits, least)
    if count == NONE:
        return None
    terms, leading = search.terms, first(bundles, count)
    units = units_of(leading, terms.entries, terms.groups, terms.rules, search.seats())

    def left(returned: Bools) -> Chosen:
        return left_of(search, domain, leading, units, returned)

    returned = free.reprieve(units, left, permits)
    cost = cost_of(leading, units, returned, terms, search.seats())
    return _Leading(Outcome(True, leading, units, returned, cost), free)
