"""A slice of nodes while tasks leave and come back, counted in slots.

Slots decide, not sums: with the aggregate test of "Gang-Aware Preemption and Reclaim" half of the victims are evicted
for nothing. Slots change only on a victim's node, so a victim costs a few divisions. For one shape the tasks fit if and
only if the slots add up, also where parts go into one region each; of several shapes each is counted as if alone, which
gives a lower bound.
"""

from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Ids, Longs, Rows
from pipeline.kernels import inlined, kernel, linked, shared, writing
from pipeline.placement.layout.packing import node_slots, slots_less, slots_more
from pipeline.placement.layout.region_slots import PartsInRegions, RegionSlots, add_slots, parts_fit, region_slots
from pipeline.placement.room.room_columns import RoomColumns


class Ground(NamedTuple):
    """A slice of nodes; the last six columns change in place.

    Attributes
    ----------
    first
        The slice begins at this node.
    node, shape: int32[M]
        Node and form (see ``RoomColumns``) of the tasks that may leave, by entry or by row; all others keep their room.
    held: int64[K, R]
        What a task of each form holds.
    request: int64[S, R]
    wanted: int64[S]
    allowed: bool[S, N]
        For each shape of the need: what a task asks for, how many tasks, the nodes open to them.
    scarce
        The resource with the largest request in proportion to the free room; NONE: ``usable`` is not counted.
    room: int64[n, R]
    slots: int64[S, n]
        Per node, at most ``wanted``.
    total: int64[S]
        Their sums.
    usable: int64[n]
        How much of the scarce resource tasks of all shapes together can take at most; no rows for one shape.
    spare: int64[1]
        Their sum, less what the need asks for.
    by_region
        The same where parts of the need go into one region each.
    """

    first: int
    node: Ids
    shape: Ids
    held: Longs
    request: Longs
    wanted: Longs
    allowed: Bools
    scarce: int
    room: Longs
    slots: Longs
    total: Longs
    usable: Longs
    spare: Longs
    by_region: RegionSlots


def ground_on(
    nodes: tuple[int, int], tasks: tuple[Ids, Ids], columns: RoomColumns, wanted: Longs, allowed: Bools, scarce: int,
    parts: PartsInRegions,
) -> Ground:  # fmt: skip
    """The nodes from the first up to the second as they are; ``tasks``: the node and form of each."""
    request, future = columns.request, columns.future
    room, slots, total, usable, spare, regions = _counted(nodes, request, wanted, allowed, scarce, future, parts)
    sizes, outer, base, first, by_region, whole = regions
    here = parts._replace(size=parts.size[:sizes], around=parts.around[:outer])
    return Ground(
        nodes[0], *tasks, columns.held, request, wanted, allowed, scarce, room, slots, total, usable, spare,
        RegionSlots(here, base, first, by_region, whole),
    )  # fmt: skip


@kernel
def _counted(
    nodes: tuple[int, int], request: Longs, wanted: Longs, allowed: Bools, scarce: int, future: Longs,
    parts: PartsInRegions,
) -> tuple[Longs, Longs, Longs, Longs, Longs, tuple[int, int, int, Rows, Longs, Longs]]:  # fmt: skip
    """The columns that change; of those by region how many sizes and outer parts are told apart, and the others."""
    room, slots, total, usable, spare, there = counted(nodes, request, wanted, allowed, scarce, future, parts)
    regions = len(there.parts.size), len(there.parts.around), there.base, there.first, there.slots, there.whole
    return room, slots, total, usable, spare, regions


@linked
def counted(
    nodes: tuple[int, int], request: Longs, wanted: Longs, allowed: Bools, scarce: int, future: Longs,
    parts: PartsInRegions,
) -> tuple[Longs, Longs, Longs, Longs, Longs, RegionSlots]:  # fmt: skip
    """The columns of ``Ground`` that change, before any task leaves; ``future`` int64[N, R]: room of all nodes."""
    begin, end = nodes
    room = future[begin:end].copy()
    slots, total = node_slots(request, wanted, allowed, begin, room)
    usable, spare = usable_of(request, wanted, scarce, room, slots)
    return room, slots, total, usable, spare, region_slots(parts, begin, end, slots[0])


@shared
def copied_ground(ground: Ground) -> Ground:
    """The same with columns of its own where they change."""
    first, node, shape, held, request, wanted, allowed, scarce, room, slots, total, usable, spare, there = ground
    there = RegionSlots(there.parts, there.base, there.first, there.slots.copy(), there.whole.copy())
    return Ground(
        first, node, shape, held, request, wanted, allowed, scarce, room.copy(), slots.copy(), total.copy(),
        usable.copy(), spare.copy(), there,
    )  # fmt: skip


@inlined
def _usable(n: int, request: Longs, scarce: int, room: Longs, slots: Longs) -> int:
    """How much of the scarce resource of a node tasks of all shapes can take at most."""
    most = 0
    for s in range(len(request)):
        most += slots[s, n] * request[s, scarce]
    return int(min(most, max(room[n, scarce], 0)))


@linked
def usable_of(request: Longs, wanted: Longs, scarce: int, room: Longs, slots: Longs) -> tuple[Longs, Longs]:
    """What tasks of several shapes can take together: ``Ground.usable`` and ``Ground.spare``.

    ``slots`` int64[S, n] are those that nodes with this ``room`` (int64[n, R]) have.
    """
    together = len(wanted) > 1 and scarce != NONE
    usable, spare = np.zeros(len(room) if together else 0, np.int64), np.zeros(1, np.int64)
    for s in range(len(wanted) if together else 0):
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
def shift(n: int, task: int, sign: int, ground: Ground) -> None:
    """Let what a task holds be free (sign 1) or taken (-1); its node's slots stay as they were."""
    for r in range(ground.room.shape[1]):
        ground.room[n, r] += sign * ground.held[ground.shape[task], r]


@inlined
def recount_slots(n: int, sign: int, ground: Ground) -> None:
    """Count a node's slots anew after tasks have left it (sign 1) or come back to it (-1)."""
    for s in range(len(ground.wanted)):
        if ground.allowed[s, ground.first + n]:
            if sign > 0:
                now = slots_more(ground.request, s, ground.room, n, ground.wanted[s], ground.slots[s, n])
            else:
                now = slots_less(ground.request, s, ground.room, n, ground.wanted[s], ground.slots[s, n])
            _set_slots(s, n, now, ground)
    _set_usable(n, ground)


@inlined
def move(some: Rows, sign: int, ground: Ground) -> None:
    """Let the tasks ``some`` int64[C] leave (sign 1) or return (-1); updates room, slots and totals."""
    for i in range(len(some)):
        n = ground.node[some[i]] - ground.first
        shift(n, some[i], sign, ground)
        if i + 1 < len(some) and ground.node[some[i + 1]] - ground.first == n:
            continue  # neighbours in a bundle often share a node, whose slots are then counted once
        recount_slots(n, sign, ground)


@writing("ground")
def leave(some: Rows, ground: Ground) -> None:
    """Let tasks leave."""
    move(some, 1, ground)


@writing("ground")
def come_back(some: Rows, ground: Ground) -> None:
    """Let tasks return."""
    move(some, -1, ground)


@inlined
def enough(ground: Ground) -> bool:
    """Whether each shape alone has enough slots, all together enough to share, and each part a region."""
    count, total, missing = ground.wanted, ground.total, max(-ground.spare[0], 0)
    for s in range(len(count)):
        missing += max(count[s] - total[s], 0)
    return missing == 0 and parts_fit(ground.by_region)


@inlined
def missing_of(request: Longs, wanted: Longs, allowed: Bools, scarce: int, room: Longs, first: int) -> float:
    """What is asked for of the scarce resource beyond the room (int64[n, R]) of the nodes from ``first`` on."""
    missing = 0.0
    for s in range(len(wanted)):
        missing += wanted[s] * request[s, scarce]
    for n in range(len(room)):
        for s in range(len(wanted)):
            if allowed[s, first + n]:
                missing -= max(room[n, scarce], 0)
                break
    return missing


@kernel
def suffices(ground: Ground) -> bool:
    """The same for Python."""
    return bool(enough(ground))


@writing("ground")
def lead(stop: Longs, tasks: Rows, ground: Ground) -> int:
    """Let units leave until there are enough slots; returns how many left, NONE if all are too few.

    Unit ``u`` is ``tasks[stop[u - 1]:stop[u]]``.
    """
    for unit in range(len(stop) + 1):
        if enough(ground):
            return unit
        if unit < len(stop):
            move(tasks[stop[unit - 1] if unit > 0 else 0 : stop[unit]], 1, ground)
    return NONE


@inlined
def try_return(some: Rows, before: Longs, ground: Ground) -> bool:
    """Let tasks return if slots suffice without their room; if not, nothing changes.

    ``before`` int64[S, C'] is scratch for the slots that would be undone; it is at least as wide as ``some``.
    """
    slots, count, last = ground.slots, ground.wanted, len(some) - 1
    for i in range(len(some)):
        n, short = ground.node[some[i]] - ground.first, False
        shift(n, some[i], -1, ground)
        for s in range(len(count)):
            before[s, i] = slots[s, n]
            if i < last and ground.node[some[i + 1]] - ground.first == n:
                continue
            if ground.allowed[s, ground.first + n]:
                _set_slots(s, n, slots_less(ground.request, s, ground.room, n, count[s], slots[s, n]), ground)
                short |= ground.total[s] < count[s]
        _set_usable(n, ground)
        if short or ground.spare[0] < 0:
            last = i
            break
    if enough(ground):
        return True
    for i in range(last, -1, -1):
        n = ground.node[some[i]] - ground.first
        shift(n, some[i], 1, ground)
        for s in range(len(count)):
            _set_slots(s, n, before[s, i], ground)
        _set_usable(n, ground)
    return False
