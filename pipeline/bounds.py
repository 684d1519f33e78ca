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

from pipeline.cluster.arrays import Bools, Floats, Ids, Longs, Rows
from pipeline.cluster.resources import PODS
from pipeline.cluster.snapshot import Snapshot
from pipeline.compiled import kernel
from pipeline.explanation import NO_PRIORITY
from pipeline.need import Need
from pipeline.placement import slots_at

#: Lost work is rounded to this in a price; the bound stays clear of it.
_ROUNDING = 1e-6


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


def units(snapshot: Snapshot, need: Need) -> Floats:
    """float64[shapes]: how much of the need one task of each shape is worth (document 1, section 3.4.3).

    The sum, over the resources that the need asks for, of the task's request divided by the need's. Pods are left out
    as long as the need asks for anything else: every task has one, whatever its size.
    """
    total = need.total
    asked = np.flatnonzero(total > 0)
    if len(asked) > 1:
        asked = asked[asked != PODS]
    weighed: Floats = (snapshot.shapes.request[:, asked] / total[asked]).sum(axis=1)
    return weighed


def bounds(
    snapshot: Snapshot,
    need: Need,
    allowed: Bools,
    candidate: Bools,
    domains: Rows,
    lost_work: Floats,
    everywhere: bool = False,
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
    everywhere
        Whether a broken gang costs its candidates outside the domain too.
    """
    starts, stops = snapshot.topology.start[domains], snapshot.topology.stop[domains]
    if len(domains) == 0 or need.minimum == 0:
        nothing = np.zeros((len(domains), len(need.shapes)), np.int64)
        none = np.zeros(len(domains), np.int64)
        return Bounds(nothing, nothing, none, none + NO_PRIORITY, none.astype(np.float64))
    future = snapshot.room.future
    scarce = _scarcest(need, future)
    atoms = np.unique(np.concatenate([starts, stops]))
    unit, tasks, groups = units(snapshot, need), snapshot.tasks, snapshot.podgroups
    evictable, start, owner, amount, largest, density, lowest = _sweep(
        snapshot.occupancy.start,
        snapshot.occupancy.task,
        atoms,
        candidate,
        tasks.podgroup,
        tasks.shape,
        tasks.priority,
        snapshot.shapes.request,
        unit,
        scarce,
        len(groups),
    )
    room, reachable = _running_slots(need.request, need.count, allowed, future, evictable)
    room, reachable = (sums[:, stops] - sums[:, starts] for sums in (room, reachable))
    free = np.zeros(len(future) + 1, np.int64)
    np.cumsum(np.where(allowed.any(axis=0), np.maximum(future[:, scarce], 0), 0), out=free[1:])
    deficit = np.maximum(need.total[scarce] - (free[stops] - free[starts]), 0)
    deficit[(reachable < need.count[:, None]).any(axis=0)] = 0
    whole = _whole_work(candidate, tasks.podgroup, tasks.shape, unit, len(groups)) if everywhere else np.zeros(0)
    gangs, priority, work = _weigh(
        np.searchsorted(atoms, starts),
        np.searchsorted(atoms, stops),
        deficit.astype(np.float64),
        start,
        owner,
        amount,
        largest,
        density,
        lowest,
        _surplus(snapshot),
        np.ascontiguousarray(lost_work),
        whole,
    )
    return Bounds(room.T.copy(), reachable.T.copy(), gangs, priority, np.maximum(work * (1 - 1e-9) - _ROUNDING, 0.0))


def _scarcest(need: Need, future: Longs) -> int:
    """The resource of which the need takes the largest part of what is free."""
    free = np.maximum(future, 0).sum(axis=0)
    return int(np.argmax(need.total / (free + 1.0)))


def _surplus(snapshot: Snapshot) -> Longs:
    """int64[G]: how many tasks each podgroup can lose without breaking, at most; all of them if it is broken."""
    standing, minimum = snapshot.standing, snapshot.podgroups.min_available
    spare = np.where(standing.ready < minimum, standing.running, standing.ready - minimum)
    return np.minimum(spare, standing.running).astype(np.int64)


@kernel
def _whole_work(candidate: Bools, podgroup: Ids, shape: Ids, unit: Floats, podgroups: int) -> Floats:
    """Units of all candidates of each podgroup together."""
    total = np.zeros(podgroups, np.float64)
    for task in range(len(candidate)):
        if candidate[task]:
            total[podgroup[task]] += unit[shape[task]]
    return total


@kernel
def _sweep(
    first: Longs,
    held: Rows,
    atoms: Longs,
    candidate: Bools,
    podgroup: Ids,
    shape: Ids,
    priority: Ids,
    request: Longs,
    unit: Floats,
    scarce: int,
    podgroups: int,
) -> tuple[Longs, Longs, Rows, Floats, Floats, Floats, Longs]:
    """Sum candidates up by node, and what they hold of the scarce resource by atom and podgroup.

    Returns
    -------
    evictable: int64[N, R]
    start: int64[A + 1]
        The following columns have the entries ``start[a]:start[a + 1]`` for atom ``a``.
    owner: int64[P]
        The podgroup.
    amount, largest: float64[P]
        Of the resource: all candidates of the podgroup in the atom together, and the largest of them.
    density: float64[P]
        The least units that a candidate gives up per amount.
    lowest: int64[P]
        The lowest priority among them.
    """
    resources = request.shape[1]
    evictable = np.zeros((len(first) - 1, resources), np.int64)
    most = first[atoms[-1]] - first[atoms[0]]
    owner = np.empty(most, np.int64)
    amount, largest, density = np.empty(most), np.empty(most), np.empty(most)
    lowest = np.empty(most, np.int64)
    start = np.zeros(len(atoms), np.int64)
    entry_of = np.full(podgroups, -1, np.int64)
    weight = np.empty(len(request))
    for s in range(len(request)):
        weight[s] = unit[s] / request[s, scarce] if request[s, scarce] > 0 else 0.0
    entries = 0
    for atom in range(len(atoms) - 1):
        begin = entries
        for n in range(atoms[atom], atoms[atom + 1]):
            for at in range(first[n], first[n + 1]):
                task = held[at]
                if not candidate[task]:
                    continue
                s = shape[task]
                for r in range(resources):
                    evictable[n, r] += request[s, r]
                gain = float(request[s, scarce])
                if gain <= 0:
                    continue
                group = podgroup[task]
                entry = entry_of[group]
                if entry < begin:
                    entry = entries
                    entries += 1
                    entry_of[group] = entry
                    owner[entry] = group
                    amount[entry] = gain
                    largest[entry] = gain
                    density[entry] = weight[s]
                    lowest[entry] = priority[task]
                else:
                    amount[entry] += gain
                    largest[entry] = max(largest[entry], gain)
                    density[entry] = min(density[entry], weight[s])
                    lowest[entry] = min(lowest[entry], priority[task])
        start[atom + 1] = entries
    return (
        evictable,
        start,
        owner[:entries],
        amount[:entries],
        largest[:entries],
        density[:entries],
        lowest[:entries],
    )


@kernel
def _running_slots(
    request: Longs, count: Longs, allowed: Bools, future: Longs, evictable: Longs
) -> tuple[Longs, Longs]:
    """Running sums of slots over the nodes, without and with evictions: two of int64[S, N + 1]."""
    nodes = len(future)
    without = np.zeros((len(count), nodes + 1), np.int64)
    after = np.zeros((len(count), nodes + 1), np.int64)
    both = future + evictable
    for s in range(len(count)):
        for n in range(nodes):
            room, reachable = 0, 0
            if allowed[s, n]:
                room = slots_at(request, s, future, n, count[s])
                reachable = slots_at(request, s, both, n, count[s])
            without[s, n + 1] = without[s, n] + room
            after[s, n + 1] = after[s, n] + reachable
    return without, after


@kernel
def _weigh(
    begin: Longs,
    end: Longs,
    deficit: Floats,
    start: Longs,
    podgroup: Rows,
    amount: Floats,
    largest: Floats,
    density: Floats,
    priority: Longs,
    surplus: Longs,
    lost_work: Floats,
    whole: Floats,
) -> tuple[Longs, Longs, Floats]:
    """Bound each domain (atoms ``begin:end``) by the footprints in it: gangs, priority, work."""
    domains = len(begin)
    gangs = np.zeros(domains, np.int64)
    highest = np.full(domains, NO_PRIORITY, np.int64)
    work = np.zeros(domains)
    seen, at = np.full(len(surplus), -1, np.int64), np.zeros(len(surplus), np.int64)
    room = 0
    for d in range(domains):
        room = max(room, start[end[d]] - start[begin[d]])
    owner, lowest = np.empty(room, np.int64), np.empty(room, np.int64)
    total, top, least = np.empty(room), np.empty(room), np.empty(room)
    for d in range(domains):
        if deficit[d] <= 0:
            continue
        many = 0
        for entry in range(start[begin[d]], start[end[d]]):
            group = podgroup[entry]
            if seen[group] == d:
                m = at[group]
                total[m] += amount[entry]
                top[m] = max(top[m], largest[entry])
                least[m] = min(least[m], density[entry])
                lowest[m] = min(lowest[m], priority[entry])
            else:
                seen[group] = d
                at[group] = many
                owner[many] = group
                total[many], top[many] = amount[entry], largest[entry]
                least[many], lowest[many] = density[entry], priority[entry]
                many += 1
        gangs[d] = _fewest_gangs(deficit[d], owner[:many], total[:many], top[:many], surplus)
        highest[d] = _least_priority(deficit[d], total[:many], lowest[:many])
        work[d] = _least_work(
            deficit[d], owner[:many], total[:many], top[:many], least[:many], surplus, lost_work, whole
        )
    return gangs, highest, work


@kernel
def _fewest_gangs(deficit: float, owner: Rows, total: Floats, top: Floats, surplus: Longs) -> int:
    """How many gangs must break: surplus frees what it can, then the largest remainders."""
    rest = np.empty(len(owner))
    for m in range(len(owner)):
        safe = min(total[m], surplus[owner[m]] * top[m])
        deficit -= safe
        rest[m] = total[m] - safe
    if deficit <= 0:
        return 0
    rest.sort()
    broken = 0
    while deficit > 0 and broken < len(rest):
        broken += 1
        deficit -= rest[len(rest) - broken]
    return broken


@kernel
def _least_priority(deficit: float, total: Floats, lowest: Longs) -> int:
    """The priority that victims must reach: all below it together free too little."""
    for m in np.argsort(lowest):
        deficit -= total[m]
        if deficit <= 0:
            return int(lowest[m])
    return NO_PRIORITY


@kernel
def _least_work(
    deficit: float,
    owner: Rows,
    total: Floats,
    top: Floats,
    least: Floats,
    surplus: Longs,
    lost_work: Floats,
    whole: Floats,
) -> float:
    """Fill the deficit with the cheapest pieces; a podgroup is one piece, or its surplus and then the rest."""
    price, size = np.empty(2 * len(owner)), np.empty(2 * len(owner))
    pieces = 0
    for m in range(len(owner)):
        group = owner[m]
        cheap = least[m] * lost_work[group]
        safe = min(total[m], surplus[group] * top[m])
        everything = max(cheap * total[m], whole[group] * lost_work[group] if len(whole) > 0 else 0.0)
        if safe > 0:
            price[pieces], size[pieces] = cheap, safe
            pieces += 1
        if total[m] > safe:
            price[pieces], size[pieces] = (everything - cheap * safe) / (total[m] - safe), total[m] - safe
            pieces += 1
    work = 0.0
    for piece in np.argsort(price[:pieces]):
        taken = min(size[piece], deficit)
        work += taken * price[piece]
        deficit -= taken
        if deficit <= 0:
            break
    return work
