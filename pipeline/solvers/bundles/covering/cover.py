"""Cover and reprieve in slots: bundles leave until there is enough room, then units that are not needed return.

Slots decide, not sums: with the aggregate test of "Gang-Aware Preemption and Reclaim" half of the victims are evicted
for nothing. Slots change only on a victim's node, so a victim costs a few divisions. Reprieve is kube-scheduler's word;
Kueue says fill back.
"""

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Ids, Longs, Rows
from pipeline.kernels import inlined, kernel, linked, writing
from pipeline.placement.layout.packing import node_slots, slots_less, slots_more
from pipeline.placement.layout.region_slots import add_slots, parts_fit, region_slots
from pipeline.solvers.bundles.bundling.records import Bundles, Entries, Groups, Rules, Site, Terms, Units
from pipeline.solvers.bundles.bundling.sorting import sort_by
from pipeline.solvers.bundles.covering.ground import Ground


@linked
def ground_of(site: Site, nodes: tuple[int, int], terms: Terms) -> Ground:
    """The nodes from the first up to the second, before any eviction."""
    begin, end = nodes
    room = site.future[begin:end].copy()
    slots, total = node_slots(site.request, site.wanted, site.allowed, begin, room)
    by_region = region_slots(site.parts, begin, end, slots[0])
    usable, spare = usable_of(site.request, site.wanted, site.scarce, room, slots)
    return Ground(
        begin, terms.entries.node, terms.entries.shape, terms.worth.request, site.request, site.wanted, site.allowed,
        site.scarce, room, slots, total, usable, spare, by_region,
    )  # fmt: skip


@inlined
def _usable(n: int, request: Longs, scarce: int, room: Longs, slots: Longs) -> int:
    """How much of the scarce resource of a node tasks of all shapes can take at most."""
    most = 0
    for s in range(len(request)):
        most += slots[s, n] * request[s, scarce]
    return int(min(most, max(room[n, scarce], 0)))


@kernel
def usable_of(request: Longs, wanted: Longs, scarce: int, room: Longs, slots: Longs) -> tuple[Longs, Longs]:
    """What tasks of several shapes can take together; see ``Ground.usable`` and ``Ground.spare``."""
    usable, spare = np.zeros(len(room) if len(wanted) > 1 else 0, np.int64), np.zeros(1, np.int64)
    for s in range(len(wanted) if len(wanted) > 1 else 0):
        spare[0] -= wanted[s] * request[s, scarce]
    for n in range(len(usable)):
        usable[n] = _usable(n, request, scarce, room, slots)
        spare[0] += usable[n]
    return usable, spare


@inlined
def _set_slots(s: int, n: int, now: int, ground: Ground) -> None:
    """Note how many slots a node has now."""
    more = now - ground.slots[s, n]
    ground.total[s] += more
    ground.slots[s, n] = now
    if len(ground.by_region.parts.size) > 0:
        add_slots(ground.by_region, ground.first + n, more)


@inlined
def _set_usable(n: int, ground: Ground) -> None:
    """Note what tasks of several shapes can take together of a node, whose room and slots are noted."""
    if len(ground.usable) > 0:
        now = _usable(n, ground.request, ground.scarce, ground.room, ground.slots)
        ground.spare[0] += now - ground.usable[n]
        ground.usable[n] = now


@inlined
def move(some: Rows, sign: int, ground: Ground) -> None:
    """Let the entries ``some`` int64[C] leave (sign 1) or return (-1); updates room, slots and totals."""
    room, slots, count = ground.room, ground.slots, ground.wanted
    for i in range(len(some)):
        n, shape = ground.node[some[i]] - ground.first, ground.shape[some[i]]
        for r in range(room.shape[1]):
            room[n, r] += sign * ground.held[shape, r]
        if i + 1 < len(some) and ground.node[some[i + 1]] - ground.first == n:
            continue  # neighbours in a bundle often share a node, whose slots are then counted once
        for s in range(len(count)):
            if ground.allowed[s, ground.first + n]:
                if sign > 0:
                    now = slots_more(ground.request, s, room, n, count[s], slots[s, n])
                else:
                    now = slots_less(ground.request, s, room, n, count[s], slots[s, n])
                _set_slots(s, n, now, ground)
        _set_usable(n, ground)


@writing("ground")
def leave(some: Rows, ground: Ground) -> None:
    """Let entries leave."""
    move(some, 1, ground)


@writing("ground")
def come_back(some: Rows, ground: Ground) -> None:
    """Let entries return."""
    move(some, -1, ground)


@inlined
def enough(ground: Ground) -> bool:
    """Whether each shape alone has enough slots, all together enough to share, and each part a region."""
    count, total, missing = ground.wanted, ground.total, max(-ground.spare[0], 0)
    for s in range(len(count)):
        missing += max(count[s] - total[s], 0)
    return missing == 0 and parts_fit(ground.by_region)


@inlined
def missing_of(ground: Ground) -> float:
    """What is asked for of the scarce resource beyond the room."""
    missing = 0.0
    for s in range(len(ground.wanted)):
        missing += ground.wanted[s] * ground.request[s, ground.scarce]
    for n in range(len(ground.room)):
        if ground.allowed[:, ground.first + n].any():
            missing -= max(ground.room[n, ground.scarce], 0)
    return missing


@kernel
def suffices(ground: Ground) -> bool:
    """The same for Python."""
    return bool(enough(ground))


@writing("ground")
def lead(bundles: Bundles, ground: Ground) -> int:
    """Let bundles leave until there are enough slots; returns how many left, NONE if all are too few."""
    for bundle in range(len(bundles.stop) + 1):
        if enough(ground):
            return bundle
        if bundle < len(bundles.stop):
            move(bundles.entry[bundles.stop[bundle - 1] if bundle > 0 else 0 : bundles.stop[bundle]], 1, ground)
    return NONE


# -- reprieve ----------------------------------------------------------------------------------------------------------


@writing("seats")
def units_of(bundles: Bundles, entries: Entries, groups: Groups, rules: Rules, seats: Ids) -> Units:
    """The units that can be reprieved, in order.

    Whole bundles come first: those that policy would take last, and the costliest among equals. Then the surplus, task
    by task: by bundle, last in policy's order first, then the highest priority, then the oldest task.
    """
    whole = np.flatnonzero(~bundles.safe)
    group = bundles.podgroup[whole]
    sort_by(whole, -(bundles.cost[whole] * groups.lost_work[group]), -whole)
    sort_by(whole, -groups.before[bundles.podgroup[whole]], np.arange(len(whole)))
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
def try_return(some: Rows, before: Longs, ground: Ground) -> bool:
    """Let entries return if slots suffice without their room; if not, nothing changes.

    ``before`` int64[S, C'] is scratch for the slots that would be undone; it is at least as wide as ``some``.
    """
    room, slots, count, last = ground.room, ground.slots, ground.wanted, len(some) - 1
    for i in range(len(some)):
        n, shape, short = ground.node[some[i]] - ground.first, ground.shape[some[i]], False
        for r in range(room.shape[1]):
            room[n, r] -= ground.held[shape, r]
        for s in range(len(count)):
            before[s, i] = slots[s, n]
            if i < last and ground.node[some[i + 1]] - ground.first == n:
                continue
            if ground.allowed[s, ground.first + n]:
                _set_slots(s, n, slots_less(ground.request, s, room, n, count[s], slots[s, n]), ground)
                short |= ground.total[s] < count[s]
        _set_usable(n, ground)
        if short or ground.spare[0] < 0:
            last = i
            break
    if enough(ground):
        return True
    for i in range(last, -1, -1):
        n, shape = ground.node[some[i]] - ground.first, ground.shape[some[i]]
        for r in range(room.shape[1]):
            room[n, r] += ground.held[shape, r]
        for s in range(len(count)):
            _set_slots(s, n, before[s, i], ground)
        _set_usable(n, ground)
    return False


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
