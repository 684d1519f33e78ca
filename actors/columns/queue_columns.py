"""Queues as columns: the tree, parents first, and the quotas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from actors.cluster_file.cross_references import ROOT_QUEUE
from actors.cluster_file.documents import QueueDocument, RecentEvictionsDocument
from actors.columns.node_columns import vector
from pipeline.cluster.arrays import NONE, UNLIMITED, UNSET, Floats, Longs, frozen
from pipeline.cluster.counted.recent_evictions import HORIZON_S, RecentEvictions, recent_evictions_of, whole_second
from pipeline.cluster.tables import QUEUE_STATE_NAMES, Queues


@dataclass(frozen=True, slots=True)
class QueueColumns:
    """The table of queues, and their names by row."""

    queues: Queues
    names: tuple[str, ...]


def queue_columns(documents: Sequence[QueueDocument], resources: Sequence[str]) -> QueueColumns:
    """Columns of queues, whatever their given order; revisions are 0.

    As in Volcano, a queue without a parent is a child of the queue ``root`` if there is one that has no parent either.
    """
    parent = {document.name: document.parent for document in documents}
    if parent.get(ROOT_QUEUE, ROOT_QUEUE) is None:
        parent = {name: above or (ROOT_QUEUE if name != ROOT_QUEUE else None) for name, above in parent.items()}
    ordered = sorted(documents, key=lambda queue: (_depth(queue.name, parent), queue.created, queue.name))
    row = {queue.name: at for at, queue in enumerate(ordered)}
    age = sorted(range(len(ordered)), key=lambda at: (ordered[at].created, ordered[at].name))
    order = np.empty(len(ordered), np.int64)
    order[age] = np.arange(len(ordered))

    def amounts(key: str, absent: int) -> Longs:
        given = [vector(resources, getattr(queue, key), absent) for queue in ordered]
        return frozen(np.array(given, np.int64).reshape(len(ordered), len(resources)), np.int64)

    def parts(key: str, absent: float) -> Floats:
        given = [_by_resource(getattr(queue, key), resources, absent) for queue in ordered]
        return frozen(np.array(given, float).reshape(len(ordered), len(resources)), np.float64)

    def seconds(key: str) -> Floats:
        given = [getattr(queue, key) for queue in ordered]
        return frozen([np.nan if amount is None else amount for amount in given], np.float64)

    table = Queues(
        parent=frozen([row.get(parent[queue.name] or "", NONE) for queue in ordered], np.int32),
        priority=frozen([queue.priority for queue in ordered], np.int32),
        weight=frozen([queue.weight for queue in ordered], np.float64),
        over_quota_weight=parts("over_quota_weight", 1.0),
        usage=parts("usage", 0.0),
        guarantee=amounts("guarantee", 0),
        deserved=amounts("deserved", UNSET),
        capability=amounts("capability", UNLIMITED),
        reclaimable=frozen([queue.reclaimable for queue in ordered], np.bool_),
        state=frozen([QUEUE_STATE_NAMES.index(queue.state) for queue in ordered], np.uint8),
        preempt_min_runtime_s=seconds("preempt_min_runtime"),
        reclaim_min_runtime_s=seconds("reclaim_min_runtime"),
        created=frozen([queue.created for queue in ordered], np.float64),
        order=frozen(order, np.int64),
        revision=frozen(np.zeros(len(ordered)), np.int64),
    )
    return QueueColumns(table, tuple(queue.name for queue in ordered))


def recent_evictions(
    documents: Sequence[RecentEvictionsDocument], queue_row: Mapping[str, int], now: float
) -> RecentEvictions:
    """Recent evictions as columns; without those that are too long before or after ``now`` (seconds) to count."""
    said = [(NONE if one.queue is None else queue_row[one.queue], whole_second(one.at), one.count) for one in documents]
    said = [one for one in said if abs(one[1] - now) <= HORIZON_S]
    queue, at, count = np.array(said, np.int64).reshape(-1, 3).T
    return recent_evictions_of(queue.astype(np.int32), at, count)


def _depth(name: str, parent: Mapping[str, str | None]) -> int:
    depth, above = 0, parent[name]
    while above is not None and above in parent:
        depth, above = depth + 1, parent[above]
    return depth


def _by_resource(given: float | dict[str, float], resources: Sequence[str], absent: float) -> list[float]:
    """One number for all resources, or one for each; ``absent`` for a resource that is not named."""
    return [given.get(name, absent) if isinstance(given, dict) else given for name in resources]
