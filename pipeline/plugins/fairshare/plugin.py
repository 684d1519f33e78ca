"""The fairshare plugin: KAI Scheduler's `proportion` (notes on KAI, 2), weak spots included (`fairness.gate`).

Cordoned nodes are not shared, as there. Differences: shares follow the state and are not kept for a session, which has
the same effect (`shares.requested`). Victims of a set are looked at in a fixed order, lowest priority and youngest
podgroup first; upstream's order is that of a map and may change from run to run.
"""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from pipeline.cluster.arrays import NONE, UNLIMITED, Bools, Floats, Ids, Longs, Rows, all_true, in_a_row
from pipeline.cluster.counted.change_log import Plain
from pipeline.cluster.fairness.gate import QueueShares, may_reclaim
from pipeline.cluster.orders import none_last
from pipeline.cluster.queue_tree import is_parent, least_above, with_descendants
from pipeline.cluster.resources import PODS
from pipeline.cluster.rules.quota import QueueLimits, never_evicted
from pipeline.cluster.rules.reaching import minimum_of
from pipeline.cluster.rules.requests import snapshot_of_requests
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import OPEN, Queues
from pipeline.keeping import cached_property
from pipeline.plugins.arguments import NUMBER
from pipeline.plugins.extension_points import (
    AllowsReclaim,
    InterleavesVictims,
    LimitsLastingWork,
    LimitsQueues,
    OrdersQueues,
    SharesFairly,
    ShieldsTasks,
    ValidatesSets,
    ValidatesVictims,
)
from pipeline.plugins.fairshare.order import Compared, keys_of, rank_of
from pipeline.plugins.fairshare.outranked import by_priority, let_in_again, outranked
from pipeline.plugins.fairshare.shares import Shares, requested, shares_of, stated
from pipeline.plugins.fairshare.taking import columns_of, may_take_each
from pipeline.plugins.fairshare.victim_order import across_queues
from pipeline.plugins.plugin import Context, Follows, Plugin, Preemptor, Protects
from pipeline.policy import PluginSetting, Purpose


class FairShare(
    Plugin, OrdersQueues, InterleavesVictims, LimitsQueues, LimitsLastingWork, AllowsReclaim, SharesFairly,
    ShieldsTasks, ValidatesVictims, ValidatesSets,
):  # fmt: skip
    """Fair shares of queues: the order of queues, how much each may hold, and which may take from which."""

    PROTECTS = Protects.BRANCHES
    QUEUE_ORDER_FOLLOWS = Follows.SHARE
    LOOKS_AHEAD = CEILINGS_STAY = True
    ARGUMENTS: ClassVar = {"k": NUMBER, "saturation_multiplier": NUMBER}

    def __init__(self, context: Context, setting: PluginSetting) -> None:
        super().__init__(context, setting)
        self._queues, self._whole = context.snapshot.queues, context.snapshot.nodes.open_capacity
        self._stated = self._queues.once(stated)
        # As floats: for whole numbers the kernels would have to be compiled anew.
        self._k, self._multiplier = (float(setting.argument(one, 1.0)) for one in ("k", "saturation_multiplier"))
        self._closed, self._by_priority = self._queues.once(_closed), self._queues.once(by_priority)

    @cached_property
    def _asking(self) -> Snapshot:
        """The state for what queues ask for, and what they hold that can never be evicted."""
        return snapshot_of_requests(self._state)

    @cached_property
    def _shares(self) -> Shares:
        known = self._asking.answers(shares_of)
        if self._k not in known:
            requests = self._asking.once(requested)
            known[self._k] = shares_of(self._queues, self._stated, self._whole, requests, self._k)
        return known[self._k]

    def fair_share(self) -> Longs:
        """int64[Q, R]: what each queue gets of the cluster as requests are now."""
        fair = self._shares.fair
        return np.where(np.isinf(fair), UNLIMITED, np.where(np.isinf(fair), 0, fair).astype(np.int64))

    # -- order of queues ----------------------------------------------------------------------------------------

    def queue_order(self, following: Ids) -> tuple[Longs, ...]:
        """By fair share, deserved share, priority and dominant share; see `order`."""
        waits, asked = following != NONE, self._asked_next(following)
        return (rank_of(self._queues.parent, keys_of(self._compared, asked, waits), waits),)

    def _asked_next(self, following: Ids) -> Floats:
        """float64[Q, R]: what the next podgroup of each queue asks for; few queues have another one than before."""
        before, known = self._last_asked.get(0, (np.full(len(following), NONE, np.int32), None))
        asked = np.zeros(self._shares.fair.shape) if known is None else known.copy()
        for queue in (following != before).nonzero()[0].tolist():
            asked[queue] = self._asked(int(following[queue])) if following[queue] != NONE else 0.0
        self._last_asked[0] = following.copy(), asked.copy()
        return asked

    @cached_property
    def _last_asked(self) -> dict[int, tuple[Ids, Floats]]:
        """What was asked about last, under 0, and what it asks for."""
        return {}

    @cached_property
    def _compared(self) -> Compared:
        shares, counts = self._shares, np.ones(len(self._whole), bool)
        counts[PODS] = False
        return Compared(
            self._queues.parent, self._queues.priority, self._queues.order, shares.fair, shares.deserved,
            shares.allocatable, self._state.allocated.astype(np.float64), self._whole.astype(np.float64), counts,
        )  # fmt: skip

    def across_queues(self, queue: Longs, held: Floats, rest: Floats) -> Rows:
        """From the queue that would still hold the largest part of its share; see `victim_order`."""
        return across_queues(self._compared, queue, held, rest)

    def _asked(self, podgroup: int) -> Longs:
        """int64[R]: what a podgroup asks for in its turn: all that its minimum lacks, else one task."""
        known = self._snapshot.answers_about((podgroup,), _asked_in_turn)
        if podgroup not in known:
            known[podgroup] = _asked_in_turn(self._snapshot, podgroup)
        return known[podgroup]

    # -- how much a queue may hold -----------------------------------------------------------------------------

    def queue_limits(self) -> QueueLimits:
        """Up to the limits of the queue and its ancestors; nothing for a queue that is not open."""
        return QueueLimits(self._queues.parent, self._queues.capability, self._state.allocated, self._closed)

    def lasting_headroom(self) -> Longs:
        """int64[Q, R]: up to what the queue and its ancestors deserve, for work that can never be evicted."""
        deserved = np.where(np.isinf(self._stated.deserved), UNLIMITED, np.maximum(self._queues.deserved, 0))
        return least_above(self._queues.parent, _left(deserved, self._asking.once(never_evicted)))

    # -- taking between queues ---------------------------------------------------------------------------------

    def preemptive(self, preemptor: Preemptor) -> bool | None:
        """Whether the queue stays within its fair share; see `fairness.gate.may_reclaim`."""
        queue, preemptible = self._asker(preemptor)
        return bool(may_reclaim(self._queue_shares, queue, preemptor.request.astype(np.float64), preemptible))

    def evictable(self, preemptor: Preemptor) -> bool | None:
        """Every task: what may go together is judged of the set."""
        return True

    def validate_set(self, preemptor: Preemptor, rows: Rows) -> bool:
        """In reclaim, whether the queue may take these victims; see `fairness.gate.may_take` and `outranked`."""
        return bool(self.validate_each(preemptor, [rows])[0])

    def validate_each(self, preemptor: Preemptor, sets: Sequence[Rows]) -> Bools:
        """bool[S]: the same of several sets."""
        if preemptor.purpose is not Purpose.RECLAIM:
            return np.ones(len(sets), bool)
        request, (queue, preemptible) = preemptor.request.astype(np.float64), self._asker(preemptor)
        shares, columns = self._in_columns
        may = may_take_each(shares, queue, preemptible, request, *in_a_row(sets), columns, self._multiplier)
        if self._by_priority:
            lawful = may.nonzero()[0].tolist()
            may[lawful] = [not self._outranked(queue, request, sets[at]) for at in lawful]
        return may

    @cached_property
    def _in_columns(self) -> tuple[Plain, Plain]:
        """What ``may_take_each`` is given of queues, and of podgroups and tasks."""
        return tuple(self._queue_shares), self._base.once(columns_of)

    def _outranked(self, queue: int, request: Floats, rows: Rows) -> bool:
        lost = returns = self._held_by(rows)
        if (self._below_limit < 0).any():
            base = self._base
            owner, asked = base.podgroups.queue[base.tasks.podgroup[rows]], base.request_of(rows)
            back = let_in_again(self._queues.parent, self._below_limit, lost, owner, asked)
            returns = self._held_by(rows[back])
        return outranked(self._compared, queue, request, lost, returns)

    @cached_property
    def _below_limit(self) -> Longs:
        """int64[Q, R]: what each queue may take until its own limit; negative where it holds more."""
        return _left(self._queues.capability, self._state.allocated)

    def _held_by(self, rows: Rows) -> Floats:
        """float64[Q, R]: what some tasks of each queue hold, descendants included."""
        tasks, held = self._base.tasks, np.zeros(self._base.queues.guarantee.shape, np.int64)
        np.add.at(held, self._base.podgroups.queue[tasks.podgroup[rows]], self._base.request_of(rows))
        return with_descendants(self._queues.parent, held).astype(np.float64)

    def _asker(self, preemptor: Preemptor) -> tuple[int, bool]:
        """Its queue, and whether all of it is preemptible."""
        known = self._askers
        if preemptor.podgroups not in known:
            groups, rows = self._base.podgroups, list(preemptor.podgroups)
            known[preemptor.podgroups] = int(groups.queue[rows[0]]), all_true(groups.preemptible[rows])
        return known[preemptor.podgroups]

    @cached_property
    def _askers(self) -> dict[tuple[int, ...], tuple[int, bool]]:
        return {}

    @cached_property
    def _queue_shares(self) -> QueueShares:
        shares, lasting = self._shares, self._asking.once(never_evicted).astype(np.float64)
        allocated = self._state.allocated.astype(np.float64)
        allocated[:, PODS] = 0.0
        return QueueShares(self._queues.parent, shares.deserved, shares.fair, shares.allocatable, allocated, lasting)


def _closed(queues: Queues) -> Bools:
    """bool[Q]: queues that take nothing more: work lives in leaves, and comes to open queues."""
    return np.asarray(is_parent(queues.parent) | (queues.state != OPEN))


def _asked_in_turn(snapshot: Snapshot, podgroup: int) -> Longs:
    """int64[R]: requests of the tasks that its minima lack; if they lack none, of one task.

    A podgroup with subgroups asks for what every one of them lacks (notes on KAI, 1.1), as far as it needs them.
    """
    rows, tasks = snapshot.pending(podgroup), snapshot.tasks
    index = none_last(tasks.index[rows])
    rows = rows[np.lexsort((tasks.order[rows], index, -tasks.priority[rows].astype(np.int64)))]
    asked = _lacking(snapshot, podgroup, rows)
    chosen = asked if len(asked) else rows[:1]
    return np.asarray(snapshot.request_of(chosen).sum(axis=0))


def _lacking(snapshot: Snapshot, podgroup: int, rows: Rows) -> Rows:
    if snapshot.subgroup_start[podgroup] < snapshot.subgroup_start[podgroup + 1]:
        return rows[minimum_of(snapshot, podgroup, rows)[0]]
    have = snapshot.counts
    missing = int(snapshot.podgroups.min_available[podgroup] - have.ready[podgroup] - have.waiting[podgroup])
    return rows[: max(0, missing)]


def _left(bound: Longs, held: Longs) -> Longs:
    return np.where(bound >= UNLIMITED, UNLIMITED, bound - held)
