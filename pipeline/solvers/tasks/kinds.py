"""The columns of a search at its beginning, and those of a kind of tasks when its first task is searched for."""

from collections.abc import Hashable
from typing import Any

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Rows, frozen
from pipeline.cluster.counted.minima import Have, Minima
from pipeline.cluster.queue_tree import chain
from pipeline.cluster.rules.anti_affinity import repulsion_of_kind
from pipeline.cluster.rules.minimum import towards_start
from pipeline.cluster.rules.quota import LosingOrder, QueueLimits
from pipeline.cluster.rules.sparing import TaskQuota, task_quota
from pipeline.cluster.snapshot import Snapshot
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Follows
from pipeline.policy import Purpose
from pipeline.solvers.tasks.candidates import candidate_mask, queue_ranks, releasable
from pipeline.solvers.tasks.rule import Rule
from pipeline.solvers.tasks.sweeping.columns import FOLLOWED, Decisions, FixedColumns, Fleet, TaskKind
from pipeline.solvers.tasks.sweeping.victim_order import VictimOrder

#: How many sets of candidates are looked at in all for a podgroup, where a vote leaves too little room.
_SETS = 4096


class Withheld:
    """Nodes on which tasks of one kind do not fit beside the candidates that plugins withhold, as found so far.

    Each place that is taken for such a task takes from victims' podgroups, queues and budgets. A vote that refuses a
    candidate then goes on refusing it, so a node that was found is not asked about again for tasks of the same kind.

    Attributes
    ----------
    sets: int64[1]
        How many more sets of candidates are looked at.
    """

    def __init__(self, nodes: int) -> None:
        self._nodes, self.sets = nodes, np.array([_SETS])
        self._found: dict[tuple[Hashable, int, int, bool], Bools] = {}

    def of(self, host: Host, task: int, rule: Hashable) -> Bools:
        """bool[N]: the nodes for tasks of this one's kind; the search writes into it."""
        tasks = host.context.snapshot.tasks
        kind = rule, int(tasks.shape[task]), int(tasks.priority[task]), bool(tasks.may_preempt[task])
        return self._found.setdefault(kind, np.zeros(self._nodes, bool))


def alike(snapshot: Snapshot, rows: Rows) -> tuple[tuple[int, ...], int]:
    """What the first of ``rows`` has in common with its kind; and how many of the leading ``rows`` are of that kind."""
    tasks = snapshot.tasks
    columns = tasks.shape, tasks.podgroup, tasks.priority, tasks.may_preempt, tasks.best_effort, tasks.label_set
    same = np.ones(len(rows), bool)
    for column in columns:
        same &= column[rows] == column[rows[0]]
    many = len(rows) if same.all() else int(np.argmin(same))
    return tuple(int(column[rows[0]]) for column in columns), many


def facts_of(snapshot: Snapshot) -> FixedColumns:
    """What no decision changes."""
    tasks, there, shapes = snapshot.tasks, snapshot.occupancy, snapshot.shapes
    groups, minima = snapshot.podgroups, Minima(*snapshot.once(towards_start)[0])
    return FixedColumns(
        start=there.start,
        resident=there.task,
        podgroup=tasks.podgroup,
        shape=tasks.shape,
        card=tasks.card,
        nominated_card=tasks.nominated_card,
        role=tasks.role,
        subgroup=tasks.subgroup,
        priority=tasks.priority,
        created=tasks.created,
        label_set=tasks.label_set,
        queue=groups.queue,
        namespace=groups.namespace,
        asks=shapes.request,
        on_card=shapes.on_card,
        minima=minima,
        allocatable=snapshot.nodes.allocatable,
    )


def fleet_of(host: Host, quota: TaskQuota | None, limits: QueueLimits | None) -> Fleet:
    """What decisions change, as it is before the first one; ``quota`` and ``limits``: see ``task_kind``."""
    snapshot = host.context.snapshot
    follows = [one.JOB_ORDER_FOLLOWS is Follows.READINESS for one in host.job_orders]
    counted, bound = quota or task_quota(), limits or _no_limits()
    return Fleet(
        future=snapshot.room.future.copy(),
        idle=snapshot.room.idle,
        cards=snapshot.card_room.future.copy(),
        idle_cards=snapshot.card_room.idle,
        gone=np.zeros(len(snapshot.tasks), bool),
        ready=snapshot.counts.ready.copy(),
        have=Have(*(column.copy() for column in snapshot.once(towards_start)[1])),
        left=counted.queues.allocated.copy(),
        held=bound.held.copy(),
        allowed=counted.allowed.copy(),
        says_ready=np.array([*follows, False]),
    )


def no_decisions(snapshot: Snapshot, tasks: int) -> Decisions:
    """Room for as many decisions as there are tasks, and for all victims that there can be."""
    victims, released = len(snapshot.occupancy.task), int((snapshot.tasks.nominated != NONE).sum())
    return Decisions(
        many=np.zeros(2, np.int64),
        task=np.empty(tasks, np.int64),
        node=np.empty(tasks, np.int64),
        card=np.empty(tasks, np.int64),
        first_victim=np.zeros(tasks + 1, np.int64),
        victims=np.empty(victims, np.int64),
        first_released=np.zeros(tasks + 1, np.int64),
        released=np.empty(released, np.int64),
    )


def _no_limits() -> QueueLimits:
    amounts = frozen(np.zeros((0, 0)), np.int64)
    return QueueLimits(frozen([], np.int32), amounts, amounts, frozen([], np.bool_))


def _copied(order: LosingOrder | None) -> LosingOrder:
    """A copy of the order in writable memory; no queues if it has none."""
    none = np.zeros(0, np.int64)
    order = order or LosingOrder(none, none.reshape(0, 0), none.astype(bool), none)
    return LosingOrder(order.first.copy(), order.deserved.copy(), order.bare.copy(), order.last.copy())


def task_kind(
    host: Host, task: int, rule: Rule, order: VictimOrder, quota: TaskQuota | None, limits: QueueLimits | None,
    withheld: Withheld, decisions: int,
) -> TaskKind:  # fmt: skip
    """What the fleet has and allows for tasks like this one.

    Parameters
    ----------
    host
        Of the snapshot before the first decision.
    order
        Of candidates, but for queues.
    quota, limits
        What plugins count of victims and of queues in columns; None: they are asked.
    decisions
        How many there may be.
    """
    snapshot, nodes = host.context.snapshot, len(host.context.snapshot.nodes)
    shape, queue = int(snapshot.tasks.shape[task]), int(snapshot.queue_of(np.array([task]))[0])
    counted, bound = quota or task_quota(), limits or _no_limits()
    closed = limits is not None and bool(limits.closed[queue])  # it may take nothing, whatever goes
    rows = releasable(host, task, rule)
    follows = rule.purpose is Purpose.RECLAIM and limits is not None
    losing = host.losing_order(queue) if follows else None
    return TaskKind(
        request=snapshot.shapes.request[shape].copy(),
        part=int(snapshot.shapes.on_card[shape]),
        simulated=bool(rule.simulated),
        spreads=host.spreads_cards,
        allowed=np.zeros(nodes, bool) if closed else host.allowed(np.array([shape]))[0],
        may=candidate_mask(host, task, rule),
        victim_order=order._replace(queue_rank=queue_ranks(host, queue, rule.purpose).copy()),
        spares=counted.spares,
        counts=counted.queues.counted,
        strict=counted.strict,
        entitled=counted.queues.entitled,
        asking=counted.queues.asking,
        namespace=counted.namespace,
        covers=counted.covers,
        limited=limits is not None,
        ranks=losing is not None,
        losing=_copied(losing),
        parent=frozen(bound.parent, np.int32),
        ceiling=frozen(bound.ceiling, np.int64),
        above=np.array([] if limits is None else chain(bound.parent, queue), np.int64),
        withheld=withheld.of(host, task, rule),
        sets=withheld.sets,
        terms=host.score_terms(shape),
        releasable=rows,
        released_from=snapshot.tasks.nominated[rows].astype(np.int64),
        **repulsion_of_kind(snapshot, task)._asdict(),
        **_unsearched(nodes, decisions),
    )


def _unsearched(nodes: int, decisions: int) -> dict[str, Any]:
    """The columns of a kind that the search fills in, as they are before it has looked at any node."""
    many = np.zeros(5, np.int64)
    many[FOLLOWED] = NONE
    return {
        "fits": np.zeros(nodes, np.uint8), "hopeful": np.zeros(nodes, bool), "score": np.zeros(nodes),
        "scored": np.zeros(nodes, bool), "order": np.empty(nodes, np.int64), "region": np.zeros(2, np.int64),
        "unscored": np.empty(nodes + decisions, np.int64), "many": many,
    }  # fmt: skip
