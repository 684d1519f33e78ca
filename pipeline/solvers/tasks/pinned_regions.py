"""The sticky domain of the task-centric actions: once a gang has a task in a domain, the rest goes there too.

After "Gang-Aware Preemption and Reclaim", section 4.3.2. Nothing is remembered: tasks that run or are promised nodes on
the what-if pin the domain, so the first placed task decides for all later ones, and a gang that runs in part is pinned
from the start. Before that, domains are tried in the order of the room that they offer the whole gang (the design
leaves the order open). A single task cannot be torn apart: domains that lie side by side are searched for it at once.
With a preferred level all domains are searched.
"""

from collections.abc import Callable

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Longs, Rows, is_among, mask_of, running_sums
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.subgroups import in_subtree
from pipeline.cluster.topology import Topology
from pipeline.cluster.what_if import WhatIf
from pipeline.decision.attempt import Attempt
from pipeline.placement.domains import domains_of
from pipeline.plugins.host import Host

#: Counts how many tasks like one each node takes now, and after all possible evictions: int64[N] each.
Slots = Callable[[], tuple[Longs, Longs]]


def is_hard(snapshot: Snapshot, podgroups: tuple[int, ...]) -> bool:
    """Whether a required level binds the podgroups or a part of them."""
    if (snapshot.podgroups.required_level[list(podgroups)] != NONE).any():
        return True
    parts = is_among(snapshot.subgroups.podgroup, podgroups)
    return bool((snapshot.subgroups.required_level[parts] != NONE).any())


def open_regions(attempt: Attempt, host: Host, state: WhatIf, waiting: Rows, slots: Slots) -> list[tuple[int, int]]:
    """Node slices ``start:stop`` in which a task may lie, best first; one if it is pinned, none if there is none.

    It is the first of those ``waiting`` (int64[K]) that are still to be placed together. For the last one a slice may
    be several domains side by side. ``host`` is of ``state``, in which the attempt's earlier tasks have their places.
    ``slots`` are asked only where there are several regions.
    """
    snapshot, alone = state.snapshot, len(waiting) == 1
    slices = _ranked(_of_podgroups(attempt, host, snapshot), slots, len(waiting), alone=alone)
    for level, held in _parts(snapshot, int(waiting[0])):
        inner, missing = [_inside(state, outer, level, held) for outer in slices], int(held[waiting].sum())
        slices = [piece for some in inner for piece in _ranked(some, slots, missing, alone=alone)]
    return slices


def _of_podgroups(attempt: Attempt, host: Host, snapshot: Snapshot) -> list[tuple[int, int]]:
    """The widest of the domains that the plugins offer; domains inside them add nothing."""
    if (snapshot.podgroups.required_level[list(attempt.podgroups)] == NONE).all():
        return [(0, len(snapshot.nodes))]
    topology = snapshot.topology
    offered = domains_of(host, attempt.podgroups, attempt.purpose)
    if attempt.domains is not None:
        offered = offered[is_among(offered, attempt.domains)]
    offered = offered[topology.start[offered] < topology.stop[offered]]
    offered = offered[~_inside_others(topology, offered)]
    offered = offered[np.argsort(-topology.tier[offered], kind="stable")]
    return topology.slices_of(offered)


def _inside_others(topology: Topology, domains: Rows) -> Bools:
    """bool[len(domains)]: those that lie in another one of them."""
    mine, inside = mask_of(domains, len(topology)), np.zeros(len(topology), bool)
    for _ in range(topology.levels):  # from the root down
        inside = (mine | inside)[topology.parent] & (topology.parent != NONE)
    return inside[domains]


def _parts(snapshot: Snapshot, task: int) -> list[tuple[int, Bools]]:
    """Required levels of the subgroups around the task, the widest first, and the members of each (bool[T])."""
    table, found = snapshot.subgroups, []
    row = int(snapshot.tasks.subgroup[task])
    while row != NONE:
        if table.required_level[row] != NONE:
            found.append((int(table.required_level[row]), in_subtree(table, row, snapshot.tasks.subgroup)))
        row = int(table.parent[row])
    return found[::-1]


def _inside(state: WhatIf, outer: tuple[int, int], level: int, members: Bools) -> list[tuple[int, int]]:
    """The domains of one level within a slice that hold all members that run or are promised nodes."""
    topology = state.snapshot.topology
    domains = topology.at_level(level)
    start, stop = np.maximum(topology.start[domains], outer[0]), np.minimum(topology.stop[domains], outer[1])
    held = state.place_of(np.flatnonzero(members))
    held = held[held != NONE]
    fits = start < stop
    if len(held):
        fits &= (start <= held.min()) & (stop > held.max())
    return [(int(first), int(last)) for first, last in zip(start[fits], stop[fits], strict=True)]


def _ranked(slices: list[tuple[int, int]], slots: Slots, missing: int, *, alone: bool) -> list[tuple[int, int]]:
    """Slices by whether all missing tasks may find room, then by how many need no eviction; ties as given."""
    if alone:
        slices = _side_by_side(slices)
    if len(slices) <= 1:
        return slices
    now, later = map(running_sums, slots())

    def worth(piece: tuple[int, int]) -> tuple[bool, int]:
        start, stop = piece
        return bool(later[stop] - later[start] < missing), -min(int(now[stop] - now[start]), missing)

    return sorted(slices, key=worth)


def _side_by_side(slices: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The slices, with those that follow each other without a gap joined into one."""
    joined = list[tuple[int, int]]()
    for start, stop in sorted(slices):
        follows = bool(joined) and joined[-1][1] == start
        joined.append((joined.pop()[0] if follows else start, stop))
    return joined
