"""A small state, column by column, for tests of what happens to columns; and news about it."""

from typing import Any

import numpy as np

from actors.fleets.generated_columns import table
from pipeline.cluster.arrays import NONE, frozen
from pipeline.cluster.counted.budgets import Budgets
from pipeline.cluster.counted.recent_evictions import NO_EVICTIONS
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import PHASE_INQUEUE, Nodes, Podgroups, Queues, Roles, Shapes, Subgroups, Tasks
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
        budgets=Budgets(column(0, np.int32, 0), column(0, np.int32, 0), column(np.zeros((0, 1)), bool, 0)),
        recent=NO_EVICTIONS,
    )  # fmt: skip


def nodes_table(count: int) -> Nodes:
    return table(Nodes, count, len(RESOURCES), allocatable=[8000, 1 << 30, 10])


def queues_table(count: int, wide: int = len(RESOURCES)) -> Queues:
    return table(Queues, count, wide, preempt_min_runtime_s=0.0, reclaim_min_runtime_s=0.0)


def podgroups_table(count: int, minimum: int = 2) -> Podgroups:
    return table(Podgroups, count, len(RESOURCES), min_available=minimum, phase=PHASE_INQUEUE)


def tasks_table(podgroup: Any, role: Any) -> Tasks:
    return table(Tasks, len(podgroup), podgroup=podgroup, role=role)


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
