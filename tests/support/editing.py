"""Small clusters with some of their columns replaced."""

from dataclasses import replace
from typing import Any

import numpy as np

from pipeline.cluster.arrays import frozen, with_rows
from pipeline.cluster.counted.budgets import Budgets
from pipeline.cluster.snapshot import Snapshot

_CPU = 0


def edited(snapshot: Snapshot, table: str, rows: Any, **values: Any) -> Snapshot:
    """The snapshot with columns of some rows of a table replaced; ``...`` stands for all rows."""
    before = getattr(snapshot, table)
    columns = {name: with_rows(getattr(before, name), rows, value) for name, value in values.items()}
    return replace(snapshot, **{table: replace(before, **columns)})


def with_tasks(snapshot: Snapshot, rows: Any, **values: Any) -> Snapshot:
    return edited(snapshot, "tasks", rows, **values)


def with_groups(snapshot: Snapshot, rows: Any, **values: Any) -> Snapshot:
    return edited(snapshot, "podgroups", rows, **values)


def with_queues(snapshot: Snapshot, **columns: Any) -> Snapshot:
    """The snapshot with columns of its queues replaced; of quantities only the cpu."""
    for name, values in columns.items():
        cells = (..., _CPU) if getattr(snapshot.queues, name).ndim > 1 else ...
        snapshot = edited(snapshot, "queues", cells, **{name: values})
    return snapshot


def with_parents(snapshot: Snapshot, *parents: int) -> Snapshot:
    """The snapshot with its queues as a tree, parents before children."""
    return with_queues(snapshot, parent=parents)


def with_quota(snapshot: Snapshot, **amounts: dict[int, dict[str, int]]) -> Snapshot:
    """The snapshot with quantities of queues replaced: ``deserved={0: {"gpu": 4}}``."""
    for name, queues in amounts.items():
        for queue, said in queues.items():
            cells = queue, [snapshot.vocabulary.resources.index(resource) for resource in said]
            snapshot = edited(snapshot, "queues", cells, **{name: [*said.values()]})
    return snapshot


def with_gang_group(snapshot: Snapshot, rows: list[int]) -> Snapshot:
    """The snapshot in which some podgroups start together."""
    words = replace(
        snapshot.vocabulary, gangs=tuple(f"default/{row}" for row in rows), gang_groups=(tuple(range(len(rows))),)
    )
    return with_groups(replace(snapshot, vocabulary=words), rows, gang_group=0, gang=np.arange(len(rows)))


def with_budget(snapshot: Snapshot, rows: list[int], allowed: int) -> Snapshot:
    """The snapshot with one disruption budget that covers some tasks, by a label set of their own."""
    number = len(snapshot.vocabulary.label_sets)
    vocabulary = replace(snapshot.vocabulary, label_sets=(*snapshot.vocabulary.label_sets, (("app", "x"),)))
    covers = np.zeros((1, number + 1), bool)
    covers[0, number] = True
    budgets = Budgets(frozen([allowed], np.int32), frozen([0], np.int32), frozen(covers, bool))
    return replace(with_tasks(snapshot, rows, label_set=number), vocabulary=vocabulary, budgets=budgets)
