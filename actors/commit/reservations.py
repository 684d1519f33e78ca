"""Reservations: room that a decision holds for tasks until they start, or until something ends the wait."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from actors.columns.decision_message import Naming
from actors.protocol.bodies import PlanCommitted
from pipeline.cluster.arrays import NONE, Longs, Rows
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import BOUND, FAILED, GONE, PENDING, RUNNING, SUCCEEDED, TERMINATING

#: So many names stand in a reason.
_NAMED = 3


@dataclass(frozen=True, slots=True)
class Reservation:
    """What one decision waits for, by name, so that it outlives a renumbering of rows.

    Attributes
    ----------
    sequence
        The decision's number in the ledger.
    tasks
        Nominated tasks.
    victims
        Tasks that must end, and in which incarnation.
    purpose, action
        Of the decision, for whoever takes its place.
    expires_at, deadline
        Seconds: when the room is given up, and when a victim should have ended.
    """

    plan_id: str
    sequence: int
    tasks: tuple[str, ...]
    victims: tuple[tuple[str, int], ...]
    purpose: str
    action: str
    expires_at: float
    deadline: float


@dataclass(frozen=True, slots=True)
class Held:
    """The reservation stands."""


@dataclass(frozen=True, slots=True)
class Ended:
    """Nothing waits any more: every task has started or is gone. Nothing needs to be recorded."""


@dataclass(frozen=True, slots=True)
class GivenUp:
    """The decision is to be withdrawn, for this reason.

    Attributes
    ----------
    tasks: int64[K]
        Rows that are still promised a node.
    spared: int64[V]
        Rows of the victims that still hold their room in the life that was to end.
    overdue
        Whether it is given up because of them.
    """

    reason: str
    tasks: Rows
    spared: Rows
    overdue: bool = False


def reserved(made: PlanCommitted, sequence: int, deadline_s: float, ttl_s: float, now: float) -> Reservation | None:
    """The reservation that a decision makes; None for one that promises nothing."""
    tasks = tuple(one.task for one in made.nominations if one.node is not None)
    if not tasks:
        return None
    victims = tuple((one.task, one.incarnation) for one in made.evictions)
    expires_at = made.expires_at if made.expires_at is not None else now + ttl_s
    deadline = expires_at - ttl_s + deadline_s
    return Reservation(made.plan_id, sequence, tasks, victims, made.purpose, made.action, expires_at, deadline)


def placed_anew(held: Reservation, made: PlanCommitted) -> Reservation | None:
    """What is left of a reservation once a later decision has placed some of its tasks; None for nothing."""
    anew = {one.task for one in made.nominations} | {start.task for start in made.bindings}
    left = tuple(task for task in held.tasks if task not in anew)
    return replace(held, tasks=left) if left else None


def fate(held: Reservation, snapshot: Snapshot, naming: Naming, now: float) -> Held | Ended | GivenUp:
    """What becomes of a reservation on the newest snapshot, which must contain its decision."""
    rows = naming.task_rows(held.tasks)
    known = rows[rows != NONE]
    waiting, alive, status = (
        _promised(snapshot, known),
        holding(held.victims, snapshot, naming),
        snapshot.tasks.status[known],
    )
    gone = naming.tasks(known[(status == GONE) | (status == FAILED)].tolist())
    gone += [name for name, row in zip(held.tasks, rows.tolist(), strict=True) if row == NONE]
    if len(waiting) == 0:
        forgotten = naming.tasks(known[status == PENDING].tolist())
        if forgotten:  # its node was lost, or the state was, and the promise with it
            return GivenUp(f"the promise is gone: {_some(forgotten)}", waiting, alive)
        # Who is gone never started in the room; victims that were not told to end yet need not.
        return GivenUp(f"the need is gone: {_some(gone)}", waiting, alive) if gone and len(alive) else Ended()
    if gone or (status == SUCCEEDED).any():
        gone += naming.tasks(known[status == SUCCEEDED].tolist())
        return GivenUp(f"the need changed: {_some(gone)} no longer waits", waiting, alive)
    if len(alive) and now >= held.deadline:
        return GivenUp(f"victims did not end in time: {_some(naming.tasks(alive.tolist()))}", waiting, alive, True)
    if now >= held.expires_at:
        return GivenUp(f"not started in time: {_some(naming.tasks(waiting.tolist()))}", waiting, alive)
    return Held()


def _promised(snapshot: Snapshot, rows: Rows) -> Rows:
    tasks = snapshot.tasks
    promised: Rows = rows[(tasks.status[rows] == PENDING) & (tasks.nominated[rows] != NONE)]
    return promised


def holding(victims: Sequence[tuple[str, int]], snapshot: Snapshot, naming: Naming) -> Rows:
    """Rows of the victims that still hold their room in the incarnation that was to end."""
    rows = naming.task_rows([name for name, _ in victims])
    wanted: Longs = np.array([incarnation for _, incarnation in victims], np.int64)
    tasks, known = snapshot.tasks, rows != NONE
    rows, wanted = rows[known], wanted[known]
    there = np.isin(tasks.status[rows], (BOUND, RUNNING, TERMINATING)) & (tasks.incarnation[rows] == wanted)
    return np.asarray(rows[there], np.int64)


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
