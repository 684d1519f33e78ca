"""How far the queue of victims must be followed at least for each slice of nodes: in one pass over the queue.

A task that leaves adds to what its node takes, and so to every slice with that node. In a slice each of the need's
shapes counts as if alone, so this is a lower bound, and exact where slots decide (``NodeSlice.plain``). A slice that
all victims together leave too few slots is never looked at.
"""

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Ids, Longs, Rows
from pipeline.kernels import kernel, linked
from pipeline.placement.layout.packing import node_slots, slots_more
from pipeline.placement.room.counted_need import CountedNeed
from pipeline.solvers.scenarios.units import VictimUnits


def leads(counted: CountedNeed, units: VictimUnits, domains: Rows) -> Longs:
    """int64[D]: the turn of the unit with which the need can fit in each domain at the earliest, if all before it go.

    NONE where it can without any; ``len(units)`` where all of them are too few.
    """
    topology, columns = counted.snapshot.topology, counted.columns
    slices = topology.start[domains], topology.stop[domains]
    asked, victims = (columns.request, counted.need.count), (units.start, units.rows)
    node = counted.snapshot.tasks.node
    return np.asarray(_leads(asked, counted.open, columns.future, slices, victims, node, counted.form, columns.held))


@kernel
def _leads(
    asked: tuple[Longs, Longs], allowed: Bools, future: Longs, slices: tuple[Longs, Longs],
    victims: tuple[Longs, Rows], node: Ids, form: Ids, held: Longs,
) -> Longs:  # fmt: skip
    """The same: ``asked`` are requests and counts by shape, ``slices`` where each begins and ends."""
    (request, wanted), (start, rows), room = asked, victims, future.copy()
    slots, _ = node_slots(request, wanted, allowed, 0, room)
    total, lacking = _totals(slots, wanted, slices)
    result = np.where(lacking == 0, NONE, len(start) - 1)
    above, at = _above(slices, lacking, len(room))
    lack = (lacking > 0).sum()
    for unit in range(len(start) - 1):
        if lack == 0:
            break
        for row in rows[start[unit] : start[unit + 1]]:
            n = node[row]
            if at[n] == at[n + 1]:
                continue
            for r in range(room.shape[1]):
                room[n, r] += held[form[row], r]
            for s in range(len(wanted)):
                if not allowed[s, n]:
                    continue
                now = slots_more(request, s, room, n, wanted[s], slots[s, n])
                more, slots[s, n] = now - slots[s, n], now
                if more == 0:
                    continue
                for one in above[at[n] : at[n + 1]]:
                    lacked = total[one, s] < wanted[s]
                    total[one, s] += more
                    if lacked and total[one, s] >= wanted[s]:
                        lacking[one] -= 1
                        if lacking[one] == 0:
                            result[one], lack = unit, lack - 1
    return result


@linked
def _totals(slots: Longs, wanted: Longs, slices: tuple[Longs, Longs]) -> tuple[Longs, Longs]:
    """Slots of each slice by shape, int64[D, S], and how many shapes have too few, int64[D]."""
    first, stop = slices
    total, lacking = np.zeros((len(first), len(wanted)), np.int64), np.zeros(len(first), np.int64)
    upto = np.zeros(slots.shape[1] + 1, np.int64)
    for s in range(len(wanted)):
        for n in range(slots.shape[1]):
            upto[n + 1] = upto[n] + slots[s, n]
        for one in range(len(first)):
            total[one, s] = upto[stop[one]] - upto[first[one]]
            lacking[one] += total[one, s] < wanted[s]
    return total, lacking


@linked
def _above(slices: tuple[Longs, Longs], lacking: Longs, nodes: int) -> tuple[Rows, Longs]:
    """For each node the slices that lack slots and hold it, one after the other; node ``n``'s end at ``[n + 1]``."""
    first, stop = slices
    at = np.zeros(nodes + 1, np.int64)
    for one in range(len(first)):
        if lacking[one]:
            at[first[one] + 1 : stop[one] + 1] += 1
    for n in range(nodes):
        at[n + 1] += at[n]
    above, here = np.empty(at[nodes], np.int64), at.copy()
    for one in range(len(first)):
        if lacking[one]:
            for n in range(first[one], stop[one]):
                above[here[n]] = one
                here[n] += 1
    return above, at
