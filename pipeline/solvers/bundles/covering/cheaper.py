"""Cheaper victims than those that bundles and their order give: found by local search, proved by placing the gang."""

from math import ceil

import numpy as np

from pipeline.cluster.arrays import Rows, is_among
from pipeline.decision.price import Price
from pipeline.records import replace
from pipeline.solvers.bundles.bundling.records import Outcome
from pipeline.solvers.bundles.covering.chosen import Selection, left_by, placed, price_of
from pipeline.solvers.bundles.covering.domain_bundles import DomainBundles
from pipeline.solvers.bundles.covering.every_set import saves, voted
from pipeline.solvers.bundles.covering.exact import MOST
from pipeline.solvers.bundles.covering.free_room import FreeRoom
from pipeline.solvers.bundles.covering.local_search.cheaper_sets import StepBudget, cheaper_sets
from pipeline.solvers.bundles.covering.proof import is_least
from pipeline.solvers.bundles.covering.sets import outcome_of_set
from pipeline.solvers.bundles.nearly import breaks_fewer, slack_of

#: Steps of the local search in small fleets, for each task of the minimum and in all from the fewest to the most; in
#: larger fleets they fall, from fewer on, faster than the size grows, so that all together take less time. Above the
#: largest there are two, none for few podgroups and no search with a higher priority, and in preempt none at all, since
#: the order of bundles and branch and bound come close there.
_EACH, _FEWEST, _MOST, _FALLING, _SMALL, _LARGE, _LEAST, _TWO = 20, 400, 600, 150, 128, 6_000, 3, 2
#: After how many steps without gain it ends: the first number divided by the nodes, and at least the second; in small
#: fleets at least this part of all steps in reclaim, which searches twice, and in preempt.
_NODE_IDLE, _LEAST_IDLE, _RECLAIM, _PREEMPT = 8_000, 4, 6, 2
#: In small fleets a search has at most this many rounds with multipliers; it and each round make a part of the steps.
_ROUNDS, _PART, _IDLE_PART = 3, 3, 2
#: How often a reclaim looks for victims of fairer queues in small fleets; in larger ones once.
_FAIRER = 8
#: Above every priority.
ANY = (1 << 31) - 1


def of_local_search(here: DomainBundles, best: Selection) -> Selection:
    """The cheapest selection that a local search finds from ``best`` on, or ``best``.

    Where policy ranks priority after work, a higher priority than that of ``best`` is touched only if this saves much.
    """
    search, highest, tolerance = here.search, best.price.highest_priority, here.search.terms.rules.tolerance
    nodes = len(search.snapshot.nodes)
    budget = budget_of(nodes, search.need.minimum, reclaims=tolerance > 0)
    if search.asks_in_order:  # what queues can lose is not known there, and sets of few queues would be refused
        budget = budget._replace(fairer=0)
    if len(best.victims) == 0 or budget.steps == 0 or here.many_candidates <= MOST or is_least(here, best):
        return best
    # Surplus of any priority is cheaper than a podgroup that breaks; beside other surplus, a higher priority is dearer.
    best = _improved(here, best, ANY if tolerance == 0 and best.price.broken else highest, budget)
    if tolerance > 0 and nodes <= _LARGE and highest < search.snapshot.podgroups.priority.max(initial=highest):
        other = _improved(here, best, ANY, budget)
        best = other if saves(other.price, best.price, tolerance) else best
    return best


def budget_of(nodes: int, minimum: int, *, reclaims: bool) -> StepBudget:
    """How long the search may go on in a fleet of some nodes."""
    idle = _LEAST_IDLE + _NODE_IDLE // nodes
    if nodes <= _SMALL:
        steps = min(max(_EACH * minimum, _FEWEST), _MOST)
        idle = max(steps // (_RECLAIM if reclaims else _PREEMPT), idle)
        return StepBudget(steps // _PART, idle // _IDLE_PART, _ROUNDS, idle, steps if reclaims else _LEAST, _FAIRER)
    if nodes > _LARGE:
        return StepBudget(_TWO if reclaims else 0, idle, 0, idle, 0, 1)
    steps = ceil(_FALLING * (_SMALL / nodes) ** 1.5) + (_LEAST if reclaims else 0)
    return StepBudget(steps, idle, 0, idle, steps if reclaims else min(_LEAST, steps), 1)


def _improved(here: DomainBundles, best: Selection, highest: int, budget: StepBudget) -> Selection:
    """The cheapest of the selections without podgroups of a priority above ``highest``."""
    leaving, slack = np.sort(best.entry), slack_of(here.search.terms.rules)
    spared = leaving[~is_among(here.search.terms.entries.podgroup[leaving], best.broken)]
    found = searched(here, spared, best.broken, (highest, best.price.queue_rank), budget, slack)
    return _preferred(here, best, found, leaving, slack)


def _preferred(here: DomainBundles, best: Selection, found: list[Outcome], leaving: Rows, slack: float) -> Selection:
    """What is preferred of ``best`` and the sets, one after the other; the last is tried first, mostly it is lawful."""

    def better(price: Price, than: Price) -> bool:
        return price < than or breaks_fewer(price, than, slack)

    prices, last, lowest = [price_of(here.search, here.domain, one.cost) for one in found], None, best.price
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
    here: DomainBundles, leaving: Rows, breaking: Rows, highest: tuple[int, int], budget: StepBudget, slack: float
) -> list[Outcome]:
    """What a local search finds that begins with some victims; see ``cheaper_sets``."""
    search, terms = here.search, here.search.terms
    open_here = np.ascontiguousarray(search.open[:, slice(*here.nodes)])
    sets = cheaper_sets(
        search.site, here.nodes, FreeRoom(search, here.domain).ground, open_here, terms, search.seats(), leaving,
        breaking, highest, budget, slack,
    )  # fmt: skip
    return [outcome_of_set(sets, at, terms, search.seats()) for at in range(len(sets.gone))]


def selected_of(here: DomainBundles, found: Outcome, leaving: Rows) -> Selection | None:
    """The set as a selection, if the gang places and the law and the quotas allow it."""
    search, free = here.search, FreeRoom(here.search, here.domain)
    chosen = left_by(search, here.domain, found)
    free.leave(chosen.entry)
    if not (free.places(chosen) and chosen.lawful() and voted(search, here.domain, found.bundles)):
        return None
    selected = placed(found, chosen, free)
    given_back = int((~is_among(leaving, chosen.entry)).sum())
    return None if selected is None else replace(selected, given_back=given_back)
