"""The proof that no set of units breaks less, priority by priority."""

from collections.abc import Sequence

import numpy as np

from pipeline.cluster.arrays import NONE, all_true, is_among
from pipeline.cluster.rules.priorities import priority_ranks
from pipeline.solvers.scenarios.accumulating import Scenario


def breaks_least(scenario: Scenario, broken: Sequence[int]) -> bool:
    """Whether no units of the scenario make room and break less, priority by priority from the highest down.

    ``broken`` is how many podgroups a found set breaks, by priority, the highest first. Of the resource that is most
    short, all that is less important together with one podgroup fewer must be too little. Nodes do not count: what is
    too little in all is too little on any of them. A podgroup with surplus may lose other tasks than its units say, so
    all that it holds counts as if it broke nothing.
    """
    snapshot, units = scenario.law.host.context.snapshot, scenario.units
    missing = scenario.ground.need.total - snapshot.room.free
    scarce = int((missing / np.maximum(snapshot.capacity, 1)).argmax())
    held = np.add.reduceat(snapshot.shapes.request[snapshot.tasks.shape[units.rows], scarce], units.start[:-1])
    rank = snapshot.podgroups.once(priority_ranks)[1][units.podgroup]
    if not all_true(units.whole):
        rank = np.where(is_among(units.podgroup, units.podgroup[~units.whole]), NONE, rank)
    gone, levels = 0, len(broken) - 1
    for level, count in [(levels - at, count) for at, count in enumerate(broken) if count]:
        mine = np.sort(held[rank == level])[::-1]
        if gone + mine[: count - 1].sum() + held[rank < level].sum() >= missing[scarce]:
            return False
        gone += mine[:count].sum()
    return True
