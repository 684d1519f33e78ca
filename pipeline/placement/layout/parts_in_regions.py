"""Parts of a need in one region each, where slots say whether they fit: then there is a node for every task."""

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, NONE, Bools, Counts, Longs, Rows, frozen
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.topology import Topology
from pipeline.kernels import kernel, linked
from pipeline.placement.layout.one_by_one import few_enough
from pipeline.placement.layout.packing import slots_at
from pipeline.placement.layout.parts import Group, groups_of, in_one_region_each, in_order_of_nodes, regions_at
from pipeline.placement.layout.region_slots import ANY, PartsInRegions, chosen_regions, trials_of
from pipeline.placement.need import Need

#: Nodes with at least this many slots count as equally empty; more slots than any node has.
_BUCKETS, _ANY = 256, (1 << 31) - 1


def parts_in_regions(need: Need, snapshot: Snapshot) -> PartsInRegions | None:
    """The parts of a need if slots say whether they fit: then the answer is the same in every slice; None elsewhere.

    That is if all tasks are alike and none of their podgroups runs, and if all parts that ask for more than the domain
    require the same level. They may also all lie in outer parts that require another one, if these have no other tasks.
    Cards and anti-affinity have to be counted in slots.
    """
    if need.plain or len(need.shapes) > 1:
        return None
    have, rows, grouping = snapshot.counts, list(need.podgroups), groups_of(need, snapshot, NO_ROWS)
    if grouping is None or (have.running[rows] + have.waiting[rows]).any():
        return None
    groups, of = grouping
    if len(groups) == 1 or (each := in_one_region_each(groups)) is None:
        return None
    inner, outer = each
    size, around = np.bincount(of[need.part[: need.minimum]], minlength=len(groups))[inner], np.zeros(0, np.int64)
    order = np.argsort(-size, kind="stable")
    if len(outer):
        total = np.bincount(outer, weights=size)[outer].astype(np.int64)
        order = np.lexsort((inner, -size, outer, -total))
        around = np.append(np.flatnonzero(np.diff(outer[order], prepend=NONE)), len(order))
    equal = bool((size == size[0]).all())
    if len(outer) and few_enough(need.minimum, 0):
        return None
    if snapshot.shapes.on_card[need.shapes].any() and (len(outer) or not equal):
        return None  # these are laid out in another way, which may find none where slots say that there is one
    region = regions_at(snapshot, groups[inner[0]].required)
    wide = regions_at(snapshot, groups[outer[0]].required) if len(outer) else region[:0]
    if len(outer) and (size.sum() < need.minimum or ((region == NONE) | (wide == NONE)).any()):
        return None
    return PartsInRegions(
        frozen(size[order], np.int32), int(size.min()), equal, ANY, frozen(around, np.int32), frozen(region, np.int32),
        frozen(wide, np.int32),
    )  # fmt: skip


def apart_in_regions(tasks: int, domains: Longs) -> PartsInRegions | None:
    """Tasks that are alike as parts of one task each, if they must not share a domain; None if domains are no regions.

    ``domains`` int64[N]: of the nodes; each has to be one slice of them, and every node in one.
    """
    region = np.cumsum(np.diff(domains, prepend=domains[:1]) != 0)
    if tasks <= 1 or (domains == NONE).any() or len(np.unique(domains)) != region[-1] + 1:
        return None
    each, none = frozen(np.ones(tasks), np.int32), frozen([], np.int32)
    return PartsInRegions(each, 1, True, 1, none, frozen(region, np.int32), none)


@kernel
def placed_in_regions(
    request: Longs, allowed: Bools, room: Longs, size: Counts, rest: int, first: Rows, last: Rows
) -> Longs:
    """How many tasks of each part go to each node, and of the ``rest``, int64[P + 1, n]; no rows if one does not fit.

    Parameters
    ----------
    request: int64[1, R]
    allowed: bool[1, n]
    room: int64[n, R]
    size: int32[P]
        The biggest first.
    rest
        How many tasks are in no part.
    first, last: int64[Q]
        Each region from its first node up to its last.
    """
    slots, sums = np.zeros(len(room), np.int64), np.zeros(len(first), np.int64)
    for n in range(len(room)):
        if allowed[0, n]:
            slots[n] = slots_at(request, 0, room, n, _ANY)
    for r in range(len(first)):
        sums[r] = slots[first[r] : last[r]].sum()
    order, region = chosen_regions(size, sums, trials_of(len(size)))
    taken = np.zeros((len(size) + 1, len(room)), np.int64)
    if len(order) < len(size):
        return taken[:0]
    for part in order:
        _fill(slots, size[part], first[region[part]], last[region[part]], taken[part])
    _fill(slots, rest, 0, len(room), taken[len(size)])
    return taken if taken.sum() == size.sum() + rest else taken[:0]


@linked
def _fill(slots: Longs, wanted: int, first: int, last: int, taken: Longs) -> None:
    """Place tasks on the nodes ``first:last``, the fullest first, as ``place_classes`` does; reduces ``slots``."""
    order = np.argsort(np.minimum(slots[first:last], min(wanted, _BUCKETS)), kind="mergesort")
    for n in order:
        here = min(slots[first + n], wanted)
        taken[first + n] += here
        slots[first + n] -= here
        wanted -= here


def nodes_in_regions(
    need: Need, groups: list[Group], group: Rows, allowed: Bools, room: Longs, start: int, topology: Topology
) -> Rows | None:
    """The nodes of tasks that are alike, in groups that require one level: see ``placed_in_regions``."""
    regions = topology.at_level(groups[1].required)
    regions = regions[(topology.start[regions] >= start) & (topology.stop[regions] <= start + len(room))]
    regions = in_order_of_nodes(topology, regions)
    size = np.bincount(group, minlength=len(groups))
    order = (-size[1:]).argsort(kind="stable")
    # Memory of one layout and type, so that one compiled specialisation serves all calls.
    taken = placed_in_regions(
        frozen(need.request, np.int64), frozen(allowed, np.bool_), frozen(room, np.int64),
        frozen(size[1:][order], np.int32), int(size[0]), frozen(topology.start[regions] - start, np.int64),
        frozen(topology.stop[regions] - start, np.int64),
    )  # fmt: skip
    if len(taken) == 0:
        return None
    nodes, each = np.empty(need.minimum, np.int64), np.arange(start, start + len(room))
    for row, g in enumerate([*(order + 1).tolist(), 0]):
        nodes[group == g] = each.repeat(taken[row])
    return nodes
