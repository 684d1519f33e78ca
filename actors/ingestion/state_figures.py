"""The state as metrics: how full the fleet is, what each queue deserves and holds, and how much of it waits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from actors.ingestion.known.state import LiveState
from actors.observability.metrics import Figures
from pipeline.cluster.arrays import UNLIMITED, UNSET, Longs
from pipeline.cluster.resources import CPU, PODS
from pipeline.placement.conditions import unscheduled_in

#: Metrics of a queue are kept for this many at most, the first in the order of the tree: each costs its series.
QUEUES = 200


def set_figures(figures: Figures, state: LiveState) -> None:
    """Say how the state stands: processors in cores, memory in bytes, devices in pieces."""
    snapshot, names = state.snapshot, state.snapshot.vocabulary.resources
    capacity = snapshot.capacity
    idle = np.asarray(snapshot.room.idle.sum(axis=0), np.int64)
    there = np.flatnonzero(capacity > 0).tolist()
    figures.used.only((1.0 - float(idle[at] / capacity[at]), {"resource": names[at]}) for at in there)
    left = unscheduled_in(snapshot)
    waiting = np.bincount(snapshot.podgroups.queue[left.podgroup], minlength=len(snapshot.queues))
    queues = state.names.queues[:QUEUES]
    figures.queue_waiting.only((int(waiting[row]), {"queue": queue}) for row, queue in enumerate(queues))
    figures.queue_held.only(_by_queue(queues, names, snapshot.allocated))
    figures.queue_deserved.only(_by_queue(queues, names, snapshot.queues.deserved))


def _by_queue(queues: Sequence[str], names: tuple[str, ...], columns: Longs) -> Iterator[tuple[float, dict[str, str]]]:
    """What a row says for each of these queues, the first ones of the state."""
    for row, queue in enumerate(queues):
        for resource, amount in _amounts(names, columns[row]):
            yield amount, {"queue": queue, "resource": resource}


def _amounts(names: tuple[str, ...], column: Longs) -> list[tuple[str, float]]:
    """By resource, what is stated and has a bound; pods are left out."""
    return [
        (names[at], amount / 1000 if at == CPU else float(amount))
        for at, amount in enumerate(column.tolist())
        if at != PODS and amount != UNSET and amount < UNLIMITED
    ]
