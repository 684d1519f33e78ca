"""Cheaper victims than those that bundles and their order give: found by local search, proved by placing the gang."""

import numpy as np

from pipeline.cluster.arrays import Rows, is_among
from pipeline.decision.price import Price
from pipeline.records import replace
from pipeline.solvers.bundles.bundling.records import Outcome
from pipeline.solvers.bundles.covering.chosen import Selection, price_in_domain
from pipeline.solvers.bundles.covering.domain_bundles import DomainBundles
from pipeline.solvers.bundles.covering.every_set import saves, selected_of
from pipeline.solvers.bundles.covering.free_room import FreeRoom
from pipeline.solvers.bundles.covering.local_search.cheaper_sets import cheaper_sets
from pipeline.solvers.bundles.covering.proof import is_least
from pipeline.solvers.bundles.covering.sets import outcome_of_set
from pipeline.solvers.bundles.covering.step_budget import StepBudget, budget_of
from pipeline.solvers.bundles.nearly import breaks_fewer, margin_of

#: Above every priority.
ANY = (1 << 31) - 1


def of_local_search(here: DomainBundles, best: Selection) -> Selection:
    """The cheapest selection that a local search finds from ``best`` on, or ``best``.

    Where policy ranks priority after work, a higher priority than that of ``best`` is touched only if this saves much.
    """
    search, highest = here.search, best.price.highest_priority
    budget = budget_of(len(search.snapshot.nodes), search.need.minimum, reclaims=not search.rules.by_priority)
    if search.rules.asks_in_order:  # what queues can lose is not known there, and sets of few queues would be refused
        budget = budget._replace(fairer=0)
    if len(best.victims) == 0 or budget.steps == 0 or is_least(here, best):
        return best
    # Surplus of any priority is cheaper than a podgroup that breaks; beside other surplus, a higher priority is dearer.
    some = _improved(here, best, ANY if search.rules.by_priority and best.price.broken else highest, budget)
    begins_anew = some is not best or highest < here.highest_priority
    if not budget.higher or not begins_anew or not _may_save(here, some.price):
        return some
    other = _improved(here, some, ANY, budget)
    return other if saves(other.price, some.price, search.rules.tolerance) else some


def _may_save(here: DomainBundles, price: Price) -> bool:
    """Whether podgroups of a higher priority may save as much as they have to, see ``saves``, as far as bounds say."""
    least = here.least
    if least is None or least.queue_rank != price.queue_rank or any(work > 0 for _, work in price.surplus):
        return True
    cheapest = replace(price, broken=least.broken, highest_priority=here.highest_priority)
    return saves(cheapest, price, here.search.rules.tolerance)


def _improved(here: DomainBundles, best: Selection, highest: int, budget: StepBudget) -> Selection:
    """The cheapest of the selections without podgroups of a priority above ``highest``."""
    leaving, margin = np.sort(best.entry), margin_of(here.search.rules)
    spared = leaving[~is_among(here.search.terms.entries.podgroup[leaving], best.broken)]
    found = searched(here, spared, best.broken, (highest, best.price.queue_rank), budget, margin)
    return _preferred(here, best, found, leaving, margin)


def _preferred(here: DomainBundles, best: Selection, found: list[Outcome], leaving: Rows, margin: float) -> Selection:
    """The preferred selection of ``best`` and the sets. The last set is tried first, since it is mostly lawful."""

    def better(price: Price, than: Price) -> bool:
        return price < than or breaks_fewer(price, than, margin)

    prices, last, lowest = [price_in_domain(here.search, here.domain, one.cost) for one in found], None, best.price
    for at, price in enumerate(prices):
        if better(price, lowest):
            last, lowest = at, price
    if last is None or (lowest == best.price and lowest.gangs_broken == best.price.gangs_broken):
        return best  # what is cheaper than the best breaks more than what is as cheap
    selected = selected_of(here, found[last], leaving) if better(lowest, best.price) else None
    if selected is not None:
        return selected
    for one, price in zip(found, prices, strict=True):
        if better(price, best.price):
            best = selected_of(here, one, leaving) or best
    return best


def searched(
    here: DomainBundles, leaving: Rows, breaking: Rows, highest: tuple[int, int], budget: StepBudget, margin: float
) -> list[Outcome]:
    """What a local search that begins with some victims finds; see ``cheaper_sets``."""
    search, terms, free = here.search, here.search.terms, FreeRoom(here.search, here.domain)
    sets = cheaper_sets(
        search.site, here.nodes, free.ground, free.asked, terms, search.seats(), leaving, breaking, highest, budget,
        margin,
    )  # fmt: skip
    return [outcome_of_set(sets, at, terms, search.seats()) for at in range(len(sets.gone))]
