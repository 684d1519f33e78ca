"""What victims cost, counted in one place for whoever compares prices."""

from pipeline.cluster.arrays import NONE, Bools, Ids
from pipeline.decision.price import NO_PRIORITY
from pipeline.kernels import kernel
from pipeline.solvers.bundles.records import Bundles, Cost, Terms, Units

#: A podgroup that is content with one task is no gang.
_LONE = 1


@kernel
def cost_of(bundles: Bundles, units: Units, returned: Bools, terms: Terms, seats: Ids) -> Cost:
    """Count what the units cost that did not return.

    A gang that breaks loses all it has everywhere, its surplus included; one that was broken before loses nothing.

    Parameters
    ----------
    seats: int32[G]
        Scratch, NONE everywhere; left so.
    """
    groups, entries, worth = terms.groups, terms.entries, terms.worth
    for unit in range(len(units.bundle)):
        if not returned[unit] and not bundles.safe[units.bundle[unit]]:
            seats[bundles.podgroup[units.bundle[unit]]] = unit
    gangs, highest, queue_rank, important, victims, work, begin = 0, NO_PRIORITY, 0, 0, 0, 0.0, 0
    for unit in range(len(units.bundle)):
        b = units.bundle[unit]
        group = bundles.podgroup[b]
        if not returned[unit]:
            going = units.stop[unit] - begin + (0 if bundles.safe[b] else bundles.elsewhere[b])
            if groups.priority[group] > highest:
                highest, important = groups.priority[group], 0
            important += going if terms.rules.by_priority and groups.priority[group] == highest else 0
            queue_rank = max(queue_rank, groups.queue_rank[group])
            victims += going
            if not bundles.safe[b]:
                gangs += groups.minimum[group] > _LONE
                work += bundles.cost[b] * groups.lost_work[group]
            elif terms.surplus.gang[group] >= 0 and seats[group] == NONE:
                work += worth.unit[entries.shape[units.entry[begin]]] * groups.lost_work[group]
        begin = units.stop[unit]
    for unit in range(len(units.bundle)):
        seats[bundles.podgroup[units.bundle[unit]]] = NONE
    return Cost(gangs, highest, queue_rank, important, work, victims)
