"""What candidates hold of the scarce resource, by slice of nodes and podgroup, and what it costs at least to get it.

The kernels behind ``bounds``. An *atom* is the narrowest slice of nodes that some domain begins or ends at, so that
each domain is a run of atoms and nested domains share one sweep over the tasks.
"""

import numpy as np

from pipeline.cluster.arrays import Bools, Floats, Ids, Longs, Rows
from pipeline.decision.price import NO_PRIORITY
from pipeline.kernels import kernel

#: Low bits of a packed sort key that hold a row: of a priority's and of a price's (2**-29 of it is lost).
_ROW = (1 << 31) - 1
_BITS = 23


@kernel
def sweep(
    atom_of: Ids,
    atoms: int,
    candidate: Bools,
    podgroup: Ids,
    shape: Ids,
    node: Ids,
    request: Longs,
    unit: Floats,
    scarce: int,
) -> tuple[Longs, Longs, Rows, Floats, Floats, Floats]:
    """Sum candidates up by node, and what they hold of the scarce resource by atom and podgroup.

    Tasks are read in the order of their rows, where those of a podgroup mostly follow each other; where they do not,
    an atom gets several entries of one podgroup, which are merged when domains are weighed.

    Returns
    -------
    evictable: int64[N, R]
    start: int64[A + 1]
        The following columns have the entries ``start[a]:start[a + 1]`` for atom ``a``.
    owner: int64[P]
        The podgroup.
    amount, largest: float64[P]
        Of the resource: all candidates of the entry together, and the largest of them.
    density: float64[P]
        The least units that a candidate gives up per amount.
    """
    resources = request.shape[1]
    evictable = np.zeros((len(atom_of), resources), np.int64)
    most = len(candidate)  # never touched beyond the entries that there are, so it costs address space only
    where, owner = np.empty(most, np.int64), np.empty(most, np.int64)
    amount, largest, density = np.empty(most), np.empty(most), np.empty(most)
    weight = unit / np.maximum(request[:, scarce], 1)
    entry_of = np.full(atoms, -1, np.int64)
    entries, begin, current = 0, 0, -1
    for task in range(most):
        if not candidate[task]:
            continue
        s, n = shape[task], node[task]
        for r in range(resources):
            evictable[n, r] += request[s, r]
        atom = atom_of[n]
        if request[s, scarce] <= 0 or atom < 0:
            continue
        gain = float(request[s, scarce])
        if podgroup[task] != current:
            current = podgroup[task]
            begin = entries
        entry = entry_of[atom]
        if entry < begin:
            entry_of[atom] = entries
            where[entries], owner[entries] = atom, current
            amount[entries], largest[entries], density[entries] = gain, gain, weight[s]
            entries += 1
        else:
            amount[entry] += gain
            largest[entry] = max(largest[entry], gain)
            density[entry] = min(density[entry], weight[s])
    start = np.zeros(atoms + 1, np.int64)
    for entry in range(entries):
        start[where[entry] + 1] += 1
    for atom in range(atoms):
        start[atom + 1] += start[atom]
    fill = start.copy()
    order = np.empty(entries, np.int64)
    for entry in range(entries):
        order[fill[where[entry]]] = entry
        fill[where[entry]] += 1
    return evictable, start, owner[order], amount[order], largest[order], density[order]


@kernel
def weigh(
    begin: Longs,
    end: Longs,
    deficit: Floats,
    surplus: Longs,
    priority: Ids,
    lost_work: Floats,
    whole: Floats,
    start: Longs,
    podgroup: Rows,
    amount: Floats,
    largest: Floats,
    density: Floats,
) -> tuple[Longs, Longs, Floats]:
    """Bound each domain by the footprints in it: gangs, priority, work.

    Parameters
    ----------
    begin, end: int64[D]
        The domain's atoms are ``begin:end``.
    deficit: float64[D]
        What must be freed of the scarce resource.
    surplus: int64[G]
        Tasks that a podgroup can lose without breaking, at most.
    priority: int32[G]
    lost_work: float64[G]
        What a task loses, a unit of the need.
    whole: float64[G]
        What the podgroup loses when it breaks.
    start, podgroup, amount, largest, density
        The footprints, see ``sweep``.
    """
    domains = len(begin)
    gangs = np.zeros(domains, np.int64)
    highest = np.full(domains, NO_PRIORITY, np.int64)
    work = np.zeros(domains)
    seen, at = np.full(len(surplus), -1, np.int64), np.zeros(len(surplus), np.int64)
    room = 0
    for d in range(domains):
        room = max(room, start[end[d]] - start[begin[d]])
    owner = np.empty(room, np.int64)
    total, top, least = np.empty(room), np.empty(room), np.empty(room)
    for d in range(domains):
        many = 0
        for entry in range(start[begin[d]], start[end[d]]):
            group = podgroup[entry]
            if seen[group] == d:
                m = at[group]
                total[m] += amount[entry]
                top[m] = max(top[m], largest[entry])
                least[m] = min(least[m], density[entry])
            else:
                seen[group] = d
                at[group] = many
                owner[many] = group
                total[many], top[many] = amount[entry], largest[entry]
                least[many] = density[entry]
                many += 1
        gangs[d] = _fewest_gangs(deficit[d], owner[:many], total[:many], top[:many], surplus)
        highest[d] = _least_priority(deficit[d], owner[:many], total[:many], priority)
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
def _least_priority(deficit: float, owner: Rows, total: Floats, priority: Ids) -> int:
    """The priority that victims must reach: all below it together free too little."""
    packed = np.empty(len(owner), np.int64)  # priority and row in one key: sorting keys is cheaper than ranking rows
    for m in range(len(owner)):
        packed[m] = (np.int64(priority[owner[m]]) << 31) + m
    packed.sort()
    for key in packed:
        deficit -= total[key & _ROW]
        if deficit <= 0:
            return int(key >> 31)
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
        everything = max(cheap * total[m], whole[group])
        if safe > 0:
            price[pieces], size[pieces] = cheap, safe
            pieces += 1
        if total[m] > safe:
            price[pieces], size[pieces] = (everything - cheap * safe) / (total[m] - safe), total[m] - safe
            pieces += 1
    # The bits of a float that is not negative sort like it; its last ones give way to the row.
    row = (1 << _BITS) - 1
    packed = price[:pieces].view(np.int64) & ~row
    for piece in range(pieces):
        packed[piece] += piece
    packed.sort()
    work = 0.0
    for key in packed:
        piece = key & row
        taken = min(size[piece], deficit)
        work += taken * price[piece]
        deficit -= taken
        if deficit <= 0:
            break
    return work
