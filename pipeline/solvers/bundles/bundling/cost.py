"""What victims cost: the one place where it is counted."""

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Floats, Ids, Longs
from pipeline.decision.price import NO_PRIORITY
from pipeline.kernels import inlined, kernel, writing
from pipeline.solvers.bundles.bundling.records import BREAKING, Bundles, Cost, Terms, Units
from pipeline.solvers.bundles.bundling.sorting import sort_by


@writing("seats")
def cost_of(bundles: Bundles, units: Units, returned: Bools, terms: Terms, seats: Ids) -> Cost:
    """The cost of the units that did not return.

    A podgroup that breaks loses all its tasks, its surplus included; one that was broken before loses no work.
    """
    groups, entries, worth = terms.groups, terms.entries, terms.worth
    many = len(units.bundle)
    for unit in range(many):
        if not returned[unit] and not bundles.safe[units.bundle[unit]]:
            seats[bundles.podgroup[units.bundle[unit]]] = unit
    group_of, work, breaks = np.empty(many, np.int64), np.zeros(many), np.zeros(many, np.bool_)
    head, highest, queue_rank, victims, left, broken, begin = 0, NO_PRIORITY, 0, 0, 0, 0, 0
    for unit in range(many):
        b = units.bundle[unit]
        group = bundles.podgroup[b]
        if not returned[unit]:
            victims += units.stop[unit] - begin + (0 if bundles.safe[b] else bundles.elsewhere[b])
            highest, queue_rank = max(highest, groups.priority[group]), max(queue_rank, groups.queue_rank[group])
            breaking = BREAKING if terms.rules.by_priority and not bundles.safe[b] else 0
            head = max(head, groups.level[group] + breaking)
            if not bundles.safe[b]:
                group_of[left], breaks[left] = group, True
                work[left] = bundles.cost[b] * groups.lost_work[group]
                left, broken = left + 1, broken + 1
            elif seats[group] == NONE:
                group_of[left] = group
                if terms.surplus.gang[group] >= 0:
                    work[left] = worth.unit[entries.shape[units.entry[begin]]] * groups.lost_work[group]
                left += 1
        begin = units.stop[unit]
    for unit in range(many):
        seats[bundles.podgroup[units.bundle[unit]]] = NONE
    level = np.zeros(left, np.int64)
    if terms.rules.by_priority:
        for i in range(left):
            level[i] = groups.priority[group_of[i]]
    broken_level, broken_work = _by_level(level, work, breaks[:left], True)
    surplus_level, surplus_work = _by_level(level, work, breaks[:left], False)
    return Cost(head, queue_rank, broken_level, broken_work, surplus_level, surplus_work, highest, victims, broken)


@inlined
def _by_level(level: Longs, work: Floats, breaks: Bools, which: bool) -> tuple[Longs, Floats]:
    """The work of units that break a podgroup (or of the others) by level, the highest first."""
    some = np.flatnonzero(breaks == which)
    sort_by(some, -level[some], some.copy())
    levels, sums, many = np.empty(len(some), np.int64), np.empty(len(some)), 0
    for at in some:
        if many == 0 or levels[many - 1] != level[at]:
            levels[many], sums[many] = level[at], 0.0
            many += 1
        sums[many - 1] += work[at]
    for row in range(many):
        sums[row] = np.round(sums[row], 6)
    return levels[:many], sums[:many]


@inlined
def _compared(levels: Longs, sums: Floats, other_levels: Longs, other_sums: Floats) -> int:
    """-1, 0 or 1: how two sequences of (level, sum) compare."""
    for at in range(min(len(levels), len(other_levels))):
        if levels[at] != other_levels[at]:
            return -1 if levels[at] < other_levels[at] else 1
        if sums[at] != other_sums[at]:
            return -1 if sums[at] < other_sums[at] else 1
    return int(np.sign(len(levels) - len(other_levels)))


@kernel
def is_cheaper(cost: Cost, other: Cost) -> bool:
    """Whether victims cost less, compared as ``Price`` does."""
    if cost.queue_rank != other.queue_rank:
        return cost.queue_rank < other.queue_rank
    broken = _compared(cost.broken_level, cost.broken_work, other.broken_level, other.broken_work)
    if broken != 0:
        return broken < 0
    surplus = _compared(cost.surplus_level, cost.surplus_work, other.surplus_level, other.surplus_work)
    if surplus != 0:
        return surplus < 0
    if cost.highest_priority != other.highest_priority:
        return cost.highest_priority < other.highest_priority
    return cost.victims < other.victims
