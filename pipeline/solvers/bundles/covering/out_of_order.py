"""Victims where those in the policy's order are too few within the quotas, or refused together: others may do."""

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, distinct
from pipeline.solvers.bundles.covering.cheaper import ANY, budget_of, searched, selected_of
from pipeline.solvers.bundles.covering.chosen import Selection, all_of, price_of
from pipeline.solvers.bundles.covering.domain_bundles import DomainBundles
from pipeline.solvers.bundles.covering.free_room import FreeRoom

#: Between these many steps are spent on finding a set at all; the more nodes and tasks of the minimum, the fewer.
_LEAST, _MOST, _ALL = 4, 400, 6_000_000
#: How much more podgroups may lose so that fewer break: a limit on how many may break asks nothing else.
_WHATEVER = 1e9


def out_of_order(here: DomainBundles) -> Selection | None:
    """The cheapest lawful victims that a local search finds, whatever the order of bundles, or None.

    Only where the domain is the whole fleet: of many domains another will do. No search is made for a gang that would
    not have enough room whatever leaves.
    """
    search, many, wanted = here.search, len(here.search.snapshot.nodes), here.search.need.minimum
    if here.nodes != (0, many) or not _could_suffice(here):
        return None
    steps = min(max(_ALL // (many * wanted), _LEAST), _MOST)
    budget = budget_of(many, wanted, reclaims=True)._replace(first=steps)
    found = searched(here, NO_ROWS, NO_ROWS, (ANY, ANY), budget, _WHATEVER)
    for outcome in sorted(found, key=lambda one: price_of(search, here.domain, one.cost)):
        selected = selected_of(here, outcome, NO_ROWS)
        if selected is not None:
            return selected
    return None


def _could_suffice(here: DomainBundles) -> bool:
    """Whether there would be room if all bundles left; and of the scarce resource if queues lost all they can spare."""
    search, quota, scarce = here.search, here.search.terms.quota, here.search.site.scarce
    free, everything = FreeRoom(search, here.domain), here.ordered
    there = np.maximum(free.ground.room[:, scarce], 0).sum()
    free.leave(everything.entry)
    if not free.places(all_of(search, here.domain, everything)):
        return False
    if not quota.counted:
        return search.validate_set is not None
    queues = distinct(quota.queue)
    kept = np.where(quota.entitled.counts, quota.entitled.deserved, 0)[queues, scarce]
    spare = np.maximum(quota.allocated[queues, scarce] - kept, 0).sum()
    return bool(there + spare >= search.need.request[:, scarce] @ search.need.count)
