"""What domains would cost, before any is selected: estimates of all, then prices with effort of the cheapest.

An estimate is of its domain alone, so estimates may be made in parts elsewhere. Which domains are looked at with effort
is decided once, on the whole survey. So how the domains were cut never shows in a decision.
"""

from functools import partial

import numpy as np

from pipeline.cluster.arrays import Bools, Rows
from pipeline.decision.attempt import Survey
from pipeline.decision.price import Price, compared
from pipeline.kernels import both
from pipeline.placement.need import Need
from pipeline.records import replace
from pipeline.solvers.bundles.bundling.bundle_search import BundleSearch
from pipeline.solvers.bundles.bundling.kinds import HOPELESS
from pipeline.solvers.bundles.bundling.records import BREAKING, Outcome
from pipeline.solvers.bundles.covering.chosen import price_in_domain
from pipeline.solvers.bundles.covering.domain_bundles import DomainBundles
from pipeline.solvers.bundles.covering.selection import estimate
from pipeline.solvers.bundles.lower_bounds import CostBounds, bounds_with_levels, cost_bounds, hopeless
from pipeline.solvers.bundles.nearly import margin_of
from pipeline.solvers.bundles.pricing import NO_PRICE, Leading, leading_of, may_be_preferred, prices_within
from pipeline.solvers.bundles.sum_bounds import LevelsNeeded

#: From this many tasks on, two threads make branch and bound, and bounds: about half a millisecond's work.
_OUTCOMES_FOR_TWO, _BOUNDS_FOR_TWO = 2_000, 150_000
#: Of many domains, this many with the lowest estimates are looked at with effort.
_RIVALS = 3


def slots_decide(need: Need) -> bool:
    """Whether slots decide what makes room, where tasks of the need are interchangeable."""
    return len(need.shapes) == 1


def priceable(search: BundleSearch) -> bool:
    """Whether slots decide everything in this search, so that all domains can be priced in one sweep."""
    return slots_decide(search.need) and not search.rules.asks_in_order


def estimable(search: BundleSearch, domains: Rows) -> Bools:
    """bool[D]: domains that can be estimated: slots decide there, and tasks of the need are interchangeable."""
    if not slots_decide(search.need):
        return np.zeros(len(domains), bool)
    return search.interchangeable(domains)


def survey_of(search: BundleSearch, domains: Rows) -> Survey:
    """Estimates of those domains that can be estimated and are not hopeless."""
    some = np.sort(domains[~hopeless(search, domains)])
    return estimates(search, some[estimable(search, some)])


def estimates(search: BundleSearch, domains: Rows) -> Survey:
    """Estimates of domains (ascending) that can be estimated."""
    if not priceable(search):
        return _one_by_one(search, domains)
    # By one thread: most are left out for what is found on the way, and two threads would find it twice.
    return prices_within(search, domains, *_heads(search, domains), np.zeros(len(domains), np.bool_), 0)


def _heads(search: BundleSearch, domains: Rows) -> tuple[CostBounds, LevelsNeeded]:
    """The lower bounds of some domains without work, which is bounded only where it is asked for."""
    bounded = partial(bounds_with_levels, search, heads_only=True)
    middle = _middle(search, domains, _BOUNDS_FOR_TWO)
    if middle == 0:
        return bounded(domains)
    halves = both(partial(bounded, domains[:middle]), partial(bounded, domains[middle:]))
    bounds, levels = (
        [np.concatenate(columns) for columns in zip(*parts, strict=True)] for parts in zip(*halves, strict=True)
    )
    return CostBounds(*bounds), LevelsNeeded(*levels)


def _best(search: BundleSearch, survey: Survey) -> Leading:
    """The leading level of the lowest estimate."""
    lowest = np.lexsort((survey.work, survey.head))[:1].tolist()
    price = survey.price[lowest[0]] if lowest else None
    if price is None:
        return NO_PRICE
    head, work = int(survey.head[lowest[0]]), float(survey.work[lowest[0]])
    return leading_of(head, work, price.gangs_broken, margin_of(search.rules))


def _reaching(bounds: CostBounds, best: Leading) -> Bools:
    """bool[D]: bounds that allow a price that may be preferred to the best; see ``may_be_preferred``."""
    return np.asarray(may_be_preferred(bounds.head, bounds.work, best))


def _middle(search: BundleSearch, domains: Rows, enough: int) -> int:
    """Where to cut the domains, so that each of two threads has half of the tasks.

    0 if they have fewer than ``enough`` tasks: one thread does all.
    """
    topology, start = search.snapshot.topology, search.site.start
    tasks = np.cumsum(start[topology.stop[domains]] - start[topology.start[domains]])
    if len(domains) < 2 or tasks[-1] < enough:  # noqa: PLR2004 - one domain is not cut
        return 0
    return min(int(np.searchsorted(tasks, tasks[-1] // 2)) + 1, len(domains) - 1)


def _one_by_one(search: BundleSearch, domains: Rows) -> Survey:
    """The same where plugins are asked about each list of bundles: best first, until no bound can beat an estimate."""
    bounds = cost_bounds(search, domains)
    price: list[Price | None] = [None] * len(domains)
    priced, cheapest = np.zeros(len(domains), bool), None
    for at in np.lexsort((bounds.work, bounds.head)).tolist():
        if cheapest is not None and not could_beat(search, bounds, at, cheapest):
            break
        priced[at], price[at] = True, estimate(search, int(domains[at]))
        cheapest = min((one for one in (cheapest, price[at]) if one is not None), default=None)
    return Survey(domains, *bounds, priced, np.full(len(domains), HOPELESS), np.zeros(len(domains)), tuple(price))


def contested(search: BundleSearch, survey: Survey) -> tuple[Survey, dict[int, Outcome]]:
    """The whole survey with prices with effort for the cheapest, less estimates that only a part of it needed.

    Returns the outcomes of the cheapest as well, by domain: one of them is selected next.
    """
    survey = replace(survey, priced=survey.priced & _within_reach(search, survey))
    known = ((at, price) for at, price in enumerate(survey.price) if price is not None and survey.priced[at])
    order = sorted(known, key=lambda one: compared(one[1]))
    cheapest = order[0][1] if order else None
    if not priceable(search) or search.effort == 0 or cheapest is None or cheapest.victims == 0:
        return survey, {}
    rivals = sorted(at for at, _ in order[:_RIVALS] if could_beat(search, bounds_of(survey), at, cheapest))
    if len(rivals) < 2:  # noqa: PLR2004 - an only one is selected anyway
        return survey, {}
    outcomes, price = _with_effort(search, survey.domain[rivals]), list(survey.price)
    for at in rivals:
        found = outcomes.get(domain := int(survey.domain[at]))
        price[at] = price[at] if found is None else price_in_domain(search, domain, found.cost)
    return replace(survey, price=tuple(price)), outcomes


def _with_effort(search: BundleSearch, domains: Rows) -> dict[int, Outcome]:
    """The outcomes of branch and bound in a few domains."""

    def found(some: Rows) -> list[tuple[int, Outcome | None]]:
        return [(domain, DomainBundles(search, domain).by_slots()) for domain in some.tolist()]

    middle = _middle(search, domains, _OUTCOMES_FOR_TWO)
    halves = both(partial(found, domains[:middle]), partial(found, domains[middle:])) if middle else (found(domains),)
    return {domain: one for half in halves for domain, one in half if one is not None}


def _within_reach(search: BundleSearch, survey: Survey) -> Bools:
    """bool[D]: domains whose bounds allow a price that is not above the lowest estimate of all."""
    if priceable(search):
        return _reaching(bounds_of(survey), _best(search, survey))
    cheapest = min((price for price in survey.price if price is not None), default=None)
    if cheapest is None:
        return np.ones(len(survey.domain), bool)
    bounds = bounds_of(survey)
    return np.array([could_beat(search, bounds, at, cheapest) for at in range(len(survey.domain))], bool)


def bounds_of(survey: Survey) -> CostBounds:
    """The lower bounds of a survey's domains."""
    return CostBounds(survey.least_head, survey.least_priority, survey.least_work)


def could_beat(search: BundleSearch, bounds: CostBounds, at: int, price: Price) -> bool:
    """Whether the domain's lower bound allows a lower price than ``price``."""
    head, work = int(bounds.head[at]), float(bounds.work[at])
    if not search.rules.by_priority:
        return (head, work) <= (price.queue_rank, sum(lost for _, lost in price.broken))
    least = ((int(bounds.priority[at]), work),)
    if head >= BREAKING:
        return least <= price.broken
    return head == 0 or bool(price.broken) or least <= price.surplus
