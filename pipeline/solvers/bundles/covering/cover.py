"""Reprieve in slots: units that are not needed return once bundles have left (``lead``).

Reprieve is kube-scheduler's word; Kueue says fill back.
"""

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Ids, Longs, Rows
from pipeline.kernels import inlined, linked, writing
from pipeline.placement.room.ground import Ground, counted, try_return
from pipeline.solvers.bundles.bundling.records import Bundles, Entries, Groups, Rules, Site, Terms, Units
from pipeline.solvers.bundles.bundling.sorting import sort_by


@linked
def ground_of(site: Site, nodes: tuple[int, int], terms: Terms) -> Ground:
    """The nodes from the first up to the second, before any eviction."""
    room, slots, total, usable, spare, by_region = counted(
        nodes, site.request, site.wanted, site.allowed, site.scarce, site.future, site.parts
    )
    return Ground(
        nodes[0], terms.entries.node, terms.entries.shape, terms.worth.request, site.request, site.wanted, site.allowed,
        site.scarce, room, slots, total, usable, spare, by_region,
    )  # fmt: skip


@writing("seats")
def units_of(bundles: Bundles, entries: Entries, groups: Groups, rules: Rules, seats: Ids) -> Units:
    """The units that can be reprieved, in order.

    Whole bundles come first: those that policy would take last, and the costliest among equals. Then the surplus, task
    by task: by bundle, last in policy's order first, then the highest priority, then the oldest task.
    """
    whole = np.flatnonzero(~bundles.safe)
    group = bundles.podgroup[whole]
    sort_by(whole, -(bundles.cost[whole] * groups.lost_work[group]), -whole)
    sort_by(whole, -groups.rank_before[bundles.podgroup[whole]], np.arange(len(whole)))
    single, owner = _singles(bundles, entries)
    many = len(whole) + len(single)
    stop, entry, bundle = np.empty(many, np.int64), np.empty(len(bundles.entry), np.int64), np.empty(many, np.int64)
    after, end = np.full(many, NONE, np.int64), 0
    for unit in range(len(whole)):
        b = whole[unit]
        for at in range(bundles.stop[b - 1] if b > 0 else 0, bundles.stop[b]):
            entry[end] = bundles.entry[at]
            end += 1
        stop[unit], bundle[unit] = end, b
        seats[bundles.podgroup[b]] = unit
    for i in range(len(single)):
        unit = len(whole) + i
        entry[end] = single[i]
        end += 1
        stop[unit], bundle[unit] = end, owner[i]
        if rules.cluster_wide:
            after[unit] = seats[bundles.podgroup[owner[i]]]
    for b in whole:
        seats[bundles.podgroup[b]] = NONE
    return Units(stop, entry[:end], after, bundle)


def each_alone(some: Rows) -> Units:
    """The entries ``some`` int64[C], each as a unit of its own."""
    each = np.arange(len(some))
    return Units(each + 1, some, np.full(len(some), NONE, np.int64), each)


@inlined
def _singles(bundles: Bundles, entries: Entries) -> tuple[Rows, Rows]:
    """Entries of safe bundles, in the order of reprieve, and the bundle of each."""
    at, owner, many, begin = np.empty(len(bundles.entry), np.int64), np.empty(len(bundles.entry), np.int64), 0, 0
    for b in range(len(bundles.stop)):
        if bundles.safe[b]:
            for i in range(begin, bundles.stop[b]):
                at[many], owner[many] = bundles.entry[i], b
                many += 1
        begin = bundles.stop[b]
    high, low = np.empty(many, np.int64), np.empty(many, np.int64)
    for i in range(many):
        task = entries.task[at[i]]
        high[i] = ((len(bundles.stop) - owner[i]) << 32) - np.int64(entries.of_tasks.priority[task])
        low[i] = entries.of_tasks.order[task]
    order = np.arange(many)
    sort_by(order, high, low)
    return at[:many][order], owner[:many][order]


@inlined
def _holds(some: Rows, used: Longs, denies: Bools, ground: Ground) -> bool:
    """Whether the gang's tasks (``used``) still fit on the nodes of some entries, which repel no task of it."""
    room = ground.room
    for entry in some:
        if len(denies) > 0 and denies[entry]:
            return False
        n = ground.node[entry] - ground.first
        for r in range(room.shape[1]):
            if used[n, r] > 0 and used[n, r] > room[n, r]:
                return False
    return True


@writing("returned", "ground")
def reprieve(
    begin: int, units: Units, returned: Bools, certain: bool, used: Longs, denies: Bools, ground: Ground
) -> int:
    """Reprieve units from ``begin`` on while slots suffice; stops at the first return that is in doubt.

    A return is certain if slots are exact (``certain``), or if the placement ``used`` int64[n, R] still fits with it
    and none of its entries ``denies`` (bool[M], or no rows) nodes to the gang. Without a placement (no rows) every
    return is in doubt.

    Returns
    -------
    The unit that is in doubt, already returned in ``room``; the number of units if all were decided.
    """
    before = np.empty((len(ground.wanted), len(units.entry)), np.int64)
    for unit in range(begin, len(units.stop)):
        if returned[unit] or (units.after[unit] != NONE and not returned[units.after[unit]]):
            continue
        some = units.entry[units.stop[unit - 1] if unit > 0 else 0 : units.stop[unit]]
        if not try_return(some, before, ground):
            continue
        if certain or (len(used) > 0 and _holds(some, used, denies, ground)):
            returned[unit] = True
        else:
            return unit
    return len(units.stop)
