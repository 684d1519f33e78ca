"""Cheaper victims than those that bundles and their order give: found by local search, proved by placing the gang."""

from dataclasses import replace
from math import ceil

import numpy as np

from pipeline.cluster.arrays import Rows, is_among
from pipeline.solvers.bundles.bundling.records import Outcome
from pipeline.solvers.bundles.covering.chosen import Selection, left_by, placed, price_of
from pipeline.solvers.bundles.covering.domain_bundles import DomainBundles
from pipeline.solvers.bundles.covering.every_set import saves, voted
from pipeline.solvers.bundles.covering.exact import MOST
from pipeline.solvers.bundles.covering.free_room import FreeRoom
from pipeline.solvers.bundles.covering.ruin_recreate import cheaper_sets
from pipeline.solvers.bundles.covering.sets import outcome_of_set
from pipeline.solvers.bundles.nearly import breaks_fewer, slack_of

#: Steps of the local search in small fleets; in larger ones they fall faster than the size grows, so that all together
#: take less time. Above the largest there are the least, in preempt none, since the order of bundles and branch and
#: bound come close there.
_STEPS, _SMALL, _LARGE, _LEAST = 150, 128, 6_000, 3
#: After how many steps without gain it ends: the first number divided by the nodes, and at least the second.
_NODE_IDLE, _LEAST_IDLE = 8_000, 4
#: Above every priority.
_ANY = (1 << 31) - 1


def of_local_search(here: DomainBundles, best: Selection) -> Selection:
    """The cheapest selection that a local search finds from ``best`` on, or ``best``.

    Where policy ranks priority after work, a higher priority than that of ``best`` is touched only if this saves much.
    """
    search, highest, tolerance = here.search, best.price.highest_priority, here.search.terms.rules.tolerance
    nodes, least = len(search.snapshot.nodes), _LEAST if tolerance > 0 else 0
    steps = _STEPS if nodes <= _SMALL else least + (ceil(_STEPS * (_SMALL / nodes) ** 1.5) if nodes <= _LARGE else 0)
    if len(best.victims) == 0 or steps == 0 or here.many_candidates <= MOST:
        return best
    budget = (steps, steps if tolerance > 0 else min(_LEAST, steps), _LEAST_IDLE + _NODE_IDLE // nodes)
    best = _searched(here, best, highest, budget)
    if tolerance > 0 and highest < search.snapshot.podgroups.priority.max(initial=highest):
        other = _searched(here, best, _ANY, budget)
        best = other if saves(other.price, best.price, tolerance) else best
    return best


def _searched(here: DomainBundles, best: Selection, highest: int, budget: tuple[int, int, int]) -> Selection:
    """The cheapest of the selections without podgroups of a priority above ``highest``."""
    search, (begin, end), terms = here.search, here.nodes, here.search.terms
    node, first = search.snapshot.tasks.node[best.victims], int(search.site.start[begin])
    occupants = search.snapshot.occupancy.task[first : int(search.site.start[end])]
    inside = best.victims[(begin <= node) & (node < end)]
    leaving = first + np.flatnonzero(is_among(occupants, inside))
    breaking = np.array([one.podgroup for one in best.bundles if not one.safe], np.int64)
    spared = leaving[~is_among(terms.entries.podgroup[leaving], breaking)]
    open_here = np.ascontiguousarray(search.open[:, begin:end])
    slack = slack_of(terms.rules)
    sets = cheaper_sets(
        search.site, here.nodes, FreeRoom(search, here.domain).ground, open_here, terms, search.seats(), spared,
        breaking, (highest, best.price.queue_rank), budget, slack,
    )  # fmt: skip
    for at in range(len(sets.gone)):
        found = outcome_of_set(sets, at, terms, search.seats())
        price = price_of(search, here.domain, found.cost)
        if price < best.price or breaks_fewer(price, best.price, slack):
            best = _selected(here, found, leaving) or best
    return best


def _selected(here: DomainBundles, found: Outcome, leaving: Rows) -> Selection | None:
    """The set as a selection, if the gang places and the law and the quotas allow it."""
    search, free = here.search, FreeRoom(here.search, here.domain)
    chosen = left_by(search, here.domain, found)
    free.leave(chosen.entry)
    if not (free.places(chosen.victims) and chosen.lawful() and voted(search, here.domain, found.bundles)):
        return None
    selected = placed(search, here.domain, found, free)
    given_back = int((~is_among(leaving, chosen.entry)).sum())
    return None if selected is None else replace(selected, given_back=given_back)
