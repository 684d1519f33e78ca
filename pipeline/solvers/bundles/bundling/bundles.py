"""The order of bundles, and the quota on them ("Gang-Aware Preemption and Reclaim", section 3.4).

A bundle is *safe*: surplus over the minima of the gang, its roles (unless it is elastic) and its subgroups, or
everything if the gang is below its minimum already; or *whole*: the rest, whose loss breaks the gang.

Efficiencies are compared in steps: the design proposes a tolerance of 5 % from pair to pair, which is no order; with 20
bundles the outcome already depends on the order of the input.
"""

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Bytes, Ids, Longs, Rows, sizes
from pipeline.cluster.counted.counting import runs
from pipeline.cluster.rules.sparing import charge, may_go
from pipeline.kernels import inlined, kernel, linked, shared, writing
from pipeline.solvers.bundles.bundling.bundle_search import BundleSearch
from pipeline.solvers.bundles.bundling.records import Bundles, Favour, Groups, Rules, Terms, blank, cut
from pipeline.solvers.bundles.bundling.sorting import sort_by
from pipeline.solvers.bundles.bundling.splitting import sort_victims

#: Bits of a policy rank, and of an efficiency, in a sort key of 63 bits.
_RANK_BITS = 32
_STEP_BITS = 29
_MOST_STEPS = (1 << _STEP_BITS) - 1

NO_BUNDLES = blank(0, 0)


@shared
def _picked(bundles: Bundles, some: Rows | Bools, stop: Longs, entry: Rows) -> Bundles:
    """Some bundles, by their positions or a mask, with these entries: ``stop`` and ``entry`` as in `Bundles`."""
    return Bundles(
        bundles.podgroup[some], bundles.safe[some], stop, entry, bundles.elsewhere[some], bundles.efficiency[some],
        bundles.cost[some],
    )  # fmt: skip


@linked
def efficiency_step(efficiency: float, step: float) -> int:
    """The step of an efficiency: step ``k`` ends at ``k * step``, so 0.952 and 1 are both in the last step of 0.05.

    A step of 0 means the finest that a sort key can tell apart.
    """
    if step > 0:
        return int(min(np.ceil(efficiency / step - 1e-9), float(_MOST_STEPS)))
    return int(min(efficiency * _MOST_STEPS, float(_MOST_STEPS)))


@kernel
def order_of(bundles: Bundles, before: Longs, groups: Groups, rules: Rules) -> Rows:
    """The order of bundles: safe before whole, policy, efficiency (whole ones, highest first), policy, age and name.

    Returns positions, int64[B]. ``before`` int64[G] are the policy ranks before efficiency: ``groups.rank_before``, or
    ranks by nodes.

    The design sorts a second time after the vote. Here the remaining bundles keep their order: no key of a safe bundle
    depends on its size, and whole ones do not shrink.
    """
    many = len(bundles.stop)
    order, high, low = np.arange(many), np.empty(many, np.int64), np.empty(many, np.int64)
    for b in range(many):
        group = bundles.podgroup[b]
        kind = 0 if bundles.safe[b] else 1
        steps = 0 if bundles.safe[b] else efficiency_step(bundles.efficiency[b], rules.efficiency_step)
        high[b] = ((kind << _RANK_BITS | before[group]) << _STEP_BITS) + _MOST_STEPS - steps
        low[b] = (groups.rank_after[group] << 31) + groups.order[group]
    sort_by(order, high, low)
    return order


@kernel
def arranged(bundles: Bundles, order: Rows) -> Bundles:
    """The bundles at the positions ``order`` (int64[K]), in that order."""
    size = 0
    for b in order:
        size += bundles.stop[b] - (bundles.stop[b - 1] if b > 0 else 0)
    stop, entry, end = np.empty(len(order), np.int64), np.empty(size, np.int64), 0
    for i in range(len(order)):
        b = order[i]
        for at in range(bundles.stop[b - 1] if b > 0 else 0, bundles.stop[b]):
            entry[end] = bundles.entry[at]
            end += 1
        stop[i] = end
    return _picked(bundles, order, stop, entry)


@kernel
def first(bundles: Bundles, count: int) -> Bundles:
    """The leading ``count`` bundles."""
    return cut(bundles, count, bundles.stop[count - 1] if count else 0)


def having(bundles: Bundles, kept: Bools) -> Bundles:
    """The bundles with the entries ``kept`` bool[C]; empty bundles are dropped."""
    size = np.bincount(bundles.owner[kept], minlength=bundles.many)
    alive = size > 0
    return _picked(bundles, alive, np.cumsum(size[alive]), bundles.entry[kept])


# -- a quota that is counted in columns --------------------------------------------------------------------------------


@inlined
def _kept_of_surplus(mine: Rows, queue: int, left: Longs, terms: Terms, favour: Favour) -> int:
    """Move those tasks of a surplus bundle to the front that may go one after the other, and charge them; how many."""
    high, low = np.empty(len(mine), np.int64), np.empty(len(mine), np.int64)
    sort_victims(mine, len(mine), terms.entries, terms.worth, favour, high, low)
    kept, quota = 0, terms.quota
    for entry in mine:
        taken = terms.worth.request[terms.entries.shape[entry]]
        if may_go(taken, queue, left, quota.entitled, quota.asking, True):
            charge(taken, queue, left, quota.entitled, 1)
            mine[kept] = entry
            kept += 1
    return kept


@inlined
def _taken_by(b: int, mine: Rows, surplus: int, bundles: Bundles, taken: Longs, terms: Terms) -> None:
    """Write down what a bundle takes: of a gang that goes everywhere, all that its ``surplus`` does not."""
    group, resources = bundles.podgroup[b], taken.shape[1]
    if bundles.elsewhere[b] > 0:
        for r in range(resources):
            taken[b, r] = terms.quota.held[group, r] - (taken[surplus, r] if surplus != NONE else 0)
        return
    for entry in mine:
        for r in range(resources):
            taken[b, r] += terms.worth.request[terms.entries.shape[entry], r]


@writing("seats")
def left_by_quota(bundles: Bundles, terms: Terms, favour: Favour, seats: Ids) -> Bundles:
    """What the quota leaves of the bundles, counted along their order (section 3.4.1, phase 3).

    A bundle that cannot go whole uses nothing up; the design charges the quota for the part that could go. A gang
    that goes everywhere goes with its surplus: if some of that must stay, so does the rest.

    Parameters
    ----------
    favour
        The favour with which they were split.
    """
    quota, many = terms.quota, len(bundles.stop)
    left, taken = quota.allocated.copy(), np.zeros((many, terms.worth.request.shape[1]), np.int64)
    some, stop, entry = np.empty(many, np.int64), np.empty(many, np.int64), np.empty(len(bundles.entry), np.int64)
    shrunk, kept, filled, begin = np.zeros(many, np.bool_), 0, 0, 0
    for b in range(many):
        group, mine = bundles.podgroup[b], bundles.entry[begin : bundles.stop[b]].copy()
        queue, surplus, begin, goes = quota.queue[group], seats[group], bundles.stop[b], len(mine)
        _taken_by(b, mine, surplus, bundles, taken, terms)
        if bundles.safe[b]:
            seats[group] = b
        if not bundles.safe[b] and terms.rules.cluster_wide and surplus != NONE and shrunk[surplus]:
            goes = 0
        elif may_go(taken[b], queue, left, quota.entitled, quota.asking, True):
            charge(taken[b], queue, left, quota.entitled, 1)
        else:
            goes = _kept_of_surplus(mine, queue, left, terms, favour) if bundles.safe[b] else 0
            shrunk[b] = goes < len(mine)
        for at in range(goes):
            entry[filled + at] = mine[at]
        filled += goes
        if goes > 0:
            some[kept], stop[kept] = b, filled
            kept += 1
    for b in range(many):
        seats[bundles.podgroup[b]] = NONE
    return _picked(bundles, some[:kept], stop[:kept], entry[:filled])


# -- quotas that plugins count -----------------------------------------------------------------------------------------


@kernel
def _flattened(
    bundles: Bundles, occupant: Rows, nodes: tuple[int, int], members: tuple[Longs, Rows], status: Bytes, node: Ids
) -> tuple[Rows, Longs]:
    """Task rows of each bundle, followed by members elsewhere that go along; and where each bundle's rows end."""
    many = len(bundles.stop)
    rows, ends = np.empty(len(bundles.entry) + bundles.elsewhere.sum(), np.int64), np.empty(many, np.int64)
    filled, begin = 0, 0
    for b in range(many):
        for entry in bundles.entry[begin : bundles.stop[b]]:
            rows[filled] = occupant[entry]
            filled += 1
        begin = bundles.stop[b]
        if bundles.elsewhere[b] > 0:
            group = bundles.podgroup[b]
            for row in members[1][members[0][group] : members[0][group + 1]]:
                if runs(status[row]) and not nodes[0] <= node[row] < nodes[1]:
                    rows[filled] = row
                    filled += 1
        ends[b] = filled
    return rows, ends


@kernel
def _granted(bundles: Bundles, permitted: Bools, ends: Longs, cluster_wide: bool) -> tuple[Bools, Bools, bool]:
    """Which entries may go: whole bundles entirely or not at all, safe ones shrunk.

    A gang that goes everywhere goes with its surplus: if its surplus is refused, its whole bundle falls too. Also
    returned: which bundles fall in this way, and whether one of them was granted, and so charged to the quota.
    """
    kept, falls, charged = np.zeros(bundles.stop[-1], np.bool_), np.zeros(len(ends), np.bool_), False
    refused = np.zeros(bundles.podgroup.max() + 1, np.bool_)
    begin, local = 0, 0
    for b in range(len(ends)):
        granted = permitted[begin : ends[b]]
        if bundles.safe[b]:
            kept[local : bundles.stop[b]] = granted
            refused[bundles.podgroup[b]] = not granted.all()
        elif cluster_wide and refused[bundles.podgroup[b]]:
            falls[b] = True
            charged = charged or bool(granted.all())
        elif granted.all():
            kept[local : bundles.stop[b]] = True
        begin, local = ends[b], bundles.stop[b]
    return kept, falls, charged


def within_quota(bundles: Bundles, search: BundleSearch, nodes: tuple[int, int]) -> Bundles:
    """What plugins permit of the bundles of some nodes, asked about as one ordered list (section 3.4.1, phase 3).

    A bundle that cannot go whole uses up nothing; the design charges the quota for the part that could go. Whole
    bundles of gangs whose surplus is refused are dropped, and the list is counted anew.
    """
    snapshot, tasks = search.snapshot, search.snapshot.tasks
    if search.quota_filter is None:
        return bundles
    while bundles.many:
        rows, ends = _flattened(bundles, snapshot.occupancy.task, nodes, snapshot.by_podgroup, tasks.status, tasks.node)
        unit = np.repeat(np.where(bundles.safe, NONE, np.arange(bundles.many)), sizes(ends))
        permitted = np.ascontiguousarray(search.quota_filter(rows, unit), np.bool_)
        kept, falls, charged = _granted(bundles, permitted, ends, search.rules.cluster_wide)
        if not charged:
            return having(bundles, kept)
        # Surplus comes first in the list, so its refusals stay the same: this happens only once.
        bundles = having(bundles, ~np.repeat(falls, bundles.size))
    return bundles
