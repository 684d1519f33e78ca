"""Whether victims come back before the podgroup that reclaims: then nothing would be gained by taking them.

KAI Scheduler places a preemptor and its victims again in the order of queues (notes on KAI, 1.6). Victims of a queue
above its share come after a queue that stays within what it deserves; else queue priority decides (`order`). Victims of
a queue whose limit was lowered below what it holds may not come back at all.
"""

import numpy as np

from pipeline.cluster.arrays import Bools, Floats, Ids, Longs
from pipeline.cluster.queue_tree import chain, least_above
from pipeline.cluster.tables import Queues
from pipeline.plugins.fairshare.order import Compared


def by_priority(queues: Queues) -> bool:
    """Whether priority tells some siblings apart."""
    order = np.argsort(queues.parent, kind="stable")
    above, priority = queues.parent[order], queues.priority[order]
    return bool(((above[1:] == above[:-1]) & (priority[1:] != priority[:-1])).any())


def outranked(queues: Compared, queue: int, request: Floats, lost: Floats, returns: Floats) -> bool:
    """Whether a queue would take, from a queue of higher priority, what it does not deserve itself.

    Queues are compared where their ancestors differ. One that holds more than its fair share of every resource even
    without the victims comes last, whatever its priority.

    Parameters
    ----------
    request: float64[R]
        What ``queue`` asks for.
    lost: float64[Q, R]
        What each queue would lose, descendants included.
    returns: float64[Q, R]
        The part of it that limits would let in again.
    """
    for mine in chain(queues.parent, queue):
        if (queues.allocated[mine] + request <= queues.deserved[mine])[queues.counts].all():
            continue
        siblings = queues.parent == queues.parent[mine]
        above = siblings & (queues.priority > queues.priority[mine]) & returns.any(axis=1)
        rest = queues.allocated[above] - lost[above]
        last = _beyond(rest, queues.fair[above], queues.counts)
        if not (last & ~_beyond(queues.allocated[mine], queues.fair[mine], queues.counts)).all():
            return True
    return False


def let_in_again(parent: Ids, left: Longs, lost: Floats, queue: Ids, request: Longs) -> Bools:
    """bool[V]: which victims, each by itself, the limits of its queue and its ancestors let in again.

    Parameters
    ----------
    left: int64[Q, R]
        What each queue may take until its limit; negative where it holds more.
    lost: float64[Q, R]
        What each queue would lose, descendants included.
    queue, request: int32[V], int64[V, R]
        Those of the victims.
    """
    room = least_above(parent, left + lost.astype(np.int64))[queue]
    return np.asarray(((request <= room) | (request == 0)).all(axis=1))


def _beyond(held: Floats, fair: Floats, counts: Bools) -> Bools:
    """bool[...]: queues that hold more than their fair share of every resource."""
    return np.asarray((fair < held)[..., counts].all(axis=-1))
