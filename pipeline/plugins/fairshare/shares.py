"""Fair shares in a tree of queues: each resource is divided from the top, and children divide what their parent got.

Amounts are float64 in base units, infinite without a limit, as in upstream's arithmetic (`fairness.division`). Pods
are not divided: KAI Scheduler divides cpu, memory and devices.
"""

from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import NONE, UNLIMITED, UNSET, Floats, Ids, Longs
from pipeline.cluster.counted.change_log import Plain
from pipeline.cluster.fairness.division import Siblings, divided
from pipeline.cluster.queue_tree import with_descendants
from pipeline.cluster.resources import PODS
from pipeline.cluster.rules.requests import lasting_requests
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import Queues
from pipeline.kernels import kernel


class Stated(NamedTuple):
    """What queues state, each float64[Q, R]: deserved share, limit, weight of the surplus, past use."""

    deserved: Floats
    limit: Floats
    weight: Floats
    usage: Floats


class Shares(NamedTuple):
    """What queues may have, each float64[Q, R].

    Attributes
    ----------
    deserved, limit
        As stated.
    fair
        Their part of the cluster at the present requests.
    allocatable
        How much they may hold without losing any of it.
    """

    deserved: Floats
    limit: Floats
    fair: Floats
    allocatable: Floats


def stated(queues: Queues) -> Stated:
    """What queues state; without a statement they deserve nothing."""
    deserved = bounded(np.where(queues.deserved == UNSET, 0, queues.deserved))
    deserved[:, PODS] = np.inf
    return Stated(deserved, bounded(queues.capability), queues.over_quota_weight, queues.usage)


def bounded(amounts: Longs) -> Floats:
    """float64[...]: amounts, infinite where they are unlimited."""
    return np.where(amounts >= UNLIMITED, np.inf, amounts.astype(np.float64))


def shares_of(queues: Queues, said: Stated, whole: Longs, requested: Longs, k: float) -> Shares:
    """The shares of ``whole`` (int64[R]).

    Parameters
    ----------
    requested: int64[Q, R]
        What is held or waited for, descendants included.
    k
        How much past use weighs.
    """
    divided_down = _divided_down(queues.parent, queues.priority, queues.order, tuple(said), requested, whole, k)
    return Shares(said.deserved, said.limit, *divided_down)


@kernel
def _divided_down(
    parent: Ids, priority: Ids, seniority: Longs, plain: Plain, requested: Longs, whole: Longs, k: float
) -> tuple[Floats, Floats]:
    """``Shares.fair`` and ``allocatable``, float64[Q, R]; parents come before children, so their part is known.

    ``plain`` are ``Stated``.
    """
    said, fair, order, first = Stated(*plain), np.zeros(requested.shape), np.argsort(parent, kind="mergesort"), 0
    requestable = np.minimum(said.limit, requested)
    while first < len(order):
        above, stop = parent[order[first]], first
        while stop < len(order) and parent[order[stop]] == above:
            stop += 1
        rows = order[first:stop]
        for r in range(len(whole)):
            siblings = Siblings(
                priority[rows],
                seniority[rows],
                said.deserved[rows, r],
                requestable[rows, r],
                said.weight[rows, r],
                said.usage[rows, r],
            )
            fair[rows, r] = divided(float(whole[r]) if above == NONE else fair[above, r], k, siblings)
        first = stop
    fair[:, PODS] = np.inf
    return fair, np.minimum(said.limit, np.maximum(said.deserved, fair))


def requested(snapshot: Snapshot) -> Longs:
    """int64[Q, R]: what tasks hold, were promised or wait for, see ``lasting_requests``, descendants included."""
    total = lasting_requests(snapshot) - snapshot.totals.queue_sums.gated
    return with_descendants(snapshot.queues.parent, total)
