"""Lower bounds of every domain, before any is selected: which domains are hopeless, and which to look at first.

All figures are valid bounds for every plan that evicts only candidates inside the domain:

- slots of one shape alone, without and with all evictions, are exact (property tested). Domains are slices of nodes, so
  slots are differences of running sums, whatever the number of domains.
- where tasks take whole nodes, the cheapest nodes must be cleared: see ``node_bounds``.
- what must be freed of the scarcest resource costs some work at some level: see ``sum_bounds``; more of it where parts
  of the gang go into one region each: see ``region_bounds``.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import Bools, Floats, Ids, Longs, Rows
from pipeline.decision.explanation import LowerBound
from pipeline.kernels import in_halves, inlined, writing
from pipeline.placement.layout.packing import slots_at
from pipeline.placement.layout.regions_of_parts import NOT_ASKED, AskedOfRegions
from pipeline.solvers.bundles.bundling.bundle_search import BundleSearch
from pipeline.solvers.bundles.bundling.kinds import HOPELESS, GroupKinds
from pipeline.solvers.bundles.bundling.records import BREAKING, Site, Terms
from pipeline.solvers.bundles.node_bounds import bound_by_nodes
from pipeline.solvers.bundles.region_bounds import levels_by_regions
from pipeline.solvers.bundles.sum_bounds import LevelsNeeded, levels_by_sums, work_by_sums

#: Lost work is rounded to this in a price; the bound allows for this and for its own rounding.
_ROUNDING = 1e-6
_MARGIN = 1 - 1e-6
#: From this many nodes on, two threads count slots.
_NODES_FOR_TWO = 30_000


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
    columns, fixed = search.columns, search.fixed
    node, shape = snapshot.placed.node[fixed], columns.form[fixed]
    sums = np.zeros((2, len(snapshot.nodes) + 1, len(need.count)), np.int64)

    def count(begin: int, end: int) -> int:
        _running_slots(
            (begin, end), columns.request, need.count, search.open, columns.future, columns.capacity,
            columns.nominated, node, shape, columns.held, sums,
        )  # fmt: skip
        return begin

    for middle in in_halves(count, len(snapshot.nodes), _NODES_FOR_TWO)[1:]:
        sums[:, middle + 1 :] += sums[:, middle, None]
    without, after = sums
    return Slots(without[stops] - without[starts], after[stops] - after[starts])


def hopeless(search: BundleSearch, domains: Rows) -> Bools:
    """bool[D]: domains that cannot hold the need even once every candidate has left."""
    return np.asarray((slot_bounds(search, domains).reachable < search.need.count).any(axis=1))


@writing("sums")
def _running_slots(
    nodes: tuple[int, int], request: Longs, count: Longs, allowed: Bools, future: Longs, capacity: Longs,
    nominated: Longs, node: Ids, shape: Ids, held: Longs, sums: Longs,
) -> None:  # fmt: skip
    """Fill in running sums of slots over the nodes from the first up to the second.

    Without and with evictions: ``sums`` int64[2, N + 1, S]. ``node`` (ascending) and ``shape`` are those of tasks that
    run and stay, ``held`` int64[shapes, R] what each holds. The others leave all but what is ``nominated``.
    """
    begin, end = nodes
    resources, without, after = future.shape[1], sums[0], sums[1]
    room, at = np.empty((1, resources), np.int64), np.searchsorted(node, begin)
    for n in range(begin, end):
        for r in range(resources):
            room[0, r] = capacity[n, r] - nominated[n, r]
        while at < len(node) and node[at] == n:
            for r in range(resources):
                room[0, r] -= held[shape[at], r]
            at += 1
        for s in range(len(count)):
            free, reachable = 0, 0
            if allowed[s, n]:
                free = slots_at(request, s, future, n, count[s])
                reachable = slots_at(request, s, room, 0, count[s])
            without[n + 1, s] = free + (without[n, s] if n > begin else 0)
            after[n + 1, s] = reachable + (after[n, s] if n > begin else 0)


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
        The work of that level, for selections with that head: in preempt of podgroups that break, or of surplus where
        none breaks; in reclaim of all that break.
    """

    head: Longs
    priority: Longs
    work: Floats


def cost_bounds(search: BundleSearch, domains: Rows) -> CostBounds:
    """Bound the price of a selection in each domain."""
    return bounds_with_levels(search, domains)[0]


def bounds_with_levels(
    search: BundleSearch, domains: Rows, *, heads_only: bool = False
) -> tuple[CostBounds, LevelsNeeded]:
    """The same, and the levels of the sums. ``heads_only``: ``work`` stays 0, which takes half as long."""
    topology = search.snapshot.topology
    slices, asked = (topology.start[domains], topology.stop[domains]), search.asked_of_regions or NOT_ASKED
    return bound_domains(search.site, asked, *slices, search.terms, search.kinds, search.seats(), heads_only)


def least_of_all(bounds: CostBounds, search: BundleSearch) -> LowerBound | None:
    """What every selection costs at least, surplus aside, whichever the domain; None if no domain has one."""
    at = np.lexsort((bounds.work, bounds.head))[:1]
    if len(at) == 0 or bounds.head[at[0]] >= HOPELESS:
        return None
    head, work = int(bounds.head[at[0]]), float(bounds.work[at[0]])
    if search.rules.by_priority:
        return LowerBound(0, ((int(bounds.priority[at[0]]), work),) if head >= BREAKING else ())
    return LowerBound(head, ((0, work),) if work > 0 else ())


@writing("seats")
def bound_domains(
    site: Site, asked: AskedOfRegions, starts: Longs, stops: Longs, terms: Terms, kinds: GroupKinds, seats: Ids,
    heads_only: bool,
) -> tuple[CostBounds, LevelsNeeded]:  # fmt: skip
    """Bound each slice of nodes ``starts[i]:stops[i]``; ``seats`` int32[G]: scratch, NONE everywhere."""
    many = len(starts)
    head, priority, work = np.zeros(many, np.int64), np.zeros(many, np.int64), np.zeros(many)
    levels = LevelsNeeded(np.zeros(many, np.int64), np.zeros(many, np.int64), np.zeros(many))
    for at in range(many):
        needed = levels_by_sums(site, starts[at], stops[at], terms, kinds, seats)
        for level in range(len(asked.amount)):
            needed = levels_by_regions(needed, level, asked, site, starts[at], stops[at], terms, kinds, seats)
        levels.low[at], levels.high[at], levels.missing[at] = needed
        head[at], work[at] = bound_within(needed, site, starts[at], stops[at], terms, kinds, seats, heads_only)
        priority[at] = kinds.priority[head[at] % BREAKING] if head[at] < HOPELESS else 0
    return CostBounds(head, priority, work), levels


@inlined
def bound_within(
    needed: tuple[int, int, float], site: Site, first: int, last: int, terms: Terms, kinds: GroupKinds, seats: Ids,
    heads_only: bool,
) -> tuple[int, float]:  # fmt: skip
    """The leading level and the work of a price on the nodes ``first:last``, at least.

    ``needed``: the levels of the sums, see ``LevelsNeeded``.
    """
    least = 0.0
    if not heads_only:
        least = work_by_sums(needed[0], needed[1], needed[2], site, first, last, terms, kinds, seats)
    bound = needed[1], least
    if len(terms.groups.node_rank) > 0 and needed[1] < HOPELESS:
        other = bound_by_nodes(site, first, last, terms, kinds, seats, heads_only)
        bound = other if other > bound else bound
    return bound[0], max(bound[1] * _MARGIN - _ROUNDING, 0.0)
