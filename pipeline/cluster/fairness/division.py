"""How one resource is divided among sibling queues, as KAI Scheduler's `resource_division` does it (v0.12 to v0.15).

Each queue first gets what it deserves, up to what it asks for. What is left goes to priorities in descending order, in
rounds: every queue that wants more is offered its part by weight, past usage counting against it. If the offer is
enough, it takes what it wants, and where something is left there is another round; else it gets the whole units of the
offer. Last, units that rounding left over are handed out one by one.

Amounts are float64 in base units, and sums and products are formed in upstream's order: a remainder decides which
queue gets the last unit, so the last bit of a float matters.
"""

from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import Floats, Ids, Longs
from pipeline.kernels import linked

#: Remainder of a queue that was not cut to whole units.
_UNCUT = -1.0


class Siblings(NamedTuple):
    """M queues that share one total of one resource.

    Attributes
    ----------
    priority: int32[M]
    seniority: int64[M]
        Rank by age, then name.
    deserved: float64[M]
        Infinite: entitled to the whole total.
    requestable: float64[M]
        What it asks for, at most its limit.
    weight, usage: float64[M]
        Share of the surplus; past use as a part of the whole.
    """

    priority: Ids
    seniority: Longs
    deserved: Floats
    requestable: Floats
    weight: Floats
    usage: Floats


@linked
def divided(total: float, k: float, queues: Siblings) -> Floats:
    """float64[M]: what each queue gets of ``total``; ``k`` is how much past usage weighs.

    What queues deserve is not scaled down where it exceeds the total together.
    """
    count = len(queues.weight)
    share, remainder = np.empty(count), np.full(count, _UNCUT)
    left = total
    for queue in range(count):
        share[queue] = min(
            total if np.isinf(queues.deserved[queue]) else queues.deserved[queue], queues.requestable[queue]
        )
        left -= share[queue]
    for priority in np.unique(queues.priority)[::-1]:
        again = True
        while again and left > 0:
            left, again = _round(priority, left, k, queues, share, remainder)
    _hand_out(left, queues, share, remainder)
    return share


@linked
def _round(
    priority: int, left: float, k: float, queues: Siblings, share: Floats, remainder: Floats
) -> tuple[float, bool]:
    """Offer ``left`` once to the queues of one priority that want more: what is left then, and whether to go on."""
    wanting = (queues.priority == priority) & (share < queues.requestable)
    weights = 0.0
    for queue in np.flatnonzero(wanting):
        weights += queues.weight[queue]
    if weights <= 0:
        return left, False
    part, parts = np.zeros(len(share)), 0.0
    for queue in np.flatnonzero(wanting):
        fair = queues.weight[queue] / weights
        part[queue] = max(0.0, fair + k * (fair - queues.usage[queue]))
        parts += part[queue]
    offered, again = left, False
    for queue in np.flatnonzero(part > 0):
        offer, want = offered * (part[queue] / parts), queues.requestable[queue] - share[queue]
        if want <= offer:
            given, remainder[queue] = want, _UNCUT
            again |= want < offer
        else:
            given = np.floor(offer)
            remainder[queue] = offer - given
        share[queue] += given
        left -= given
    return left, again


@linked
def _hand_out(left: float, queues: Siblings, share: Floats, remainder: Floats) -> None:
    """Give one unit at most to each queue that was cut: by priority, the larger remainder, then age."""
    while left > 0:
        best = -1
        for queue in range(len(share)):
            if remainder[queue] != _UNCUT and (best < 0 or _before(queue, best, queues, remainder)):
                best = queue
        if best < 0:
            return
        given = min(1.0, left, queues.requestable[best] - share[best])
        share[best] += given
        left -= given
        remainder[best] = _UNCUT


@linked
def _before(one: int, other: int, queues: Siblings, remainder: Floats) -> bool:
    if queues.priority[one] != queues.priority[other]:
        return bool(queues.priority[one] > queues.priority[other])
    if remainder[one] != remainder[other]:
        return bool(remainder[one] > remainder[other])
    return bool(queues.seniority[one] < queues.seniority[other])
