"""When the price of a domain's selection is proved to be the lowest, so that no search there can gain anything."""

import numpy as np

from pipeline.cluster.arrays import Longs
from pipeline.cluster.orders import unique_inverse
from pipeline.decision.price import Price
from pipeline.solvers.bundles.covering.chosen import Selection
from pipeline.solvers.bundles.covering.cover import each_alone
from pipeline.solvers.bundles.covering.domain_bundles import DomainBundles
from pipeline.solvers.bundles.covering.free_room import FreeRoom

#: How far a lower bound may be below the work that it proves, for a work of 1: it is rounded down.
_PROVED = 3e-6


def is_least(here: DomainBundles, found: Selection) -> bool:
    """Whether the price of a selection is proved to be the lowest in the domain; False where nothing is proved.

    It is if every candidate there has to go. It also is if all victims are of podgroups that break, if these lose what
    the domain's lower bound says at least, and if it is one podgroup, or no smaller number of podgroups and victims
    would do.
    """
    price = found.price
    if len(found.entry) == here.many_candidates and _all_needed(here, found):
        return True
    if price.surplus:
        return False
    bound = here.least
    if bound is None or (bound.queue_rank, len(bound.broken), len(price.broken)) != (price.queue_rank, 1, 1):
        return False
    (level, least), (at, work) = bound.broken[0], price.broken[0]
    if level != at or work - least > _PROVED * (1.0 + work):
        return False
    return price.gangs_broken <= 1 or _fewest(here, price)


def _all_needed(here: DomainBundles, found: Selection) -> bool:
    """Whether by slots no task of a selection of all candidates could return, so that no other set makes room."""
    free = FreeRoom(here.search, here.domain, found.entry)
    return not free.reprieve(each_alone(found.entry), None).any()


def _fewest(here: DomainBundles, price: Price) -> bool:
    """Whether no fewer podgroups and victims, and none of a lower priority, free as much of the scarcest resource.

    Where podgroups can lose tasks without breaking, that is not said.
    """
    search, (begin, end) = here.search, here.nodes
    site, entries = search.site, search.terms.entries
    rows = np.arange(site.start[begin], site.start[end])
    rows = rows[entries.candidate[rows]]
    if len(rows) == 0 or (search.terms.surplus.gang[entries.podgroup[rows]] != 0).any():
        return False
    if price.highest_priority > entries.of_tasks.priority[entries.task[rows]].min():
        return False
    amount = search.terms.worth.request[entries.shape[rows], site.scarce]
    _, owner = unique_inverse(entries.podgroup[rows])
    held = np.zeros(owner.max() + 1, np.int64)
    np.add.at(held, owner, amount)
    open_here = site.allowed[:, begin:end].any(axis=0)
    room = np.maximum(site.future[begin:end, site.scarce], 0)[open_here].sum()
    missing = int(site.wanted @ site.request[:, site.scarce] - room)
    return price.gangs_broken <= _fewest_of(held, missing) and price.victims <= _fewest_of(amount, missing)


def _fewest_of(amounts: Longs, missing: int) -> int:
    """The smallest number of the amounts that reaches a sum."""
    return int(np.searchsorted(np.cumsum(np.sort(amounts)[::-1]), missing)) + 1
