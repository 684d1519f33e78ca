"""The fairshare plugin: KAI Scheduler's `proportion` (notes on KAI, 2), weak spots included (`fairness.gate`).

Cordoned nodes are not shared, as there. Differences: shares follow the state and are not kept for a session, which has
the same effect (`shares.requested`). Victims of a set are looked at in a fixed order, lowest priority and youngest
podgroup first; upstream's order is that of a map and may change from run to run.
"""

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import numpy as np

from pipeline.cluster.arrays import NONE, UNLIMITED, Bools, Counts, Floats, Ids, Longs, Rows, in_a_row
from pipeline.cluster.counted.change_log import Plain
from pipeline.cluster.fairness.gate import QueueShares, Victims, may_reclaim, may_take
from pipeline.cluster.orders import total_rank
from pipeline.cluster.queue_tree import is_parent, least_above, with_descendants
from pipeline.cluster.resources import PODS
from pipeline.cluster.rules.quota import QueueLimits, never_evicted
from pipeline.cluster.rules.requests import asking
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import OPEN, Queues
from pipeline.keeping import cached_property
from pipeline.kernels import kernel, linked
from pipeline.plugins.arguments import NUMBER
from pipeline.plugins.extension_points import (
    AllowsReclaim,
    CountsLimits,
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
from pipeline.plugins.fairshare.turn import turn_of
from pipeline.plugins.fairshare.victim_order import across_queues
from pipeline.plugins.plugin import Context, Follows, Plugin, Preemptor, Protects
from pipeline.policy import PluginSetting, Purpose


class FairShare(
    Plugin,
    OrdersQueues,
    InterleavesVictims,
    LimitsQueues,
    CountsLimits,
    LimitsLastingWork,
    AllowsReclaim,
    SharesFairly,
    ShieldsTasks,
    ValidatesVictims,
    ValidatesSets,
):
    """Fair shares of queues: the order of queues, how much each may hold, and which may take from which."""

    PROTECTS = Protects.BRANCHES
    QUEUE_ORDER_FOLLOWS, LOOKS_AHEAD = Follows.SHARE, True
    ARGUMENTS: ClassVar = {"k": NUMBER, "saturation_multiplier": NUMBER}

    def __init__(self, context: Context, setting: PluginSetting) -> None:
        super().__init__(context, setting)
        self._queues, self._whole = context.snapshot.queues, context.snapshot.nodes.open_capacity
        self._stated = self._queues.once(stated)
        self._k, self._multiplier = setting.argument("k", 1.0), setting.argument("saturation_multiplier", 1.0)
        self._closed = self._queues.once(_closed)

    @cached_property
    def _asking(self) -> Snapshot:
        """The state for what queues ask for, and what they hold that can never be evicted."""
        return asking(self._state)

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
        waits = following != NONE
        asked = np.zeros(self._shares.fair.shape)
        for queue in waits.nonzero()[0].tolist():
            asked[queue] = self._asked(int(following[queue]))
        return (rank_of(self._queues.parent, keys_of(self._compared, asked, waits), waits),)

    @property
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

    def _asked(self, podgroup: int) -> Floats:
        """float64[R]: what a podgroup asks for in its turn: all that its minimum lacks, else one task."""
        if podgroup not in self._asked_before:
            self._asked_before[podgroup] = turn_of(self._snapshot, podgroup).astype(np.float64)
        return self._asked_before[podgroup]

    @cached_property
    def _asked_before(self) -> dict[int, Floats]:
        return {}

    # -- how much a queue may hold -----------------------------------------------------------------------------

    def headroom(self) -> Longs:
        """int64[Q, R]: up to the limits of the queue and its ancestors; nothing for a queue that is not open."""
        own = least_above(self._queues.parent, _left(self._queues.capability, self._state.allocated))
        own[self._closed] = 0
        return own

    def queue_limits(self) -> QueueLimits:
        """The same in columns."""
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
        if preemptor.purpose is not Purpose.RECLAIM or not preemptor.podgroups:
            return np.ones(len(sets), bool)
        request, (queue, preemptible) = preemptor.request.astype(np.float64), self._asker(preemptor)
        may = _may_take(
            self._queue_shares, queue, preemptible, request, *in_a_row(sets), self._columns, self._multiplier
        )  # fmt: skip
        if self._queues.once(by_priority):
            lawful = [at for at in may.nonzero()[0].tolist() if len(sets[at])]
            may[lawful] = [not self._outranked(queue, request, sets[at]) for at in lawful]
        return may

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

    @cached_property
    def _columns(self) -> Plain:
        return self._base.once(_columns)

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
            known[preemptor.podgroups] = int(groups.queue[rows[0]]), bool(groups.preemptible[rows].all())
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


class _Columns(NamedTuple):
    """In which order victims of podgroups (int64[G]) and tasks (int64[T]) are looked at, and columns of both.

    Podgroups come by queue, the least important and youngest first. ``least`` and ``part_least`` are what podgroups and
    subgroups need; the subgroups of a podgroup begin at its ``part_start``.
    """

    turn: Longs
    order: Longs
    podgroup: Ids
    subgroup: Ids
    queue_of: Ids
    shape: Ids
    request: Longs
    least: Counts
    part_start: Longs
    part_least: Counts


def _columns(snapshot: Snapshot) -> Plain:
    groups, tasks = snapshot.podgroups, snapshot.tasks
    return tuple(
        _Columns(
            total_rank(groups.queue, groups.priority, -groups.order), tasks.order, tasks.podgroup, tasks.subgroup,
            groups.queue, tasks.shape, snapshot.shapes.request,
            groups.min_available, snapshot.subgroup_start, snapshot.subgroups.min_available,
        )
    )  # fmt: skip


@kernel
def _may_take(
    queues: QueueShares, queue: int, preemptible: bool, request: Floats, rows: Rows, start: Longs, plain: Plain,
    multiplier: float,
) -> Bools:  # fmt: skip
    """bool[S]: whether a queue may take the victims ``rows[start[s]:start[s + 1]]``; see ``fairness.gate.may_take``.

    ``plain`` are ``_Columns``.
    """
    columns, result, key = _Columns(*plain), np.empty(len(start) - 1, np.bool_), np.empty(len(rows), np.int64)
    for at in range(len(rows)):
        key[at] = columns.turn[columns.podgroup[rows[at]]] * len(columns.order) + columns.order[rows[at]]
    for one in range(len(result)):
        mine = slice(start[one], start[one + 1])
        units = _units(rows[mine][np.argsort(key[mine])], columns)
        result[one] = may_take(queues, queue, request, preemptible, Victims(*units), multiplier)
    return result


@linked
def _units(rows: Rows, columns: _Columns) -> tuple[Rows, Longs, Floats]:
    """The queues, where the units of each begin, and what each unit holds; pods are not counted.

    ``rows`` are the victims by queue and podgroup: what the minima of each do not need goes first, task by task.
    """
    request, core = columns.request, np.zeros(len(rows), np.bool_)
    queues, start = np.empty(len(rows), np.int64), np.empty(len(rows) + 1, np.int64)
    held, units, found, first = np.zeros((len(rows), request.shape[1])), 0, 0, 0
    while first < len(rows):
        group, stop = columns.podgroup[rows[first]], first
        while stop < len(rows) and columns.podgroup[rows[stop]] == group:
            stop += 1
        if found == 0 or queues[found - 1] != columns.queue_of[group]:
            queues[found], start[found] = columns.queue_of[group], units
            found += 1
        needed = _needed(group, rows[first:stop], columns, core[first:stop])
        for at in range(first, stop):
            if not core[at]:
                held[units] += request[columns.shape[rows[at]]]
                units += 1
        for at in range(first, stop):
            if core[at]:
                held[units] += request[columns.shape[rows[at]]]
        units += needed > 0
        first = stop
    start[found] = units
    held[:, PODS] = 0.0
    return queues[:found], start[: found + 1], held[:units]


@linked
def _needed(group: int, rows: Rows, columns: _Columns, core: Bools) -> int:
    """How many victims make up the minima of a podgroup: the first of each subgroup, then of all. Fills ``core``."""
    begin, end, count = columns.part_start[group], columns.part_start[group + 1], 0
    if begin < end:
        lacks = columns.part_least[begin:end].copy()
        for at in range(len(rows)):
            part = columns.subgroup[rows[at]] - begin
            if part >= 0 and lacks[part] > 0:
                lacks[part] -= 1
                core[at] = True
                count += 1
    for at in range(len(rows)):
        if count >= columns.least[group]:
            break
        if not core[at]:
            core[at] = True
            count += 1
    return count


def _left(bound: Longs, held: Longs) -> Longs:
    return np.where(bound >= UNLIMITED, UNLIMITED, bound - held)
