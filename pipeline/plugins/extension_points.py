"""What a plugin may answer. A plugin is a class made once a snapshot; it has the methods on which it has an opinion.

Orders are key columns, smaller first, compared plugin after plugin; so an order is total and costs one sort, where a
comparator would be called for every pair. Votes are masks. Nothing here is called once a task. Orders that move as
tasks are placed say so in ``ORDERED_BY``: pairs of what they go by (``share``, ``standing``) and the point.
"""

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Protocol, runtime_checkable

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Longs, Rows, frozen
from pipeline.cluster.snapshot import Snapshot
from pipeline.policy import PluginSetting, Policy, Purpose

NOBODY: Rows = frozen([], np.int64)


@dataclass(frozen=True)
class Context:
    """What a plugin looks at: the snapshot, the policy and the clock (seconds).

    ``starting`` (int64[K]) are the tasks that this cycle binds: they do not run yet, and so nobody evicts them.
    """

    snapshot: Snapshot
    policy: Policy
    now: float
    starting: Rows = field(default_factory=lambda: NOBODY)


@dataclass(frozen=True)
class Preemptor:
    """For whom room is made: podgroup rows that start together, and what their minimum asks for (int64[R]).

    ``task`` is the row of the one task for which the task-centric path makes room, ``request`` then its own; NONE for
    the podgroups as a whole.
    """

    podgroups: tuple[int, ...]
    request: Longs
    purpose: Purpose
    task: int = NONE


class Opinion(IntEnum):
    """An answer on admission: a rejection prevails, an abstention leaves it to others."""

    REJECT = -1
    ABSTAIN = 0
    PERMIT = 1


class MakesPlugin(Protocol):
    """How the registry makes a plugin for one snapshot."""

    def __call__(self, context: Context, setting: PluginSetting) -> Any: ...


@runtime_checkable
class OrdersJobs(Protocol):
    """``job_order() -> key[G]``."""

    def job_order(self) -> Any: ...


@runtime_checkable
class OrdersTasks(Protocol):
    """``task_order() -> key[T]``."""

    def task_order(self) -> Any: ...


@runtime_checkable
class OrdersQueues(Protocol):
    """``queue_order() -> keys``: key columns of length Q, the most significant first."""

    def queue_order(self) -> tuple[Any, ...]: ...


@runtime_checkable
class OrdersVictimQueues(Protocol):
    """``victim_queue_order(queue) -> key[Q]``: from which queue to take first for a preemptor of ``queue``."""

    def victim_queue_order(self, queue: int) -> Any: ...


@runtime_checkable
class JudgesJobs(Protocol):
    """``job_state(point) -> bool[G] | None``: valid, ready, pipelined or starving; None where it does not say."""

    def job_state(self, point: str) -> Bools | None: ...


@runtime_checkable
class AdmitsJobs(Protocol):
    """``job_enqueued(podgroup, admitted) -> Opinion``; ``admitted`` bool[G] marks those let in during this cycle."""

    def job_enqueued(self, podgroup: int, admitted: Bools) -> Opinion: ...


@runtime_checkable
class LimitsQueues(Protocol):
    """``headroom() -> int64[Q, R]``: what each queue may still take, ancestors included; UNLIMITED without bound."""

    def headroom(self) -> Longs: ...


@runtime_checkable
class CallsOverused(Protocol):
    """``overused() -> bool[Q]``: queues that get nothing more, neither free room nor others' room."""

    def overused(self) -> Bools: ...


@runtime_checkable
class LetsReclaim(Protocol):
    """``preemptive(preemptor) -> bool | None``: whether its queue may take from other queues; None: no opinion."""

    def preemptive(self, preemptor: Preemptor) -> bool | None: ...


@runtime_checkable
class ShieldsTasks(Protocol):
    """``evictable(preemptor) -> bool[T] | bool | None``: who may be a victim, each looked at alone.

    One answer stands for all tasks; None: no opinion.
    """

    def evictable(self, preemptor: Preemptor) -> Bools | bool | None: ...


@runtime_checkable
class VotesOnVictims(Protocol):
    """Quotas used up along an order.

    ``bundle_quota_filter(preemptor, rows) -> bool[C]``: which of the ordered candidates may go.
    ``has_quota(preemptor) -> bool``: whether it would refuse anybody for this preemptor; if not, nobody need ask.
    """

    def has_quota(self, preemptor: Preemptor) -> bool: ...

    def bundle_quota_filter(self, preemptor: Preemptor, rows: Rows) -> Bools: ...


@runtime_checkable
class JudgesVictims(Protocol):
    """``validate_set(preemptor, rows) -> bool``: whether the final victims are lawful together."""

    def validate_set(self, preemptor: Preemptor, rows: Rows) -> bool: ...


@runtime_checkable
class SparesTasks(Protocol):
    """Task-centric path: quotas used up along the order of the candidates of one node.

    ``task_quota_filter(preemptor, rows) -> bool[C] | None``: which of them may go, each with those before it that may;
    None: no opinion, whatever the rows.
    """

    def task_quota_filter(self, preemptor: Preemptor, rows: Rows) -> Bools | None: ...


@runtime_checkable
class FiltersNodes(Protocol):
    """``allowed(shapes) -> bool[S, N]``: nodes on which tasks of each shape may run, resources aside."""

    def allowed(self, shapes: Rows) -> Bools: ...


@runtime_checkable
class ScoresNodes(Protocol):
    """``node_score(shape, used, rows) -> float64[M]``: how much a task of the shape likes each node; larger is better.

    ``used`` int64[M, R] is what the nodes ``rows`` hold at that moment.
    """

    def node_score(self, shape: int, used: Longs, rows: Rows) -> Any: ...


@runtime_checkable
class ChoosesCards(Protocol):
    """``spreads_cards() -> bool``: whether a task gets the emptiest card that takes it, rather than the fullest."""

    def spreads_cards(self) -> bool: ...


@runtime_checkable
class OffersDomains(Protocol):
    """``domains(podgroups, purpose) -> int64[D] | None``: domain rows in order of preference; None: no opinion."""

    def domains(self, podgroups: tuple[int, ...], purpose: Purpose) -> Rows | None: ...
