"""The state as metrics: how full the fleet is, what each queue deserves and holds, and how much of it waits."""

from __future__ import annotations

import numpy as np

from actors.ingestion.known.state import LiveState
from actors.observability.metrics import Figures
from pipeline.cluster.arrays import UNLIMITED, UNSET, Longs
from pipeline.cluster.resources import CPU, PODS
from pipeline.placement.conditions import left_of

#: Metrics of a queue are kept for this many at most, the first in the order of the tree: each costs its series.
QUEUES = 200


def set_figures(figures: Figures, state: LiveState) -> None:
    """Say how the state stands: processors in cores, memory in bytes, devices in pieces."""
    snapshot, names = state.snapshot, state.snapshot.vocabulary.resources
    capacity = snapshot.capacity
    idle = np.asarray(snapshot.room.idle.sum(axis=0), np.int64)
    for at in np.flatnonzero(capacity > 0).tolist():
        figures.used.set(1.0 - float(idle[at] / capacity[at]), {"resource": names[at]})
    left = left_of(snapshot)
    waiting = np.bincount(snapshot.podgroups.queue[left.podgroup], minlength=len(snapshot.queues))
    for row, queue in enumerate(state.names.queues[:QUEUES]):
        figures.queue_waiting.set(int(waiting[row]), {"queue": queue})
        for resource, amount in _amounts(names, snapshot.allocated[row]):
            figures.queue_held.set(amount, {"queue": queue, "resource": resource})
        for resource, amount in _amounts(names, snapshot.queues.deserved[row]):
            figures.queue_deserved.set(amount, {"queue": queue, "resource": resource})


def _amounts(names: tuple[str, ...], column: Longs) -> list[tuple[str, float]]:
    """By resource, what is stated and has a bound; pods are left out."""
    return [
        (names[at], amount / 1000 if at == CPU else float(amount))
        for at, amount in enumerate(column.tolist())
        if at != PODS and amount != UNSET and amount < UNLIMITED
    ]
