"""The capacity plugin: Volcano's semantics (notes on Volcano, 2.7) with two differences.

Victims are also charged to the ancestors of their queues (upstream's gang vote omits them). With the argument
``strict`` (our default profile) a queue never falls below what it deserves, resource by resource and whatever the order
of the victims; upstream lets the last victim go below.
"""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Floats, Ids, Longs, Rows, in_a_row
from pipeline.cluster.orders import dense_rank, total_rank
from pipeline.cluster.queue_tree import chain, in_common, with_descendants
from pipeline.cluster.rules.quota import LosingOrder, QueueLimits, committed, minimum_resources
from pipeline.cluster.rules.sparing import Asking, Entitled, Quota, TaskQuota, quota_of, spared, task_quota
from pipeline.cluster.tables import OPEN
from pipeline.plugins.arguments import COUNT, SWITCH
from pipeline.plugins.capacity.reclaim import (
    ancestors,
    answering,
    answering_strictly,
    once_requested,
    related,
    sets_within_bounds,
)
from pipeline.plugins.capacity.shares import capacity_shares
from pipeline.plugins.extension_points import (
    AdmitsJobs,
    AllowsReclaim,
    CountsQuotas,
    CountsTasks,
    FiltersBundles,
    FiltersTasks,
    LimitsQueues,
    OrdersQueues,
    OrdersVictimQueues,
    SharesFairly,
    ShieldsTasks,
    TellsLosingOrder,
    ValidatesSets,
    ValidatesVictims,
)
from pipeline.plugins.plugin import Context, Follows, Opinion, Plugin, Preemptor, Protects
from pipeline.policy import HIERARCHY, PluginSetting, Purpose


class Capacity(
    Plugin, OrdersQueues, OrdersVictimQueues, TellsLosingOrder, LimitsQueues, AllowsReclaim, AdmitsJobs,
    SharesFairly, ShieldsTasks, FiltersBundles, CountsQuotas, FiltersTasks, CountsTasks, ValidatesVictims,
    ValidatesSets,
):  # fmt: skip
    """Quota of queues: which may take, which may be taken from, and how much."""

    PROTECTS = Protects.SHARES
    ACCEPTS_PARTS = False  # its ceilings are kept by what goes
    QUEUE_ORDER_FOLLOWS = Follows.SHARE
    CEILINGS_STAY = GRANTS_TOGETHER = True
    ARGUMENTS: ClassVar = {"strict": SWITCH, "ancestor_reclaim_level": COUNT}
    SWITCHES = (HIERARCHY,)

    def __init__(self, context: Context, setting: PluginSetting) -> None:
        super().__init__(context, setting)
        queues = self._queues = context.snapshot.queues
        # The flag is a switch of Volcano's configuration. It is off only where the tree of queues is to be ignored.
        switches = dict(setting.enabled)
        self._tree = switches.get(HIERARCHY, switches.get("*", False))
        self._strict = setting.argument("strict", False)
        self._level = setting.argument("ancestor_reclaim_level", 0)
        shares = self._shares = capacity_shares(queues, context.snapshot.capacity, tree=self._tree, strict=self._strict)
        self._entitled = Entitled(shares.deserved, shares.counts, queues.guarantee, shares.parent)
        self._closed = shares.inner | (queues.state != OPEN)  # work lives in leaves
        self._answers: dict[object, Ids] = queues.answers(answering)

    @property
    def _allocated(self) -> Longs:
        """int64[Q, R]: what queues hold, in a tree with their descendants."""
        return self._state.allocated if self._tree else self._state.allocated_here

    # -- order of queues ----------------------------------------------------------------------------------------

    def fair_share(self) -> Longs:
        """int64[Q, R]: what each queue deserves."""
        return self._shares.deserved

    def _fraction(self) -> Floats:
        """float64[Q]: the largest used fraction of what a queue deserves; 1 where it deserves nothing but pods."""
        deserved = self._shares.deserved
        fraction = np.divide(self._allocated, deserved, out=np.zeros(deserved.shape), where=deserved > 0)
        return np.where(self._shares.bare, 1.0, fraction.max(axis=1, initial=0.0))

    def queue_order(self, following: Ids) -> tuple[Floats | Longs, ...]:
        """Higher priority first, then the least satisfied queue; in a tree, compared where ancestors differ."""
        used, bare, parent = self._fraction(), self._shares.bare, self._shares.parent
        priority: Longs = -self._queues.priority.astype(np.int64)
        if not self._shares.inner.any():
            return priority, used, bare.astype(np.int64)
        paths = [
            [(used[q], bare[q], self._queues.order[q]) for q in reversed(chain(parent, queue))]
            for queue in range(len(parent))
        ]
        rank = np.empty(len(paths), np.int64)
        rank[sorted(range(len(paths)), key=lambda queue: paths[queue])] = np.arange(len(paths))
        return priority, self._shares.inner.astype(np.int64), rank

    def victim_queue_order(self, queue: int) -> Longs:
        """Key[Q]: in a tree, the nearest relatives of the preemptor's queue first; all alike if queues are flat."""
        if not self._tree or queue == NONE:
            return np.zeros(len(self._queues), np.int64)
        return np.asarray(-in_common(self._shares.parent, queue))

    def losing_order(self, queue: int) -> LosingOrder | None:
        """The same in columns; none in a tree, where ancestors are compared."""
        shares, queues = self._shares, self._queues
        if shares.inner.any():
            return None
        first = dense_rank(self.victim_queue_order(queue), queues.priority.astype(np.int64))
        last = -total_rank(shares.bare.astype(np.int64), queues.created, queues.order)
        return LosingOrder(first, shares.deserved, shares.bare, last)

    # -- queues that may take ----------------------------------------------------------------------------------

    def queue_limits(self) -> QueueLimits:
        """Up to the ceilings of the queue and its ancestors; nothing for a queue that is not open."""
        return QueueLimits(self._shares.parent, self._shares.ceiling, self._allocated, self._closed)

    def preemptive(self, preemptor: Preemptor) -> bool | None:
        """Whether the queue stays within what it deserves of some requested resource (strict: of all that are stated).

        With ``ancestor_reclaim_level`` n, it is enough if one of its n nearest ancestors below the root does. Where no
        queue states a share there is no opinion, and other plugins (proportion) decide.
        """
        queue, shares = self._queue_of(preemptor), self._shares
        if self._closed[queue]:
            return False
        if not shares.stated.any() and not self._queues.guarantee.any():
            return None
        asked = preemptor.asked
        if self._strict:
            within = self._within(queue, preemptor.request, asked & shares.stated[queue])
            return bool(within.all() and (asked & shares.stated[queue]).any())
        if ((self._allocated[queue] + preemptor.request) > shares.ceiling[queue])[asked].any():
            return False
        line = [queue, *ancestors(shares.parent, queue, self._level)]
        return any(self._within(q, preemptor.request, asked & (shares.deserved[q] > 0)).any() for q in line)

    def _within(self, queue: int, request: Longs, dims: Bools) -> Bools:
        after = self._allocated[queue] + request
        return np.asarray((after <= self._shares.deserved[queue])[dims])

    def job_enqueued(self, podgroup: int, admitted: Bools) -> Opinion:
        """Admit while the minimum resources of admitted podgroups, less what is elastic, stay under the ceilings."""
        queue, parent = int(self._snapshot.podgroups.queue[podgroup]), self._shares.parent
        if self._queues.state[queue] != OPEN:
            return Opinion.REJECT
        least = minimum_resources(self._snapshot, podgroup)
        asked = least > 0
        if self._shares.inner[queue] and asked.any():
            return Opinion.REJECT
        after = with_descendants(parent, committed(self._snapshot, admitted)) + least
        line = chain(parent, queue)
        return Opinion.REJECT if (after > self._shares.ceiling)[line][:, asked].any() else Opinion.PERMIT

    # -- queues that may lose ----------------------------------------------------------------------------------

    def evictable(self, preemptor: Preemptor) -> bool | None:
        """Permits every task in preempt, which moves nothing between queues; in reclaim a quota is counted."""
        if preemptor.purpose is not Purpose.PREEMPT or preemptor.task != NONE:
            return None
        return True

    def has_quota(self, preemptor: Preemptor) -> bool:
        """True in reclaim."""
        return preemptor.purpose is Purpose.RECLAIM

    def bundle_quota_filter(self, preemptor: Preemptor, rows: Rows, unit: Rows | None = None) -> Bools:
        """bool[C]: candidates in order while their queues are above what they deserve."""
        snapshot, asking = self._base, self._asking(preemptor)
        held = snapshot.request_of(rows)
        unit = np.full(len(rows), NONE, np.int64) if unit is None else unit
        return spared(snapshot.queue_of(rows), held, unit, *self._protected(preemptor), asking, self._strict)

    def bundle_quota(self, preemptor: Preemptor) -> Quota | None:
        """Strict: the same as columns."""
        return self._counted(preemptor) if self._strict and self.has_quota(preemptor) else None

    def _counted(self, preemptor: Preemptor) -> Quota:
        groups, held = self._base.podgroups, self._base.podgroup_held
        return quota_of(groups.queue, held, *self._protected(preemptor), self._asking(preemptor))

    def _protected(self, preemptor: Preemptor) -> tuple[Longs, Entitled]:
        """What queues hold and what protects it; strict: those above the preemptor's with what a gang asks for."""
        if not self._strict or preemptor.task != NONE:
            return self._allocated, self._entitled
        queue, request = self._queue_of(preemptor), preemptor.request
        return once_requested(self._shares.parent, queue, request, self._allocated, self._entitled)

    def _asking(self, preemptor: Preemptor) -> Asking:
        mine, gang = self._queue_of(preemptor), preemptor.task == NONE
        asked = mine, gang, self._level, self._tree, self._strict
        if asked not in self._answers:
            self._answers[asked] = self._answering(mine, gang=gang)
        return Asking(preemptor.asked, self._answers[asked], self._related(mine, preemptor))

    def _answering(self, mine: int, *, gang: bool) -> Ids:
        parent = self._shares.parent
        if not self._strict:
            return answering(parent, mine, self._level)
        return answering_strictly(parent, mine, (self._shares.stated | (self._queues.guarantee > 0)) & gang)

    def _related(self, mine: int, preemptor: Preemptor) -> Bools:
        """bool[Q]: see ``Asking.related``."""
        deserving = ((preemptor.request > 0) & (self._shares.deserved[mine] > 0)).any()
        if self._strict or self._level == 0 or deserving:
            return np.zeros(len(self._queues), bool)
        return related(self._shares.parent, mine, self._level)

    def task_quota_filter(self, preemptor: Preemptor, rows: Rows) -> Bools | None:
        """Task-centric path: in reclaim as ``bundle_quota_filter``; preempt moves nothing between queues."""
        return self.bundle_quota_filter(preemptor, rows) if self.has_quota(preemptor) else None

    def task_quota(self, preemptor: Preemptor) -> TaskQuota:
        """The same in columns."""
        queues = self._counted(preemptor) if self.has_quota(preemptor) else None
        return task_quota(queues=queues, strict=self._strict)

    def validate_set(self, preemptor: Preemptor, rows: Rows) -> bool:
        """Whether the preemptor's open queue and its ancestors stay under their ceilings.

        Strict: and no queue falls below what it deserves.
        """
        return bool(self.validate_each(preemptor, [rows])[0])

    def validate_each(self, preemptor: Preemptor, sets: Sequence[Rows]) -> Bools:
        """bool[S]: the same of several sets."""
        if not preemptor.podgroups:
            return np.ones(len(sets), bool)  # clearing and consolidating give no queue more than it has
        snapshot, shares, queue = self._base, self._shares, self._queue_of(preemptor)
        if self._closed[queue]:
            return np.zeros(len(sets), bool)
        columns = snapshot.tasks.podgroup, snapshot.tasks.shape, snapshot.podgroups.queue, snapshot.shapes.request
        bounds = shares.parent, shares.ceiling, shares.deserved, shares.stated, self._queues.guarantee
        keeps_shares = self._strict and preemptor.purpose is Purpose.RECLAIM
        return sets_within_bounds(
            queue, preemptor.request, *in_a_row(sets), keeps_shares, columns, self._allocated, bounds
        )  # fmt: skip
