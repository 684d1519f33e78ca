"""The elasticquota plugin: Koordinator's ElasticQuota, with rules on victims that its revoker lacks.

A queue takes up to its runtime quota, which other queues' requests shrink and raise. Preempt stays inside a queue: no
priority is compared across quotas (in Koordinator's job preemption it is). Reclaim takes what a queue holds over
its runtime quota, and only for a gang that places with it; Koordinator's revoker evicts pods by arithmetic alone.
"""

from typing import ClassVar

import numpy as np

from pipeline.cluster.arrays import NONE, UNLIMITED, UNSET, Bools, Ids, Longs, Rows, mask_of
from pipeline.cluster.queue_tree import chain, is_parent, with_descendants
from pipeline.cluster.resources import PODS
from pipeline.cluster.rules.quota import QueueLimits, never_evicted
from pipeline.cluster.rules.requests import lasting_requests, snapshot_of_requests
from pipeline.cluster.tables import OPEN
from pipeline.keeping import cached_property
from pipeline.plugins.arguments import SWITCH
from pipeline.plugins.elasticquota.overuse import Held, overused
from pipeline.plugins.elasticquota.runtime import runtime_quota, terms_of
from pipeline.plugins.extension_points import (
    AllowsReclaim,
    FiltersBundles,
    LimitsLastingWork,
    LimitsQueues,
    NamesLosers,
    OrdersQueues,
    SharesFairly,
    ShieldsTasks,
    ValidatesVictims,
)
from pipeline.plugins.plugin import Context, Plugin, Preemptor, Protects
from pipeline.policy import PluginSetting, Purpose


class ElasticQuota(
    Plugin,
    OrdersQueues,
    LimitsQueues,
    LimitsLastingWork,
    AllowsReclaim,
    SharesFairly,
    ShieldsTasks,
    FiltersBundles,
    NamesLosers,
    ValidatesVictims,
):
    """Runtime quota of queues: which may take, which may be taken from, and how much."""

    PROTECTS, ACCEPTS_PARTS = Protects.SHARES, False  # its maximum is kept by what goes
    ARGUMENTS: ClassVar = {"scale_minima": SWITCH}

    def __init__(self, context: Context, setting: PluginSetting) -> None:
        super().__init__(context, setting)
        self._queues = context.snapshot.queues
        self._whole = context.snapshot.capacity
        self._terms = terms_of(self._queues, self._whole, scales=setting.argument("scale_minima", False))
        self._closed = is_parent(self._queues.parent) | (self._queues.state != OPEN)  # work lives in leaves

    @cached_property
    def _runtime(self) -> Longs:
        """int64[Q, R]: the runtime quota of each queue at the present requests, which evictions do not change."""
        snapshot = snapshot_of_requests(self._state)
        return runtime_quota(self._terms, snapshot.once(lasting_requests), snapshot.allocated_here, self._whole)

    @cached_property
    def _floor(self) -> Longs:
        """int64[Q, R]: what reclaim leaves a queue; of minima that do not all fit, what is left of them."""
        return np.minimum(self._terms.base, self._runtime) if self._terms.scales else self._terms.base

    def fair_share(self) -> Longs:
        """int64[Q, R]: the runtime quota of each queue."""
        return self._runtime

    def queue_order(self, following: Ids) -> tuple[Longs, ...]:
        """By the highest priority of a waiting podgroup: Koordinator orders pods, whatever their quota."""
        groups, waits = self._snapshot.podgroups, self._snapshot.counts.pending > 0
        top = np.full(len(self._queues), np.iinfo(np.int64).min, np.int64)
        np.maximum.at(top, groups.queue[waits], groups.priority[waits].astype(np.int64))
        return (-np.maximum(top, -UNLIMITED),)

    # -- queues that may take ----------------------------------------------------------------------------------

    def queue_limits(self) -> QueueLimits:
        """Up to the runtime quota of the queue and its ancestors; nothing for one that is not open."""
        return QueueLimits(self._terms.parent, self._limit, self._state.allocated, self._closed)

    @property
    def _limit(self) -> Longs:
        """int64[Q, R]: the runtime quota where one is stated, at most the maximum."""
        return np.minimum(np.where(self._terms.limited, self._runtime, UNLIMITED), self._terms.most)

    def lasting_headroom(self) -> Longs:
        """int64[Q, R]: up to the minimum that the queue states, for work that can never be evicted."""
        stated = self._queues.deserved != UNSET
        left = self._queues.deserved - self._snapshot.once(never_evicted)
        return np.where(stated & (self._queues.deserved < UNLIMITED), left, UNLIMITED)

    def preemptive(self, preemptor: Preemptor) -> bool | None:
        """Whether its queue is open and stays within its runtime quota, where one is stated."""
        queue = self._queue_of(preemptor)
        if self._closed[queue]:
            return False
        limited = self._terms.limited[queue] & (preemptor.request > 0)
        after = self._state.allocated[queue] + preemptor.request
        return bool(limited.any() and (after <= self._runtime[queue])[limited].all())

    # -- queues that may lose ----------------------------------------------------------------------------------

    def evictable(self, preemptor: Preemptor) -> bool | None:
        """Permits every task in preempt, which moves nothing between queues; in reclaim they are counted."""
        return True if preemptor.purpose is Purpose.PREEMPT else None

    def has_quota(self, preemptor: Preemptor) -> bool:
        """True in reclaim."""
        return preemptor.purpose is Purpose.RECLAIM

    def bundle_quota_filter(self, preemptor: Preemptor, rows: Rows, unit: Rows | None = None) -> Bools:
        """bool[C]: candidates in order while their queues hold more than their runtime quota."""
        snapshot, terms = self._base, self._terms
        own = mask_of(chain(terms.parent, self._queue_of(preemptor)), len(self._queues))
        runtime, used = self._runtime, self._state.allocated
        queues = Held(terms.parent, used, runtime, self._floor, terms.limited, own, _asked(preemptor))
        unit = np.full(len(rows), NONE, np.int64) if unit is None else unit
        return overused(snapshot.queue_of(rows), snapshot.request_of(rows), unit, queues)

    def may_lose(self, preemptor: Preemptor) -> Bools:
        """bool[Q]: in reclaim, queues that hold more than their runtime quota of anything that is asked for."""
        over = self._over(preemptor).any(axis=1)
        return np.asarray(over | (preemptor.purpose is not Purpose.RECLAIM))

    def _over(self, preemptor: Preemptor) -> Bools:
        """bool[Q, R]: of what is asked for, where queues hold more than their runtime quota."""
        return (self._state.allocated > self._runtime) & self._terms.limited & _asked(preemptor)

    def validate_set(self, preemptor: Preemptor, rows: Rows) -> bool:
        """Whether the preemptor's queue and ancestors stay within their quotas, and others a base that is asked for.

        Others are over their runtime quota of something that is asked for, and they and their ancestors keep their
        base of it, or of something else that is asked for; of the rest they may hold less.
        Evictions do not change its runtime quota, since a victim waits again and asks for as much as before.
        """
        if not preemptor.podgroups:
            return True  # clearing gives no queue more than it has
        snapshot, terms, queue = self._base, self._terms, self._queue_of(preemptor)
        if self._closed[queue]:
            return False
        lost, taken = np.zeros_like(terms.base), np.zeros_like(terms.base)
        snapshot.add_requests(rows, lost, snapshot.queue_of(rows))
        taken[queue] = preemptor.request
        lost, taken = with_descendants(terms.parent, lost), with_descendants(terms.parent, taken)
        after, line = self._state.allocated + taken - lost, chain(terms.parent, queue)
        if (after > self._limit)[line][:, preemptor.request > 0].any():
            return False
        if preemptor.purpose is not Purpose.RECLAIM:
            return True
        loses = (lost > 0) & (taken < lost) & terms.limited
        keeps = ((after >= self._floor) | (taken >= lost)) & (self._over(preemptor) | is_parent(terms.parent)[:, None])
        spared = (lost > 0) & terms.limited & _asked(preemptor) & keeps
        return not (loses.any(axis=1) & ~spared.any(axis=1)).any()


def _asked(preemptor: Preemptor) -> Bools:
    """bool[R]: what the preemptor asks for but for pods, which are no quota; all if it asks for nothing."""
    asked = preemptor.request > 0
    asked = asked if asked.any() else ~asked
    asked[PODS] = False
    return asked
