"""The cheapest of all sets of victims, where these are few: each is tried by placing the gang."""

from itertools import product

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, NONE, Floats, Rows, is_among
from pipeline.decision.price import Price
from pipeline.placement.room.ground import lead
from pipeline.records import replace
from pipeline.solvers.bundles.bundling.bundle_search import BundleSearch
from pipeline.solvers.bundles.bundling.bundles import arranged, first, left_by_quota, order_of, within_quota
from pipeline.solvers.bundles.bundling.cost import cost_of, is_cheaper
from pipeline.solvers.bundles.bundling.records import Bundles, Outcome
from pipeline.solvers.bundles.covering.chosen import Selection, left_by, placed, price_in_domain
from pipeline.solvers.bundles.covering.cover import units_of
from pipeline.solvers.bundles.covering.domain_bundles import DomainBundles
from pipeline.solvers.bundles.covering.exact import MOST, cheapest_sets
from pipeline.solvers.bundles.covering.free_room import FreeRoom
from pipeline.solvers.bundles.covering.least import indifferent
from pipeline.solvers.bundles.covering.sets import outcome_of_set

#: Up to this many units, every set is tried where slots leave a doubt.
_FEW = 8
#: How many sets of a small domain are tried, and how many steps are spent on finding them.
_SETS, _STEPS = 256, 8_000
#: Between these many other sets are tried to put a selection right, fewer in large fleets.
_FEWEST, _MOST, _ALL = 4, 64, 16_000


def of_all_sets(here: DomainBundles, best: Selection | None) -> tuple[Selection | None, bool]:
    """The cheapest of all lawful sets with which the gang places, or ``best``; and whether all sets were tried."""
    search, domain, nodes, terms = here.search, here.domain, here.nodes, here.search.terms
    if here.many_candidates > MOST:
        return best, False
    seats, free = search.seats(), FreeRoom(search, domain)
    known = np.empty(0) if best is None else _by_field(here, best.price)
    sets, every = cheapest_sets(search.site, nodes, free.ground, terms, search.alike, seats, known, _SETS, _STEPS)
    for at in range(len(sets.gone)):
        found = outcome_of_set(sets, at, terms, seats)
        price = price_in_domain(search, domain, found.cost)
        if best is not None and (price >= best.price or not saves(price, best.price, terms.rules.tolerance)):
            continue
        selected = selected_of(here, found, NO_ROWS)
        if selected is not None:
            bundles = here.first_permitted
            leading = first(bundles, max(lead(bundles.stop, bundles.entry, FreeRoom(search, domain).ground), 0)).entry
            return replace(selected, given_back=int((~is_among(leading, selected.entry)).sum())), every
    return best, every and len(sets.gone) < _SETS  # no more are kept


def _by_field(here: DomainBundles, price: Price) -> Floats:
    """float64[F]: a price as ``cheapest_sets`` compares it."""
    level = here.priorities if here.search.rules.by_priority else np.zeros(1, np.int64)
    works = np.full((2, len(level)), -1.0)
    for row, lines in enumerate((price.broken, price.surplus)):
        for one, work in lines:
            works[row, np.searchsorted(-level, -one)] = work
    return np.concatenate(([price.queue_rank], works.ravel(), (price.highest_priority, price.victims)))


def selected_of(here: DomainBundles, found: Outcome, leaving: Rows) -> Selection | None:
    """The set as a selection, if the gang places and the law and the quotas allow it.

    ``leaving`` int64[C]: entries that were to leave before; those that stay count as given back.
    """
    search, chosen = here.search, left_by(here.search, here.domain, found)
    free = FreeRoom(search, here.domain, chosen.entry)
    if not (free.places(chosen) and chosen.lawful() and voted(search, here.domain, found.bundles)):
        return None
    selected = placed(found, chosen, free)
    given_back = int((~is_among(leaving, chosen.entry)).sum())
    return None if selected is None else replace(selected, given_back=given_back)


def tries(nodes: int) -> int:
    """How many other sets are placed and judged to put a selection right, in a fleet of that many nodes."""
    return min(max(_ALL // nodes, _FEWEST), _MOST)


def saves(price: Price, other: Price, tolerance: float) -> bool:
    """Whether the lower of two prices saves so much work that it may take victims of a higher priority."""
    if price.highest_priority <= other.highest_priority or price.queue_rank != other.queue_rank:
        return True
    work = [(sum(lost for _, lost in mine.broken), sum(lost for _, lost in mine.surplus)) for mine in (price, other)]
    saved = next(((less, more) for less, more in zip(*work, strict=True) if less != more), (0.0, 0.0))
    return tolerance == 0 or saved[0] < saved[1] * (1.0 - tolerance)


def voted(search: BundleSearch, domain: int, bundles: Bundles) -> bool:
    """Whether quotas grant all of the bundles when asked about these alone."""
    if search.quota_filter is None:
        return True
    terms = search.terms
    mine = arranged(bundles, order_of(bundles, terms.groups.rank_before, terms.groups, terms.rules))
    if search.counts_quotas:
        left = left_by_quota(mine, terms, indifferent(), search.seats())
    else:
        left = within_quota(mine, search, search.nodes_of(domain))
    return len(left.entry) == len(bundles.entry)


def of_few_units(here: DomainBundles, best: Outcome | None) -> Outcome | None:
    """Where units are few, the cheapest lawful set of all sets, each tried by placing the gang; else ``best``."""
    search, domain, terms, found = here.search, here.domain, here.search.terms, list[tuple[Price, int, Outcome]]()
    leading = here.first_permitted  # a whole bundle is one unit, and each task of a safe one
    if np.count_nonzero(~leading.safe) + leading.size[leading.safe].sum() > _FEW:
        return best
    for bundles in here.permitted:
        units = units_of(bundles, terms.entries, terms.groups, terms.rules, search.seats())
        if len(units.stop) > _FEW:
            return best
        for returned in product((True, False), repeat=len(units.stop)):
            stays = np.array(returned, np.bool_)
            if (stays & (units.after != NONE) & ~stays[units.after]).any():
                continue
            cost = cost_of(bundles, units, stays, terms, search.seats())
            if best is None or is_cheaper(cost, best.cost):
                price, outcome = price_in_domain(search, domain, cost), Outcome(True, bundles, units, stays, cost)
                found.append((price, len(found), outcome))
    for _, _, one in sorted(found, key=lambda entry: entry[:2]):
        chosen = left_by(search, domain, one)
        if FreeRoom(search, domain, chosen.entry).places(chosen) and chosen.lawful():
            return one
    return best
