"""Policies and runs of the task-centric actions for tests; and what their statements come to."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pipeline.actions.evict import evict
from pipeline.actions.progress import Progress
from pipeline.cluster.arrays import NONE, frozen
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import Budgets
from pipeline.cluster.what_if import WhatIf
from pipeline.policy import PluginSetting, Policy, Purpose

#: Volcano's usual plugins, with gangs protected.
USUAL = ("priority", "gang", "conformance", "predicates", "network-topology-aware")
CPU = 0


def policy(plugins: Iterable[str | PluginSetting] = USUAL, **preempt_arguments: Any) -> Policy:
    settings = tuple(PluginSetting(one) if isinstance(one, str) else one for one in plugins)
    return Policy(
        "volcano", "", ("preempt", "reclaim"), settings, solvers=(("preempt", "tasks"), ("reclaim", "tasks")),
        action_arguments=(("preempt", tuple(preempt_arguments.items())),),
    )  # fmt: skip


def preempted(snapshot: Snapshot, with_policy: Policy | None = None) -> Progress:
    return evict(Progress(snapshot, with_policy or policy(), 0.0), "preempt", Purpose.PREEMPT)


def reclaimed(snapshot: Snapshot, with_policy: Policy | None = None) -> Progress:
    return evict(Progress(snapshot, with_policy or policy((*USUAL, "proportion")), 0.0), "reclaim", Purpose.RECLAIM)


def victims(progress: Progress) -> list[int]:
    return sorted(row for made in progress.statements for row in made.evictions.tolist())


def promised(progress: Progress) -> dict[int, int]:
    """Node by task row, of what was newly promised; NONE where a promise was withdrawn."""
    return {
        task: node
        for made in progress.statements
        for task, node in zip(made.nominated.tolist(), made.nominated_node.tolist(), strict=True)
    }


def nominated(snapshot: Snapshot, places: dict[int, int]) -> Snapshot:
    rows, nodes = np.array(list(places), np.int64), np.array(list(places.values()), np.int64)
    return WhatIf.of(snapshot).nominating(rows, nodes).whole


def with_queues(snapshot: Snapshot, **columns: Any) -> Snapshot:
    """The snapshot with columns of its queues replaced; of quantities only the cpu."""
    changed = {}
    for name, values in columns.items():
        column = getattr(snapshot.queues, name).copy()
        if column.ndim > 1:
            column[:, CPU] = values
        else:
            column[:] = values
        changed[name] = frozen(column, column.dtype)
    return replace(snapshot, queues=replace(snapshot.queues, **changed))


def with_tasks(snapshot: Snapshot, rows: Sequence[int], **values: Any) -> Snapshot:
    """The snapshot with columns of some tasks replaced."""
    changed = {}
    for name, value in values.items():
        column = getattr(snapshot.tasks, name).copy()
        column[list(rows)] = value
        changed[name] = frozen(column, column.dtype)
    return replace(snapshot, tasks=replace(snapshot.tasks, **changed))


def with_budget(snapshot: Snapshot, rows: Sequence[int], allowed: int) -> Snapshot:
    """The snapshot with one disruption budget that covers some tasks, by a label set of their own."""
    number = len(snapshot.vocabulary.label_sets)
    vocabulary = replace(snapshot.vocabulary, label_sets=(*snapshot.vocabulary.label_sets, (("app", "x"),)))
    covers = np.zeros((1, 1, number + 1), bool)
    covers[0, 0, number] = True
    budgets = Budgets(frozen([allowed], np.int32), frozen(covers, bool))
    return replace(with_tasks(snapshot, rows, label_set=number), vocabulary=vocabulary, budgets=budgets)


def pinned_nodes(snapshot: Snapshot, podgroup: int) -> list[int]:
    """Where the tasks of a podgroup run or are promised to run."""
    rows = snapshot.tasks_of(podgroup)
    node, wish = snapshot.tasks.node[rows], snapshot.tasks.nominated[rows]
    return sorted(np.where(node == NONE, wish, node)[(node != NONE) | (wish != NONE)].tolist())
