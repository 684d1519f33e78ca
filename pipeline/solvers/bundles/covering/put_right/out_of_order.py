"""Other victims, where those in the policy's order are too few within the quotas, or are refused together."""

from pipeline.cluster.arrays import NO_ROWS, NONE
from pipeline.solvers.bundles.bundling.permitted_alone import may_free_enough, permitted_alone
from pipeline.solvers.bundles.covering.cheaper import ANY, searched
from pipeline.solvers.bundles.covering.chosen import Chosen, Selection, all_chosen, price_in_domain
from pipeline.solvers.bundles.covering.domain_bundles import DomainBundles, least_leading
from pipeline.solvers.bundles.covering.every_set import selected_of
from pipeline.solvers.bundles.covering.free_room import FreeRoom
from pipeline.solvers.bundles.covering.step_budget import budget_of

#: Between these many steps are spent on finding a set at all; the more nodes, the fewer: together some 40 ms at most.
_LEAST, _MOST, _ALL = 2, 400, 40_000
#: How much more podgroups may lose so that fewer break: a limit on how many may break asks nothing else.
_WHATEVER = 1e9


def out_of_order(here: DomainBundles, among: int) -> Selection | None:
    """The cheapest lawful victims that a local search finds, whatever the order of bundles, or None.

    ``among``: how many domains share the steps of one search.

    No search is made for a gang that would not have enough room whatever leaves.
    """
    search, many, wanted = here.search, here.nodes[1] - here.nodes[0], here.search.need.minimum
    if not _could_suffice(here):
        return None
    steps = min(max(_ALL // (many * among), _LEAST), _MOST)
    budget = budget_of(many, wanted, reclaims=True)._replace(first=steps)
    found = searched(here, NO_ROWS, NO_ROWS, (ANY, ANY), budget, _WHATEVER)
    for outcome in sorted(found, key=lambda one: price_in_domain(search, here.domain, one.cost)):
        selected = selected_of(here, outcome, NO_ROWS)
        if selected is not None:
            return selected
    return None


def _could_suffice(here: DomainBundles) -> bool:
    """Whether there would be room if all bundles left, and if all did that quotas permit alone: see ``_may_alone``."""
    search, domain, everything = here.search, here.domain, here.ordered
    if least_leading(search, everything) == NONE or not _may_alone(here):
        return False
    return FreeRoom(search, domain, everything.entry).places(all_chosen(search, domain, everything))


def _may_alone(here: DomainBundles) -> bool:
    """Whether there may be room once some of those have left that quotas permit alone, for they grant nothing else."""
    search, (first, last) = here.search, here.nodes
    if not search.counts_quotas:
        return True
    begin, end = int(search.site.start[first]), int(search.site.start[last])
    entry, broken = permitted_alone(begin, end, search.terms, search.seats())
    if not may_free_enough(entry, here.nodes, search.site, search.terms):
        return False
    free = FreeRoom(search, here.domain, entry)
    return free.places(Chosen(search, here.domain, entry, broken)) if free.exact else free.enough
