"""The bundles of one domain, and those that quotas permit, made when they are asked for."""

from dataclasses import dataclass

import numpy as np

from pipeline.cluster.arrays import Ids, Longs, distinct
from pipeline.cluster.orders import unique_inverse
from pipeline.decision.explanation import LowerBound
from pipeline.decision.price import NO_PRIORITY
from pipeline.keeping import begun_with, cached_property
from pipeline.records import replace
from pipeline.solvers.bundles.bundling.bundle_search import BundleSearch
from pipeline.solvers.bundles.bundling.bundles import NO_BUNDLES, arranged, left_by_quota, order_of, within_quota
from pipeline.solvers.bundles.bundling.cost import is_cheaper
from pipeline.solvers.bundles.bundling.records import Bundles, Outcome
from pipeline.solvers.bundles.bundling.splitting import split
from pipeline.solvers.bundles.covering.least import favour_of, indifferent, selected
from pipeline.solvers.bundles.lower_bounds import cost_bounds, least_of_all


@dataclass(frozen=True)
class DomainBundles:
    """The bundles of one domain for a search.

    Attributes
    ----------
    estimated
        Whether an estimate of the price will do, so that no set is polished.
    least_fair
        Bundles of queues of a higher rank are left out; None: none are.
    """

    search: BundleSearch
    domain: int
    estimated: bool = False
    least_fair: int | None = None

    @property
    def effort(self) -> int:
        """Steps of branch and bound that may be made."""
        return 0 if self.estimated else self.search.effort

    @property
    def nodes(self) -> tuple[int, int]:
        """The node rows of the domain, from the first up to the second."""
        return self.search.nodes_of(self.domain)

    @cached_property
    def many_candidates(self) -> int:
        """How many tasks of the domain may be victims."""
        return len(self._owners)

    @cached_property
    def priorities(self) -> Longs:
        """int64[K]: the priorities of podgroups that have such tasks there, each once, the highest first."""
        return -distinct(-self.search.snapshot.podgroups.priority[self._owners].astype(np.int64))

    @cached_property
    def highest_priority(self) -> int:
        """The highest of them."""
        return int(self.search.snapshot.podgroups.priority[self._owners].max(initial=NO_PRIORITY))

    @cached_property
    def least(self) -> LowerBound | None:
        """What every selection there costs at least, surplus aside; None if there is none."""
        return least_of_all(cost_bounds(self.search, np.array([self.domain])), self.search)

    @cached_property
    def _owners(self) -> Ids:
        """int32[C]: the podgroups of tasks of the domain that may be victims."""
        entries, rows = self.search.terms.entries, slice(*self.search.site.start[list(self.nodes)])
        return entries.podgroup[rows][entries.candidate[rows]]

    @cached_property
    def queue_ranks(self) -> list[int]:
        """The ranks of the bundles' queues, ascending; none where a price compares none or the order is kept."""
        ranks = [] if self.search.rules.keep_order else distinct(self.search.queue_rank[self.ordered.podgroup]).tolist()
        return ranks if len(ranks) > 1 else []

    @cached_property
    def ordered(self) -> Bundles:
        """The bundles in order, before the vote ("Gang-Aware Preemption and Reclaim", 3.4.1, phases 1 and 2)."""
        return self._arranged(favoured=False)

    def of_fairest(self, least_fair: int) -> "DomainBundles":
        """The same without bundles of queues of a rank above one."""
        fair = self.search.queue_rank[self.ordered.podgroup] <= least_fair
        some = arranged(self.ordered, np.flatnonzero(fair))
        return begun_with(replace(self, least_fair=least_fair), ordered=some)

    @cached_property
    def first_permitted(self) -> Bundles:
        """The bundles that quotas permit, in the order of the design."""
        search, terms = self.search, self.search.terms
        if not search.counts_quotas:
            return within_quota(self.ordered, search, self.nodes)
        return left_by_quota(self.ordered, terms, indifferent(), search.seats())

    @cached_property
    def permitted(self) -> list[Bundles]:
        """The same, then with surplus chosen by slots, and in the order of nodes."""
        search, bundles, terms, others = self.search, self.ordered, self.search.terms, list[Bundles]()
        if search.counts_quotas:
            return [self.first_permitted]
        other = bundles if self.estimated else self._arranged(favoured=True)
        if not np.array_equal(other.entry, bundles.entry):
            others.append(other)
        if search.quota_filter is not None and search.by_node:
            others.append(arranged(bundles, order_of(bundles, terms.groups.node_rank, terms.groups, terms.rules)))
        return [self.first_permitted, *(within_quota(other, search, self.nodes) for other in others)]

    def by_slots(self) -> Outcome | None:
        """The cheapest outcome of the lists of bundles by slots; None if there are too few slots."""
        search, best, seats = self.search, None, self.search.seats()
        if not search.rules.asks_in_order:
            found = selected(NO_BUNDLES, False, search.site, self.nodes, search.terms, seats, self.effort)
            return found if found.found else None
        for bundles in self.permitted if self.ordered.many else []:
            found = selected(bundles, True, search.site, self.nodes, search.terms, seats, self.effort)
            if found.found and (best is None or is_cheaper(found.cost, best.cost)):
                best = found
        return best

    def _arranged(self, *, favoured: bool) -> Bundles:
        """``favoured``: surplus is chosen by the slots that it frees, not as in section 3.4.1."""
        search, terms = self.search, self.search.terms
        begin, end = int(search.site.start[self.nodes[0]]), int(search.site.start[self.nodes[1]])
        favour = favour_of(search.site, self.nodes, terms) if favoured else indifferent()
        bundles = split(begin, end, terms, favour, search.seats())
        if self.least_fair is not None:
            fair = terms.groups.queue_rank[bundles.podgroup] <= self.least_fair
            bundles = arranged(bundles, np.flatnonzero(fair))
        return arranged(bundles, order_of(bundles, terms.groups.rank_before, terms.groups, terms.rules))


def least_leading(search: BundleSearch, bundles: Bundles) -> int:
    """How many leading bundles must go before the queue's limits leave room for the need; NONE if all are too few."""
    if search.exceeded is None:
        return 0
    snapshot, held = search.snapshot, np.zeros((bundles.many, len(search.need.total)), np.int64)
    snapshot.add_requests(snapshot.occupancy.task[bundles.entry], held, bundles.owner)
    away = np.flatnonzero(bundles.elsewhere)  # a podgroup that goes everywhere goes with all that its surplus leaves
    if len(away):
        groups, at = unique_inverse(bundles.podgroup)
        surplus = np.zeros((len(groups), held.shape[1]), np.int64)
        np.add.at(surplus, at[bundles.safe], held[bundles.safe])
        held[away] = snapshot.podgroup_held[bundles.podgroup[away]] - surplus[at[away]]
    return search.exceeded.leading(search.need.total, snapshot.podgroups.queue[bundles.podgroup], held)
