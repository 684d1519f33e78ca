"""What every domain could offer at best, before any is simulated: who is hopeless, and where to look first.

One sweep over the running tasks and one over the nodes serve all domains, whatever their number: domains are slices of
nodes, so slots are differences of running sums, and what podgroups hold in a domain is merged from *atoms*, the
narrowest slices that some domain begins or ends at. Nested domains share their atoms.

All figures are valid bounds of every plan that evicts candidates inside the domain only:

- slots of one shape alone, without and with all evictions, are exact (property tested);
- of the scarcest resource at least ``deficit`` must be freed: what the gang takes less what lies idle. Surplus frees
  some of it; the rest needs whole gangs, at the fewest the largest ones;
- its cost is at least that of a fractional knapsack (Dantzig 1957) of those footprints, where a podgroup's cost is the
  convex envelope of nothing, its surplus, everything.
"""

from dataclasses import dataclass

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Bytes, Floats, Ids, Longs, Rows
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.price import NO_PRIORITY, in_units, needed_by
from pipeline.kernels import kernel
from pipeline.placement.need import Need
from pipeline.placement.packing import slots_at
from pipeline.solvers.bundles.bound_kernels import sweep, weigh
from pipeline.solvers.bundles.splitting import runs

#: Lost work is rounded to this in a price; the bound stays clear of it, and of its own rounding.
_ROUNDING = 1e-6
_MARGIN = 1 - 1e-6


@dataclass(frozen=True)
class Bounds:
    """Per domain, in the order in which they were asked for.

    Attributes
    ----------
    room, reachable: int64[D, S]
        Slots for each shape alone: without evictions, and once every candidate has left. A node counts for at most as
        many as the need has tasks of the shape. A domain in which one is below ``need.count`` is hopeless.
    gangs: int64[D]
        At least so many gangs must break.
    priority: int64[D]
        A victim of at least this priority must go; NO_PRIORITY if perhaps none.
    lost_work: float64[D]
        At least so much work is lost.

    The last three are of use for domains that are not hopeless only.
    """

    room: Longs
    reachable: Longs
    gangs: Longs
    priority: Longs
    lost_work: Floats


def bounds(
    snapshot: Snapshot,
    need: Need,
    allowed: Bools,
    candidate: Bools,
    domains: Rows,
    lost_work: Floats,
    *,
    costs: bool = True,
) -> Bounds:
    """Bound what each domain offers and costs.

    Parameters
    ----------
    allowed
        bool[S, N]: nodes that each of ``need.shapes`` may use.
    candidate
        bool[T]: tasks that may be evicted.
    domains
        int64[D]: rows of ``Snapshot.topology``.
    lost_work
        float64[G]: weight of the work that a task of each podgroup loses.
    costs
        Whether the costs are wanted too; without, they are bounded by nothing.
    """
    starts, stops = snapshot.topology.start[domains], snapshot.topology.stop[domains]
    if len(domains) == 0 or need.minimum == 0:
        nothing = np.zeros((len(domains), len(need.shapes)), np.int64)
        none = np.zeros(len(domains), np.int64)
        return Bounds(nothing, nothing, none, none + NO_PRIORITY, none.astype(np.float64))
    tasks, future = snapshot.tasks, snapshot.room.future
    if not costs:
        occupancy, placed, room = snapshot.occupancy, snapshot.placed, snapshot.room
        evictable = snapshot.nodes.allocatable - room.idle - room.terminating
        _keep(
            evictable, occupancy.start, candidate[occupancy.task], placed.status, placed.shape, snapshot.shapes.request
        )
        without, after = _running_slots(need.request, need.count, allowed, future, evictable)
        none = np.zeros(len(domains), np.int64)
        return Bounds(
            without[stops] - without[starts],
            after[stops] - after[starts],
            none,
            none + NO_PRIORITY,
            none.astype(np.float64),
        )
    needed, free = needed_by(need.total), _free(future)
    unit = in_units(snapshot.shapes.request, needed)
    scarce = int(np.argmax(need.total / (free[-1] + 1.0)))
    deficit = np.maximum(need.total[scarce] - (free[stops, scarce] - free[starts, scarce]), 0)
    # What is too small even when empty is left out, so that atoms are no narrower than they must be.
    big = _spans(snapshot.nodes.allocatable[:, scarce], starts, stops) >= need.total[scarce]
    atoms = np.unique(np.concatenate([starts[big], stops[big]]))
    evictable, entries, owner, amount, largest, density = sweep(
        _atom_of(atoms, len(future)),
        max(len(atoms) - 1, 0),
        candidate,
        tasks.podgroup,
        tasks.shape,
        tasks.node,
        snapshot.shapes.request,
        unit,
        scarce,
    )
    without, after = _running_slots(need.request, need.count, allowed, future, evictable)
    reachable = after[stops] - after[starts]
    worth = np.flatnonzero(big & (deficit > 0) & (reachable >= need.count).all(axis=1))
    spare, broken = _surplus(snapshot)
    gangs, priority = np.zeros(len(domains), np.int64), np.full(len(domains), NO_PRIORITY, np.int64)
    work = np.zeros(len(domains))
    gangs[worth], priority[worth], work[worth] = weigh(
        np.searchsorted(atoms, starts[worth]),
        np.searchsorted(atoms, stops[worth]),
        deficit[worth].astype(np.float64),
        spare,
        snapshot.podgroups.priority,
        # What is broken already is worth nothing: a price does not count it either.
        np.where(broken, 0.0, lost_work),
        np.where(broken, 0.0, in_units(snapshot.podgroup_held, needed) * lost_work),
        entries,
        owner,
        amount,
        largest,
        density,
    )
    return Bounds(
        without[stops] - without[starts], reachable, gangs, priority, np.maximum(work * _MARGIN - _ROUNDING, 0.0)
    )


def _spans(values: Longs, starts: Longs, stops: Longs) -> Longs:
    """Sums of ``values`` over slices."""
    running = np.zeros(len(values) + 1, np.int64)
    np.cumsum(values, out=running[1:])
    return running[stops] - running[starts]


def _atom_of(atoms: Longs, nodes: int) -> Ids:
    """int32[N]: the atom of each node, NONE before the first and after the last."""
    atom = np.full(nodes, NONE, np.int32)
    if len(atoms):
        atom[atoms[0] : atoms[-1]] = np.repeat(np.arange(len(atoms) - 1, dtype=np.int32), np.diff(atoms))
    return atom


def _surplus(snapshot: Snapshot) -> tuple[Longs, Bools]:
    """Per podgroup how many tasks it can lose without breaking, at most, and whether it is broken and can lose all."""
    standing, minimum = snapshot.standing, snapshot.podgroups.min_available
    broken = standing.ready < minimum
    spare = np.where(broken | (minimum <= 1), standing.running, standing.ready - minimum)
    return np.minimum(spare, standing.running).astype(np.int64), broken


@kernel
def _free(future: Longs) -> Longs:
    """Running sums of what is free over the nodes: int64[N + 1, R]."""
    total = np.zeros((len(future) + 1, future.shape[1]), np.int64)
    for n in range(len(future)):
        for r in range(future.shape[1]):
            total[n + 1, r] = total[n, r] + max(future[n, r], 0)
    return total


@kernel
def _keep(held: Longs, start: Longs, candidate: Bools, status: Bytes, shape: Ids, request: Longs) -> None:
    """Take from what runs on each node who is no candidate, in place; mostly they are few. In the occupancy's order."""
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
