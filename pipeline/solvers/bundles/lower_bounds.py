"""Lower bounds of every domain, before any is selected: which domains are hopeless, and which to look at first.

All figures are valid bounds for every plan that evicts only candidates inside the domain:

- slots of one shape alone, without and with all evictions, are exact (property tested). Domains are slices of nodes, so
  slots are differences of running sums, whatever the number of domains.
- of the scarcest resource, at least what the gang takes less what is idle must be freed. Surplus frees some of it; the
  rest needs podgroups that break: in preempt up to some priority, and at that priority at least the work of a
  fractional knapsack (Dantzig 1957); in reclaim the same from queues up to some rank.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Bytes, Floats, Ids, Longs, Rows
from pipeline.cluster.counted.counting import runs
from pipeline.decision.explanation import LowerBound
from pipeline.kernels import inlined, kernel
from pipeline.placement.layout.packing import slots_at
from pipeline.solvers.bundles.bundling.records import Site, Terms
from pipeline.solvers.bundles.bundling.sorting import sort_by
from pipeline.solvers.bundles.bundling.terms import BundleSearch

#: Lost work is rounded to this in a price; the bound allows for this and for its own rounding.
_ROUNDING = 1e-6
_MARGIN = 1 - 1e-6
#: Above every level: there is no selection.
HOPELESS = 1 << 40


@dataclass(frozen=True)
class Slots:
    """Slots per domain, in the order in which the domains were asked for.

    Attributes
    ----------
    room, reachable: int64[D, S]
        For each shape alone: without evictions, and once every candidate has left. A node counts at most the need's
        tasks of the shape. A domain with ``reachable`` below ``need.count`` is hopeless.
    """

    room: Longs
    reachable: Longs


def slot_bounds(search: BundleSearch, domains: Rows) -> Slots:
    """Count what each domain offers."""
    snapshot, need = search.snapshot, search.need
    starts, stops = snapshot.topology.start[domains], snapshot.topology.stop[domains]
    evictable = snapshot.totals.nodes.used - snapshot.totals.nodes.terminating
    candidate, placed = search.terms.entries.candidate, snapshot.placed
    _subtract_fixed(
        evictable, snapshot.occupancy.start, candidate, placed.status, placed.shape, snapshot.shapes.request
    )
    without, after = _running_slots(need.request, need.count, search.open, snapshot.room.future, evictable)
    return Slots(without[stops] - without[starts], after[stops] - after[starts])


def hopeless(search: BundleSearch, domains: Rows) -> Bools:
    """bool[D]: domains that cannot hold the need even once every candidate has left."""
    return np.asarray((slot_bounds(search, domains).reachable < search.need.count).any(axis=1))


@kernel
def _subtract_fixed(held: Longs, start: Longs, candidate: Bools, status: Bytes, shape: Ids, request: Longs) -> None:
    """Subtract tasks that are no candidates, mostly few, from what runs on each node; in place."""
    for n in range(len(held)):
        for at in range(start[n], start[n + 1]):
            if not candidate[at] and runs(status[at]):
                for r in range(held.shape[1]):
                    held[n, r] -= request[shape[at], r]


@kernel
def _running_slots(
    request: Longs, count: Longs, allowed: Bools, future: Longs, evictable: Longs
) -> tuple[Longs, Longs]:
    """Running sums of slots over the nodes, without and with evictions: two of int64[N + 1, S]."""
    nodes, resources = future.shape
    without = np.zeros((nodes + 1, len(count)), np.int64)
    after = np.zeros((nodes + 1, len(count)), np.int64)
    for n in range(nodes):
        for r in range(resources):
            evictable[n, r] += future[n, r]
        for s in range(len(count)):
            room, reachable = 0, 0
            if allowed[s, n]:
                room = slots_at(request, s, future, n, count[s])
                reachable = slots_at(request, s, evictable, n, count[s])
            without[n + 1, s] = without[n, s] + room
            after[n + 1, s] = after[n, s] + reachable
    return without, after


# -- cost --------------------------------------------------------------------------------------------------------------


class CostBounds(NamedTuple):
    """Lower bounds of the price of every selection, by domain.

    Attributes
    ----------
    head: int64[D]
        ``Cost.head``; above every level where there is no selection at all.
    priority: int64[D]
        The priority of that level, if levels are priorities and it is not 0.
    work: float64[D]
        Work lost by podgroups that break, for selections with that head: of that level in preempt, of all in reclaim.
    """

    head: Longs
    priority: Longs
    work: Floats

    def only(self, some: Bools) -> "CostBounds":
        """Those of some domains."""
        return CostBounds(self.head[some], self.priority[some], self.work[some])


class _Held(NamedTuple):
    """What podgroups hold of the scarce resource in one domain: as surplus, and the rest."""

    group: Rows
    free: Floats
    rest: Floats


class _ByLevel(NamedTuple):
    """The same summed by level."""

    free: Floats
    rest: Floats


def cost_bounds(search: BundleSearch, site: Site, domains: Rows) -> CostBounds:
    """Bound the price of a selection in each domain."""
    topology = search.snapshot.topology
    return bound_domains(site, topology.start[domains], topology.stop[domains], search.terms, search.seats())


def least_of_all(bounds: CostBounds, search: BundleSearch) -> LowerBound | None:
    """What every selection costs at least, whichever the domain; None if no domain has one."""
    at = np.lexsort((bounds.work, bounds.head))[:1]
    if len(at) == 0 or bounds.head[at[0]] >= HOPELESS:
        return None
    head, work = int(bounds.head[at[0]]), float(bounds.work[at[0]])
    if search.by_priority:
        return LowerBound(0, ((int(bounds.priority[at[0]]), work),) if head else ())
    return LowerBound(head, ((0, work),) if work > 0 else ())


@kernel
def bound_domains(site: Site, starts: Longs, stops: Longs, terms: Terms, seats: Ids) -> CostBounds:
    """Bound each slice of nodes ``starts[i]:stops[i]``; ``seats`` int32[G]: scratch, NONE everywhere."""
    many, highest = len(starts), 0
    for level in terms.groups.level:
        highest = max(highest, level)
    by_level = _ByLevel(np.zeros(highest + 1), np.zeros(highest + 1))
    head, priority, work = np.zeros(many, np.int64), np.zeros(many, np.int64), np.zeros(many)
    for at in range(many):
        missing = _missing(site, starts[at], stops[at])
        if missing > 0:
            held = _held(site, site.start[starts[at]], site.start[stops[at]], terms, seats)
            _sum_by_level(held, terms, by_level)
            if terms.rules.by_priority:
                head[at], priority[at], work[at] = _by_priority(missing, held, by_level, terms)
            else:
                head[at], work[at] = _by_queue(missing, held, by_level, terms)
            work[at] = max(work[at] * _MARGIN - _ROUNDING, 0.0)
    return CostBounds(head, priority, work)


@inlined
def _missing(site: Site, begin: int, end: int) -> float:
    """What must be freed of the scarce resource on the nodes ``begin:end``."""
    missing = 0.0
    for s in range(len(site.wanted)):
        missing += site.wanted[s] * site.request[s, site.scarce]
    for n in range(begin, end):
        for s in range(len(site.wanted)):
            if site.allowed[s, n]:
                missing -= max(site.future[n, site.scarce], 0)
                break
    return missing


@inlined
def _held(site: Site, begin: int, end: int, terms: Terms, seats: Ids) -> _Held:
    """Sum the candidates among the entries ``begin:end`` by podgroup."""
    entries, many = terms.entries, 0
    group, total = np.empty(end - begin, np.int64), np.zeros(end - begin)
    largest, free = np.zeros(end - begin), np.zeros(end - begin)
    for entry in range(begin, end):
        if entries.candidate[entry]:
            owner = entries.podgroup[entry]
            m = seats[owner]
            if m == NONE:
                m = many
                seats[owner], group[m] = m, owner
                many += 1
            amount = float(terms.worth.request[entries.shape[entry], site.scarce])
            total[m] += amount
            largest[m] = max(largest[m], amount)
    for m in range(many):
        owner = group[m]
        seats[owner] = NONE
        spare = terms.surplus.gang[owner]
        free[m] = total[m] if spare < 0 else min(total[m], spare * largest[m])
        breaks = terms.rules.allow_whole and (terms.groups.complete[owner] or not terms.rules.cluster_wide)
        total[m] = total[m] - free[m] if breaks else 0.0
    return _Held(group[:many], free[:many], total[:many])


@inlined
def _loss(group: int, terms: Terms) -> float:
    """What a podgroup loses when it breaks."""
    return float(terms.groups.cost[group] * terms.groups.lost_work[group])


@inlined
def _sum_by_level(held: _Held, terms: Terms, by_level: _ByLevel) -> None:
    """Sum what podgroups hold by the level of each; in place, whatever was there before."""
    by_level.free[:], by_level.rest[:] = 0.0, 0.0
    for m in range(len(held.group)):
        level = terms.groups.level[held.group[m]]
        by_level.free[level] += held.free[m]
        by_level.rest[level] += held.rest[m]


@inlined
def _by_priority(missing: float, held: _Held, by_level: _ByLevel, terms: Terms) -> tuple[int, int, float]:
    """The level that must break once all surplus is gone, its priority, and the work lost at it."""
    missing -= by_level.free.sum()
    if missing <= 0:
        return 0, 0, 0.0
    for level in range(len(by_level.rest)):
        if by_level.rest[level] >= missing:
            some = _of_levels(level, level, held, terms)
            return level, terms.groups.priority[held.group[some[0]]], _filled(missing, some, held, terms)
        missing -= by_level.rest[level]
    return HOPELESS, 0, 0.0


@inlined
def _by_queue(missing: float, held: _Held, by_level: _ByLevel, terms: Terms) -> tuple[int, float]:
    """The rank up to which queues must be taken from, and the work lost if only those are."""
    sum_, free = 0.0, 0.0
    for level in range(len(by_level.rest)):
        sum_ += by_level.free[level] + by_level.rest[level]
        free += by_level.free[level]
        if sum_ >= missing:
            return level, _filled(missing - free, _of_levels(0, level, held, terms), held, terms)
    return HOPELESS, 0.0


@inlined
def _of_levels(low: int, high: int, held: _Held, terms: Terms) -> Rows:
    """int64[K]: which of the podgroups are of a level from ``low`` to ``high``."""
    some, many = np.empty(len(held.group), np.int64), 0
    for m in range(len(held.group)):
        if low <= terms.groups.level[held.group[m]] <= high:
            some[many] = m
            many += 1
    return some[:many]


@inlined
def _filled(missing: float, some: Rows, held: _Held, terms: Terms) -> float:
    """The least work that frees what is missing, as if podgroups could break in part."""
    if missing <= 0:
        return 0.0
    ratio, order = np.empty(len(some)), np.arange(len(some))
    for i in range(len(some)):
        rest = held.rest[some[i]]
        ratio[i] = _loss(held.group[some[i]], terms) / rest if rest > 0 else np.inf
    sort_by(order, ratio, np.arange(len(some)))
    work = 0.0
    for i in range(len(order)):
        taken = min(held.rest[some[order[i]]], missing)
        if taken > 0:
            work += taken * ratio[i]
            missing -= taken
    return work
