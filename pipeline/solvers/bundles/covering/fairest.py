"""The queues from which it is fairest to take, as many as it takes: a price of a reclaim compares them before work.

The order of bundles puts surplus of every queue before podgroups that break ("Gang-Aware Preemption and Reclaim",
section 3.5.3). A price compares the queue that it is least fair to take from first of all. So bundles of queues that
are not needed at all are left out before they are put in order. Where the order of bundles is kept, none are.
"""

import numpy as np

from pipeline.cluster.arrays import Ids
from pipeline.kernels import linked
from pipeline.placement.room.ground import lead
from pipeline.solvers.bundles.bundling.bundles import arranged, left_by_quota, order_of
from pipeline.solvers.bundles.bundling.records import Bundles, Favour, Site, Terms
from pipeline.solvers.bundles.bundling.sorting import sort_by
from pipeline.solvers.bundles.covering.cover import ground_of


@linked
def of_fairest(
    bundles: Bundles, favour: Favour, site: Site, nodes: tuple[int, int], terms: Terms, seats: Ids
) -> Bundles:
    """The bundles of the fairest queues that make room by slots, as far as quotas let them go.

    All bundles, if they do not make room or if the order of bundles is kept.

    Parameters
    ----------
    favour
        The favour with which they were split.
    nodes
        From the first up to the second.
    """
    rank = terms.groups.queue_rank[bundles.podgroup]
    if terms.rules.keep_order or len(rank) == 0 or rank.min() == rank.max():
        return bundles
    order = order_of(bundles, terms.groups.rank_before, terms.groups, terms.rules)
    sort_by(order, rank[order], np.arange(len(order)))
    some = arranged(bundles, order)
    if terms.quota.counted:
        some = left_by_quota(some, terms, favour, seats)
    count = lead(some.stop, some.entry, ground_of(site, nodes, terms))
    if count <= 0:  # all are too few, or none is needed
        return bundles
    least_fair = terms.groups.queue_rank[some.podgroup[count - 1]]
    return arranged(bundles, np.flatnonzero(rank <= least_fair))
