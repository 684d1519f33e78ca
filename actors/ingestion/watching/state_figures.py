"""The state as metrics: how full the fleet is, what queues deserve and hold, what waits, and what does not start."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

import numpy as np

from actors.ingestion.known.state import LiveState
from actors.observability.metrics import Figures
from pipeline.cluster.arrays import UNLIMITED, UNSET, Longs
from pipeline.cluster.resources import CPU, PODS
from pipeline.cluster.tables import BOUND
from pipeline.placement.conditions import unscheduled_in

log = logging.getLogger(__name__)

#: Metrics of a queue are kept for this many at most, the first in the order of the tree: each costs its series.
QUEUES = 200
#: Seconds after which a task that has not started is named in the log, once; how many one line names.
LATE_S, _NAMED = 600.0, 5
#: At most this many are watched at a time, so that a look stays short; all are counted.
_WATCHED = 10_000


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


class Unstarted:
    """Tasks that the fleet does not start where they were bound, or not at all.

    A Bound task holds its room without end and counts towards its gang's minimum. A connector that starts only a part
    of what a decision binds is noticed by nothing else. How long a task has been Bound counts from the first look.
    """

    def __init__(self, figures: Figures) -> None:
        self._figures = figures
        self._since: dict[tuple[str, int], float] = {}
        self._looked, self._elsewhere = 0.0, 0

    def look(self, state: LiveState, now: float) -> None:
        """Report on the state at ``now``, in seconds of a clock that is never set."""
        tasks, names = state.snapshot.tasks, state.names
        rows = np.flatnonzero(tasks.status == BOUND)
        lives = tasks.incarnation[rows].tolist()
        since, late = dict[tuple[str, int], float](), list[str]()
        for row, life in zip(rows[:_WATCHED].tolist(), lives, strict=False):
            task = names.tasks[row], life
            began = since[task] = self._since.get(task, now)
            if self._looked < began + LATE_S <= now:
                late.append(f"{task[0]} on {names.nodes[tasks.node[row]]}")
        self._since, self._looked = since, now
        self._figures.tasks_elsewhere.add(max(0, state.elsewhere - self._elsewhere))
        self._elsewhere = state.elsewhere
        self._figures.tasks_bound.set(len(rows))
        self._figures.tasks_bound_s.set(now - min(since.values(), default=now))
        if late:
            more = f" and {len(late) - _NAMED} more" if len(late) > _NAMED else ""
            said = ", ".join(late[:_NAMED])
            log.warning("bound for %.0f s, and the fleet has not said that it runs: %s%s", LATE_S, said, more)
