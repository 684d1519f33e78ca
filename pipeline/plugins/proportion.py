"""The proportion plugin: queues share the cluster by weight; what one queue does not want goes to the others.

Weighted water-filling as Volcano does it (notes on Volcano, 2.8): in every round each unmet queue gets its part of what
remains, cut to its ceiling and its requests, raised to its guarantee.
"""

import numpy as np

from pipeline.cluster.arrays import NONE, UNLIMITED, Bools, Floats, Ids, Longs, Rows
from pipeline.cluster.queue_tree import flat
from pipeline.cluster.resources import PODS
from pipeline.cluster.rules.quota import QueueLimits, committed, flat_ceilings, minimum_resources, run_end
from pipeline.cluster.tables import OPEN
from pipeline.keeping import cached_property
from pipeline.kernels import kernel
from pipeline.plugins.extension_points import (
    AdmitsJobs,
    AllowsReclaim,
    FiltersBundles,
    FiltersTasks,
    FindsOverused,
    LimitsQueues,
    OrdersQueues,
    SharesFairly,
    ValidatesVictims,
)
from pipeline.plugins.plugin import Context, Follows, Opinion, Plugin, Preemptor, Protects
from pipeline.policy import PluginSetting, Purpose

#: Shares are divided in float64; an amount that is off by less than this counts as whole.
_WHOLE = 1e-3


def water_fill(weight: Floats, request: Floats, ceiling: Floats, guarantee: Floats, whole: Floats) -> Floats:
    """Divide ``whole`` (float64[R]) among queues: float64[Q, R]; the other arguments are float64[Q(, R)]."""
    deserved = np.zeros_like(request)
    remaining, met = whole.copy(), weight <= 0
    while not met.all() and (remaining > _WHOLE).any():
        part = np.where(met, 0.0, weight)[:, None] / weight[~met].sum()
        before = deserved.copy()
        offered = np.minimum(np.minimum(deserved + remaining * part, ceiling), request)
        deserved = np.where(met[:, None], deserved, np.maximum(offered, guarantee))
        met |= (request <= deserved).all(axis=1) | (np.abs(deserved - before) < _WHOLE).all(axis=1)
        change = (deserved - before).sum(axis=0)
        if (np.abs(change) < _WHOLE).all():
            break
        remaining = np.maximum(remaining - change, 0.0)
    return deserved


class Proportion(
    Plugin, OrdersQueues, LimitsQueues, FindsOverused, AllowsReclaim, AdmitsJobs, SharesFairly, FiltersBundles,
    FiltersTasks, ValidatesVictims,
):  # fmt: skip
    """Deserved shares by weight: limits, order of queues, and which queue may take from which."""

    PROTECTS = Protects.SHARES
    ACCEPTS_PARTS = False  # its queue's share is kept by what goes
    QUEUE_ORDER_FOLLOWS = Follows.SHARE

    def __init__(self, context: Context, setting: PluginSetting) -> None:
        super().__init__(context, setting)
        self._queues = context.snapshot.queues
        self._ceiling = flat_ceilings(self._queues, context.snapshot.capacity)

    @property
    def _allocated(self) -> Longs:
        """int64[Q, R]: what queues hold."""
        return self._state.allocated_here

    @cached_property
    def _deserved(self) -> Longs:
        """int64[Q, R]: shares by weight of the queues that have podgroups, at the present requests."""
        groups, queues = self._base.podgroups, self._queues
        peopled = np.bincount(groups.queue[groups.alive], minlength=len(queues)) > 0
        shared = water_fill(
            np.where(peopled, queues.weight, 0.0),
            self._state.requested_here.astype(np.float64),
            self._ceiling.astype(np.float64),
            queues.guarantee.astype(np.float64),
            self._base.capacity.astype(np.float64),
        )
        return np.floor(shared + _WHOLE).astype(np.int64)

    def fair_share(self) -> Longs:
        """int64[Q, R]: what each queue deserves."""
        return self._deserved

    def queue_order(self, following: Ids) -> tuple[Floats | Longs, ...]:
        """Higher priority first, then the least satisfied queue, counting resources that it deserves."""
        entitled = self._deserved > 0
        fraction = np.divide(self._allocated, self._deserved, out=np.zeros(self._deserved.shape), where=entitled)
        return -self._queues.priority.astype(np.int64), fraction.max(axis=1, initial=0.0)

    def overused(self) -> Bools:
        """bool[Q]: queues that hold all that they deserve of every resource."""
        return np.asarray((self._deserved <= self._allocated).all(axis=1))

    def queue_limits(self) -> QueueLimits:
        """Up to the deserved share, pods unlimited; nothing for a queue that is not open."""
        ceiling = self._deserved.copy()
        ceiling[:, PODS] = UNLIMITED
        return QueueLimits(flat(len(ceiling)), ceiling, self._allocated, self._queues.state != OPEN)

    def preemptive(self, preemptor: Preemptor) -> bool:
        """Whether the queue stays within its share of every requested resource."""
        return self._takes(preemptor, self._allocated)

    def _takes(self, preemptor: Preemptor, held: Longs) -> bool:
        """Whether the preemptor's queue is open and stays within its share where queues hold ``held`` (int64[Q, R])."""
        queue = self._queue_of(preemptor)
        within = held[queue] + preemptor.request <= self._deserved[queue]
        return bool(self._queues.state[queue] == OPEN and within[preemptor.asked].all())

    def job_enqueued(self, podgroup: int, admitted: Bools) -> Opinion:
        """Admit while admitted podgroups stay under the queue's ceiling."""
        queue = int(self._snapshot.podgroups.queue[podgroup])
        if self._queues.state[queue] != OPEN:
            return Opinion.REJECT
        least = minimum_resources(self._snapshot, podgroup)
        total = committed(self._snapshot, admitted)[queue] + least
        asked = least > 0
        return Opinion.REJECT if (total > self._ceiling[queue])[asked].any() else Opinion.PERMIT

    def has_quota(self, preemptor: Preemptor) -> bool:
        """True in reclaim."""
        return preemptor.purpose is Purpose.RECLAIM

    def bundle_quota_filter(self, preemptor: Preemptor, rows: Rows, unit: Rows | None = None) -> Bools:
        """bool[C]: candidates in order while their queue holds more than it deserves of some resource."""
        held = self._base.request_of(rows)
        unit = np.full(len(rows), NONE, np.int64) if unit is None else unit
        return _above(self._base.queue_of(rows), held, unit, self._allocated, self._deserved)

    def task_quota_filter(self, preemptor: Preemptor, rows: Rows) -> Bools | None:
        """Task-centric path: in reclaim as ``bundle_quota_filter``; preempt moves nothing between queues."""
        return self.bundle_quota_filter(preemptor, rows) if self.has_quota(preemptor) else None

    def validate_set(self, preemptor: Preemptor, rows: Rows) -> bool:
        """Whether the preemptor's open queue stays within its share once the victims have gone."""
        if not preemptor.podgroups:
            return True  # clearing and consolidating give no queue more than it has
        left = self._allocated.copy()
        self._base.add_requests(rows, left, self._base.queue_of(rows), -1)
        return self._takes(preemptor, left)


@kernel
def _above(queue: Ids, held: Longs, unit: Rows, allocated: Longs, deserved: Longs) -> Bools:
    """bool[C]: candidates in order; each may go while its queue holds more than it deserves of some resource.

    Parameters
    ----------
    queue, held, unit: int32[C], int64[C, R], int64[C]
        Columns of the candidates; neighbours of one unit go together or not at all, NONE: alone.
    allocated, deserved: int64[Q, R]
        What queues hold and deserve.
    """
    result, left, first = np.zeros(len(queue), np.bool_), allocated.copy(), 0
    while first < len(queue):
        stop, gone = run_end(unit, first), first
        while gone < stop and (left[queue[gone]] > deserved[queue[gone]]).any():
            left[queue[gone]] -= held[gone]
            gone += 1
        result[first:stop] = gone == stop
        for at in range(first, gone if gone < stop else first):
            left[queue[at]] += held[at]
        first = stop
    return result
