"""Victims where bundles in their order leave too little room within the quotas, but others may leave enough."""

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, distinct
from pipeline.solvers.bundles.covering.cheaper import ANY, budget_of, searched, selected_of
from pipeline.solvers.bundles.covering.chosen import Selection, price_of
from pipeline.solvers.bundles.covering.domain_bundles import DomainBundles
from pipeline.solvers.bundles.covering.free_room import FreeRoom

#: Between these many steps are spent on finding a set at all; the more nodes and tasks of the minimum, the fewer.
_LEAST, _MOST, _ALL = 4, 400, 6_000_000


def out_of_order(here: DomainBundles) -> Selection | None:
    """The cheapest victims that a local search finds on all nodes, whatever the order of bundles, or None.

    Only where quotas are counted, and in the whole fleet: of many domains another will do. A gang that cannot have
    enough room whatever leaves costs no search.
    """
    search, many, wanted = here.search, len(here.search.snapshot.nodes), here.search.need.minimum
    if not search.terms.quota.counted or here.nodes != (0, many) or not _could_suffice(here):
        return None
    steps = min(max(_ALL // (many * wanted), _LEAST), _MOST)
    budget = budget_of(many, wanted, reclaims=True)._replace(first=steps)
    found = searched(here, NO_ROWS, NO_ROWS, (ANY, ANY), budget)
    for outcome in sorted(found, key=lambda one: price_of(search, here.domain, one.cost)):
        selected = selected_of(here, outcome, NO_ROWS)
        if selected is not None:
            return selected
    return None


def _could_suffice(here: DomainBundles) -> bool:
    """Whether queues can spare what is missing of the scarce resource, if all that they can spare leaves."""
    search, quota, scarce = here.search, here.search.terms.quota, here.search.site.scarce
    asked = search.need.request[:, scarce] @ search.need.count
    free = np.maximum(FreeRoom(search, here.domain).ground.room[:, scarce], 0).sum()
    queues = distinct(quota.queue)
    kept = np.where(quota.entitled.counts, quota.entitled.deserved, 0)[queues, scarce]
    spare = np.maximum(quota.allocated[queues, scarce] - kept, 0).sum()
    return bool(free + spare >= asked)
