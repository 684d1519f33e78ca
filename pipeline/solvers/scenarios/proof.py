"""The proof that no set of units breaks less, priority by priority."""

from collections.abc import Sequence

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Ids, Longs, Rows
from pipeline.cluster.rules.priorities import priority_ranks
from pipeline.kernels import kernel
from pipeline.solvers.scenarios.accumulating import Scenario


def breaks_least(scenario: Scenario, broken: Sequence[int]) -> bool:
    """Whether no units of the scenario make room and break less, priority by priority from the highest down.

    ``broken`` is how many podgroups a found set breaks, by priority, the highest first. Of the resource that is most
    short, all that is less important together with one podgroup fewer must be too little. Nodes do not count: what is
    too little in all is too little on any of them. A podgroup with surplus may lose other tasks than its units say, so
    all that it holds counts as if it broke nothing.
    """
    snapshot, units, least = scenario.ground.snapshot, scenario.units, np.array(broken, np.int64)
    missing, rank_of = scenario.ground.need.total - snapshot.room.free, snapshot.podgroups.once(priority_ranks)[1]
    shape, request = snapshot.tasks.shape, snapshot.shapes.request
    owners = units.podgroup, units.whole, rank_of
    return bool(_breaks_least(units.rows, units.start, owners, shape, request, missing, snapshot.capacity, least))


@kernel
def _breaks_least(
    rows: Rows, start: Longs, owners: tuple[Rows, Bools, Rows], shape: Ids, request: Longs,
    missing: Longs, capacity: Longs, broken: Longs,
) -> bool:  # fmt: skip
    """The same; ``owners`` are the podgroup of each unit, whether it is whole, and the priority of each podgroup."""
    (podgroup, whole, rank_of), scarce = owners, np.argmax(missing / np.maximum(capacity, 1))
    held, spares = np.zeros(len(podgroup), np.int64), np.zeros(len(rank_of), np.bool_)
    for unit in range(len(podgroup)):
        spares[podgroup[unit]] |= not whole[unit]
        for row in rows[start[unit] : start[unit + 1]]:
            held[unit] += request[shape[row], scarce]
    rank, gone = np.where(spares[podgroup], NONE, rank_of[podgroup]), 0
    for at, count in enumerate(broken):
        level = len(broken) - 1 - at
        if count == 0:
            continue
        mine = np.sort(held[rank == level])[::-1]
        if gone + mine[: count - 1].sum() + held[rank < level].sum() >= missing[scarce]:
            return False
        gone += mine[:count].sum()
    return True
