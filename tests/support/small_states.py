"""A small state, column by column, for tests of what happens to columns; and news about it."""

from typing import Any

import numpy as np

from pipeline.cluster.arrays import NONE, UNLIMITED, UNSET, frozen
from pipeline.cluster.counted.recent_evictions import NO_EVICTIONS
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import (
    PENDING,
    PHASE_INQUEUE,
    Budgets,
    Nodes,
    Podgroups,
    Queues,
    Roles,
    Shapes,
    Subgroups,
    Tasks,
)
from pipeline.cluster.topology import Topology
from pipeline.cluster.updates.events import CURRENT, Decided, Departures, NodeNews, TaskNews
from pipeline.cluster.vocabulary import Constraint, Vocabulary

RESOURCES = ("cpu", "memory", "pods")


def column(values: Any, dtype: Any, count: int) -> Any:
    """A read-only column; one value stands for all rows."""
    return frozen(np.broadcast_to(np.asarray(values, dtype), (count, *np.shape(values)[1:])).copy(), dtype)


def small_state(nodes: int = 4, groups: int = 3, tasks: int = 4, minimum: int = 2) -> Snapshot:
    """``groups`` podgroups of ``tasks`` pending tasks each, a role apiece, over two racks of ``nodes`` nodes in all."""
    return Snapshot(
        revision=0,
        epoch=1,
        decided=0,
        vocabulary=Vocabulary(RESOURCES, ("rack",), constraints=(Constraint(),), namespaces=("default",)),
        nodes=nodes_table(nodes),
        topology=Topology(
            1, column([NONE, 0, 0], np.int32, 3), column([NONE, 0, 0], np.int32, 3),
            column([0, 0, nodes // 2], np.int64, 3), column([nodes, nodes // 2, nodes], np.int64, 3),
        ),
        shapes=Shapes(frozen([[1000, 0, 1]], np.int64), frozen([0], np.int32), frozen([0], np.int64)),
        queues=queues_table(2),
        podgroups=podgroups_table(groups, minimum),
        roles=Roles(frozen(np.arange(groups), np.int32), column(0, np.int32, groups)),
        subgroups=Subgroups(*(column(0, np.int32, 0) for _ in range(6))),
        tasks=tasks_table(np.repeat(np.arange(groups), tasks), np.repeat(np.arange(groups), tasks)),
        budgets=Budgets(column(0, np.int32, 0), column(np.zeros((0, 1, 1)), bool, 0)),
        recent=NO_EVICTIONS,
    )  # fmt: skip


def nodes_table(count: int) -> Nodes:
    return Nodes(
        frozen(np.tile([8000, 1 << 30, 10], (count, 1)), np.int64), column(True, bool, count),
        column(0, np.int32, count), frozen(np.zeros((count, 0)), np.int32), frozen(np.zeros((count, 0)), np.int64),
        column(0, np.int32, count), column(0, np.int64, count),
    )  # fmt: skip


def queues_table(count: int) -> Queues:
    wide = len(RESOURCES)
    return Queues(
        column(NONE, np.int32, count), column(0, np.int32, count), column(1.0, float, count),
        frozen(np.ones((count, wide)), float), frozen(np.zeros((count, wide)), float),
        frozen(np.zeros((count, wide)), np.int64),
        frozen(np.full((count, wide), UNSET), np.int64), frozen(np.full((count, wide), UNLIMITED), np.int64),
        column(True, bool, count), column(0, np.uint8, count), column(0.0, float, count), column(0.0, float, count),
        column(0.0, float, count), frozen(np.arange(count), np.int64), column(0, np.int64, count),
    )  # fmt: skip


def podgroups_table(count: int, minimum: int = 2) -> Podgroups:
    ids, times = column(NONE, np.int32, count), column(np.nan, float, count)
    return Podgroups(
        queue=column(0, np.int32, count), namespace=column(0, np.int32, count), priority=column(0, np.int32, count),
        preemptible=column(True, bool, count), may_preempt=column(True, bool, count),
        min_available=column(minimum, np.int32, count),
        min_resources=frozen(np.full((count, len(RESOURCES)), UNSET), np.int64),
        phase=column(PHASE_INQUEUE, np.uint8, count), match_policy=column(0, np.uint8, count), gang=ids,
        gang_group=ids, gather=ids, required_level=ids, preferred_level=ids, min_subgroups=ids,
        created=column(0.0, float, count), started=times, stale_since=times, stale_grace_s=times,
        last_checkpoint=times, preemption_delay_s=column(0.0, float, count), wait_s=times,
        order=frozen(np.arange(count), np.int64),
        alive=column(True, bool, count), revision=column(0, np.int64, count),
    )  # fmt: skip


def tasks_table(podgroup: Any, role: Any) -> Tasks:
    count = len(podgroup)
    yes, no, none = column(True, bool, count), column(False, bool, count), column(NONE, np.int32, count)
    zero = column(0, np.int32, count)
    return Tasks(
        podgroup=frozen(podgroup, np.int32), shape=zero, role=frozen(role, np.int32), subgroup=none, priority=zero,
        preemptible=yes, may_preempt=yes, gone_when_evicted=no, gated=no, critical=no, best_effort=no,
        status=column(PENDING, np.uint8, count), node=none, nominated=none, card=none, nominated_card=none, index=none,
        number=none, label_set=zero,
        created=column(0.0, float, count), order=frozen(np.arange(count), np.int64),
        incarnation=column(0, np.int64, count), revision=column(0, np.int64, count),
    )  # fmt: skip


def task_news(*news: tuple[Any, ...]) -> TaskNews:
    """News from (row, status, node, revision) and, where it matters, incarnation and time (the revision else)."""
    full = [(*one, CURRENT, float(one[3]))[:6] if len(one) == 4 else (*one, float(one[3]))[:6] for one in news]
    rows, statuses, nodes, revisions, lives, times = zip(*full, strict=True) if full else ((),) * 6
    return TaskNews(
        frozen(rows, np.int64), frozen(statuses, np.uint8), frozen(nodes, np.int32),
        column(NONE, np.int32, len(rows)), frozen(lives, np.int64), frozen(revisions, np.int64),
        frozen(times, np.float64),
    )  # fmt: skip


def node_news(row: int, cpu: int, revision: int, schedulable: bool = True) -> NodeNews:
    return NodeNews(
        frozen([row], np.int64), frozen([[cpu, 1 << 30, 10]], np.int64), frozen([schedulable], bool),
        frozen([revision], np.int64),
    )  # fmt: skip


def departure(row: int, revision: int) -> Departures:
    return Departures(frozen([row], np.int64), frozen([revision], np.int64), frozen([float(revision)], float))


def decided(seq: int, at: float = 0.0, **columns: list[tuple[int, ...]]) -> Decided:
    """A decision from lists of (row, incarnation) or, for ``nominated`` and ``bound``, (row, node, incarnation)."""
    said: dict[str, Any] = {}
    for name in ("evicted", "spared"):
        rows, lives = zip(*columns.get(name, []), strict=True) if columns.get(name) else ((), ())
        said |= {name: frozen(rows, np.int64), f"{name}_incarnation": frozen(lives, np.int64)}
    for name in ("nominated", "bound"):
        rows, nodes, lives = zip(*columns.get(name, []), strict=True) if columns.get(name) else ((), (), ())
        said |= {
            name: frozen(rows, np.int64), f"{name}_node": frozen(nodes, np.int32),
            f"{name}_card": column(NONE, np.int32, len(rows)), f"{name}_incarnation": frozen(lives, np.int64),
        }  # fmt: skip
    return Decided(seq, at, **said)
