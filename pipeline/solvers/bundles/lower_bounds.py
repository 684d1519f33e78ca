"""Lower bounds of every domain, before any is selected: which domains are hopeless, and which to look at first.

All figures are valid bounds for every plan that evicts only candidates inside the domain:

- slots of one shape alone, without and with all evictions, are exact (property tested). Domains are slices of nodes, so
  slots are differences of running sums, whatever the number of domains.
- where tasks take whole nodes, the cheapest nodes must be cleared: see ``node_bounds``.
- of the scarcest resource, at least what the gang takes less what is idle must be freed. Surplus frees some of it; the
  rest needs podgroups that break: in preempt up to some priority, and at that priority at least the work of a
  fractional knapsack (Dantzig 1957); in reclaim the same from queues up to some rank.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, NONE, Bools, Floats, Ids, Longs, Rows
from pipeline.decision.explanation import LowerBound
from pipeline.kernels import inlined, kernel
from pipeline.placement.layout.packing import slots_at
from pipeline.solvers.bundles.bundling.kinds import HOPELESS, GroupKinds
from pipeline.solvers.bundles.bundling.records import Site, Terms
from pipeline.solvers.bundles.bundling.sorting import sort_by
from pipeline.solvers.bundles.bundling.terms import BundleSearch
from pipeline.solvers.bundles.node_bounds import bound_by_nodes

#: Lost work is rounded to this in a price; the bound allows for this and for its own rounding.
_ROUNDING = 1e-6
_MARGIN = 1 - 1e-6


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
    nodes, placed, fixed = snapshot.totals.nodes, snapshot.placed, search.fixed
    without, after = _running_slots(
        need.request, need.count, search.open, snapshot.room.future, nodes.used, nodes.terminating,
        placed.node[fixed], placed.shape[fixed], snapshot.shapes.request,
    )  # fmt: skip
    return Slots(without[stops] - without[starts], after[stops] - after[starts])


def hopeless(search: BundleSearch, domains: Rows) -> Bools:
    """bool[D]: domains that cannot hold the need even once every candidate has left."""
    return np.asarray((slot_bounds(search, domains).reachable < search.need.count).any(axis=1))


@kernel
def _running_slots(
    request: Longs, count: Longs, allowed: Bools, future: Longs, used: Longs, terminating: Longs, node: Ids, shape: Ids,
    held: Longs,
) -> tuple[Longs, Longs]:  # fmt: skip
    """Running sums of slots over the nodes, without and with evictions: two of int64[N + 1, S].

    ``node`` (ascending) and ``shape`` are those of tasks that run and stay, ``held`` int64[shapes, R] what each holds.
    """
    nodes, resources = future.shape
    without = np.zeros((nodes + 1, len(count)), np.int64)
    after = np.zeros((nodes + 1, len(count)), np.int64)
    room, at = np.empty((1, resources), np.int64), 0
    for n in range(nodes):
        for r in range(resources):
            room[0, r] = future[n, r] + used[n, r] - terminating[n, r]
        while at < len(node) and node[at] == n:
            for r in range(resources):
                room[0, r] -= held[shape[at], r]
            at += 1
        for s in range(len(count)):
            free, reachable = 0, 0
            if allowed[s, n]:
                free = slots_at(request, s, future, n, count[s])
                reachable = slots_at(request, s, room, 0, count[s])
            without[n + 1, s] = without[n, s] + free
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


class _DomainTasks(NamedTuple):
    """Columns of the tasks of one domain; slices, because a compiler need not ask whether positions are negative."""

    podgroup: Ids
    shape: Ids
    candidate: Bools


class _Held(NamedTuple):
    """What podgroups hold of the scarce resource in one domain: as surplus, and the rest."""

    group: Rows
    free: Floats
    rest: Floats


class _ByLevel(NamedTuple):
    """The same summed by level."""

    free: Floats
    rest: Floats


def cost_bounds(search: BundleSearch, domains: Rows, *, heads_only: bool = False) -> CostBounds:
    """Bound the price of a selection in each domain; ``heads_only``: work is not bounded, which takes half as long."""
    if len(domains) == 0:
        return CostBounds(NO_ROWS, NO_ROWS, np.zeros(0))
    topology = search.snapshot.topology
    slices = topology.start[domains], topology.stop[domains]
    return bound_domains(search.site, *slices, search.terms, search.kinds, search.seats(), heads_only)


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
def bound_domains(
    site: Site, starts: Longs, stops: Longs, terms: Terms, kinds: GroupKinds, seats: Ids, heads_only: bool
) -> CostBounds:
    """Bound each slice of nodes ``starts[i]:stops[i]``; ``seats`` int32[G]: scratch, NONE everywhere."""
    many, by_node = len(starts), len(terms.groups.node_rank) > 0
    head, priority, work = np.zeros(many, np.int64), np.zeros(many, np.int64), np.zeros(many)
    for at in range(many):
        bound = _bound_by_sums(site, starts[at], stops[at], terms, kinds, seats, heads_only)
        if by_node and bound[0] < HOPELESS:
            other = bound_by_nodes(site, starts[at], stops[at], terms, kinds, seats, heads_only)
            bound = other if other > bound else bound
        head[at], work[at] = bound[0], max(bound[1] * _MARGIN - _ROUNDING, 0.0)
        priority[at] = kinds.priority[bound[0]] if bound[0] < HOPELESS else 0
    return CostBounds(head, priority, work)


@inlined
def _bound_by_sums(
    site: Site, first: int, last: int, terms: Terms, kinds: GroupKinds, seats: Ids, heads_only: bool
) -> tuple[int, float]:
    """The leading level and the work of a price on the nodes ``first:last``, at least, by sums over its podgroups."""
    missing, begin, end = _missing(site, first, last), site.start[first], site.start[last]
    if missing <= 0:
        return 0, 0.0
    amount = terms.worth.request[:, site.scarce].copy()
    here = _DomainTasks(
        terms.entries.podgroup[begin:end], terms.entries.shape[begin:end], terms.entries.candidate[begin:end]
    )
    low, high, missing = _levels_needed(missing, _summed(here, amount, terms, kinds, seats), terms.rules.by_priority)
    if heads_only or missing <= 0:
        return high, 0.0
    return high, _filled(missing, _held(_of_levels(low, high, here, kinds), here, amount, terms, seats), terms)


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
def _summed(here: _DomainTasks, amount: Longs, terms: Terms, kinds: GroupKinds, seats: Ids) -> _ByLevel:
    """Sum what candidates hold by level, without a branch; podgroups with some surplus are looked at apart."""
    levels, of = kinds.levels, kinds.of
    podgroup, shape, candidate = here.podgroup, here.shape, here.candidate
    sums, some, many = np.zeros(1 + 3 * levels, np.int64), np.empty(len(podgroup), np.int64), 0
    for i in range(len(podgroup)):
        kind = of[np.uint32(podgroup[i])] * np.uint32(candidate[i])
        sums[kind] += amount[np.uint32(shape[i])]
        some[many] = i
        many += int(kind > 2 * levels)
    by_level = _ByLevel(sums[1 + levels : 1 + 2 * levels].astype(np.float64), sums[1 : 1 + levels].astype(np.float64))
    held = _held(some[:many], here, amount, terms, seats)
    for m in range(len(held.group)):
        level = terms.groups.level[held.group[m]]
        by_level.free[level] += held.free[m]
        by_level.rest[level] += held.rest[m]
    return by_level


@inlined
def _of_levels(low: int, high: int, here: _DomainTasks, kinds: GroupKinds) -> Rows:
    """int64[K]: positions of candidates that do not go as surplus alone, of levels from ``low`` to ``high``."""
    of, podgroup, candidate = kinds.of, here.podgroup, here.candidate
    rest, mixed, more = np.uint32(1 + low), np.uint32(1 + 2 * kinds.levels + low), np.uint32(high - low)
    some, many = np.empty(len(podgroup), np.int64), 0
    for i in range(len(podgroup)):
        kind = of[np.uint32(podgroup[i])] * np.uint32(candidate[i])
        some[many] = i
        many += int((rest <= kind <= rest + more) | (mixed <= kind <= mixed + more))
    return some[:many]


@inlined
def _held(some: Rows, here: _DomainTasks, amount: Longs, terms: Terms, seats: Ids) -> _Held:
    """Sum the candidates at some positions by podgroup; each has a surplus, or none of it is surplus."""
    podgroup, shape, spare = here.podgroup, here.shape, terms.surplus.gang
    group, total, many = np.empty(len(some), np.int64), np.zeros(len(some)), 0
    largest, free = np.zeros(len(some)), np.zeros(len(some))
    for i in some:
        owner, held = podgroup[i], float(amount[shape[i]])
        m = seats[owner]
        if m == NONE:
            m = many
            seats[owner], group[m] = m, owner
            many += 1
        total[m] += held
        largest[m] = max(largest[m], held)
    for m in range(many):
        owner = group[m]
        seats[owner] = NONE
        if spare[owner] > 0:
            free[m] = min(total[m], spare[owner] * largest[m])
            breaks = terms.rules.allow_whole and (terms.groups.complete[owner] or not terms.rules.cluster_wide)
            total[m] = total[m] - free[m] if breaks else 0.0
    return _Held(group[:many], free[:many], total[:many])


@inlined
def _levels_needed(missing: float, by_level: _ByLevel, by_priority: bool) -> tuple[int, int, float]:
    """From which to which level podgroups break (HOPELESS if all free too little), and what they must free.

    In preempt all surplus goes first, then the lowest levels; the highest of these counts. In reclaim the surplus of
    the fairest queues goes first.
    """
    if by_priority:
        missing -= by_level.free.sum()
        if missing <= 0:
            return 0, 0, 0.0
    levels, sum_, free = len(by_level.rest), 0.0, 0.0
    for level in range(levels):
        if by_priority:
            if by_level.rest[level] >= missing:
                return level, level, missing
            missing -= by_level.rest[level]
        else:
            sum_ += by_level.free[level] + by_level.rest[level]
            free += by_level.free[level]
            if sum_ >= missing:
                return 0, level, missing - free
    return 0, HOPELESS, 0.0


@inlined
def _filled(missing: float, held: _Held, terms: Terms) -> float:
    """The least work that frees what is missing, as if podgroups could break in part."""
    ratio, order = np.empty(len(held.group)), np.arange(len(held.group))
    for m in range(len(held.group)):
        group, rest = held.group[m], held.rest[m]
        loss = terms.groups.cost[group] * terms.groups.lost_work[group]
        ratio[m] = loss / rest if rest > 0 else np.inf
    least = ratio.copy()
    sort_by(order, least, np.arange(len(order)))
    work = 0.0
    for next_ in order:
        taken = min(held.rest[next_], missing)
        if taken > 0:
            work += taken * ratio[next_]
            missing -= taken
    return work
