"""Reservations: room that a decision holds for tasks until they start, or until something ends the wait."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from actors.kinds import PlanCommitted
from actors.rendering import Naming
from pipeline.cluster.arrays import NONE, Longs, Rows
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import BOUND, PENDING, RUNNING, TERMINATING

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
    expires_at, deadline
        Seconds: when the room is given up, and when a victim should have ended.
    """

    plan_id: str
    sequence: int
    tasks: tuple[str, ...]
    victims: tuple[tuple[str, int], ...]
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
    """The decision is to be withdrawn, for this reason; ``tasks`` (rows) are still promised a node."""

    reason: str
    tasks: Rows
    overdue: tuple[str, ...] = ()


def reserved(made: PlanCommitted, sequence: int, deadline_s: float, ttl_s: float, now: float) -> Reservation | None:
    """The reservation that a decision makes; None for one that promises nothing."""
    tasks = tuple(one.task for one in made.nominations if one.node is not None)
    if not tasks:
        return None
    victims = tuple((one.task, one.incarnation) for one in made.evictions)
    expires_at = made.expires_at if made.expires_at is not None else now + ttl_s
    return Reservation(made.plan_id, sequence, tasks, victims, expires_at, expires_at - ttl_s + deadline_s)


def fate(held: Reservation, snapshot: Snapshot, naming: Naming, now: float) -> Held | Ended | GivenUp:
    """What becomes of a reservation on the newest snapshot, which must contain its decision."""
    rows = naming.task_rows(held.tasks)
    known = rows[rows != NONE]
    waiting = _promised(snapshot, known)
    if len(waiting) == 0:
        return Ended()
    if (~snapshot.podgroups.alive[snapshot.tasks.podgroup[waiting]]).any():
        return GivenUp("the need is gone: its podgroup was removed", waiting)
    if len(known) < len(rows) or (snapshot.tasks.status[known] > TERMINATING).any():
        missing = [name for name, row in zip(held.tasks, rows.tolist(), strict=True) if row == NONE]
        missing += naming.tasks(known[snapshot.tasks.status[known] > TERMINATING].tolist())
        return GivenUp(f"the need changed: {_some(missing)} no longer waits", waiting)
    alive = _alive(held, snapshot, naming)
    if alive and now >= held.deadline:
        return GivenUp(f"victims did not end in time: {_some(alive)}", waiting, tuple(alive))
    if now >= held.expires_at:
        return GivenUp(f"not started in time: {_some(naming.tasks(waiting.tolist()))}", waiting)
    return Held()


def _promised(snapshot: Snapshot, rows: Rows) -> Rows:
    tasks = snapshot.tasks
    promised: Rows = rows[(tasks.status[rows] == PENDING) & (tasks.nominated[rows] != NONE)]
    return promised


def _alive(held: Reservation, snapshot: Snapshot, naming: Naming) -> list[str]:
    """Victims that still hold their room in the incarnation that was to end."""
    rows = naming.task_rows([name for name, _ in held.victims])
    wanted: Longs = np.array([incarnation for _, incarnation in held.victims], np.int64)
    tasks, known = snapshot.tasks, rows != NONE
    there = np.zeros(len(rows), bool)
    there[known] = np.isin(tasks.status[rows[known]], (BOUND, RUNNING, TERMINATING)) & (
        tasks.incarnation[rows[known]] == wanted[known]
    )
    return [held.victims[at][0] for at in np.flatnonzero(there).tolist()]


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
