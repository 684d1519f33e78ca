"""What becomes of a reservation, the room that a decision holds for tasks until they start or the wait ends."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.cluster.arrays import NONE, Bools, Longs, Rows, distinct
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import BOUND, FAILED, GONE, PENDING, RUNNING, SUCCEEDED, TERMINATING
from pipeline.decision.statement import Statement
from pipeline.policy import Policy


@dataclass(frozen=True)
class Reservation:
    """What one decision waits for, in rows of one epoch.

    Attributes
    ----------
    tasks: int64[K]
        Nominated tasks; NONE for one that is no longer known.
    victims: int64[V]
        Tasks that must end; NONE for one that is no longer known.
    incarnation: int64[V]
        The life of each that must end.
    expires_at, deadline
        Seconds: when the room is given up, and by when victims should have ended.
    """

    tasks: Rows
    victims: Rows
    incarnation: Longs
    expires_at: float
    deadline: float


class Ending(StrEnum):
    """Why a decision is given up."""

    NOMINATION_LOST = "the promise is gone"
    NEED_GONE = "the need is gone"
    NEED_CHANGED = "the need changed"
    VICTIMS_OVERDUE = "victims did not end in time"
    NOT_STARTED = "not started in time"


@dataclass(frozen=True)
class StillHeld:
    """The reservation stays."""


@dataclass(frozen=True)
class Ended:
    """No task waits any more: each has started or is gone. Nothing needs to be recorded."""


@dataclass(frozen=True)
class GivenUp:
    """The decision is to be withdrawn or replaced.

    Attributes
    ----------
    reason
        Why.
    because_of: int64[M]
        Positions of the tasks that are the reason; of the victims, if those are.
    waiting: int64[K]
        Rows of the tasks that are still promised a node.
    alive: int64[V]
        Rows of the victims that still hold their room in the life that was to end.
    """

    reason: Ending
    because_of: Rows
    waiting: Rows
    alive: Rows


def fate(held: Reservation, snapshot: Snapshot, now: float) -> StillHeld | Ended | GivenUp:
    """What becomes of a reservation on a snapshot that contains its decision; ``now`` in seconds."""
    status = _of(held.tasks, snapshot.tasks.status, GONE)
    # A task that moves ends on its old node first, while the new one is promised.
    waits = np.isin(status, (PENDING, TERMINATING)) & (_of(held.tasks, snapshot.tasks.nominated, NONE) != NONE)
    lost, gone, done = status == PENDING, (status == GONE) | (status == FAILED), status == SUCCEEDED
    alive = still_holding(held.victims, held.incarnation, snapshot)

    def given_up(reason: Ending, because_of: Bools) -> GivenUp:
        return GivenUp(reason, np.flatnonzero(because_of), held.tasks[waits], held.victims[alive])

    if not waits.any():
        if lost.any():  # its node was lost, or the state was, and so the nomination is gone
            return given_up(Ending.NOMINATION_LOST, lost)
        # A task that is gone never started in the room; victims that were not told to end yet need not.
        return given_up(Ending.NEED_GONE, gone) if gone.any() and alive.any() else Ended()
    if (gone | done).any():
        return given_up(Ending.NEED_CHANGED, gone | done)
    if alive.any() and now >= held.deadline:
        return given_up(Ending.VICTIMS_OVERDUE, alive)
    return given_up(Ending.NOT_STARTED, waits) if now >= held.expires_at else StillHeld()


def still_holding(victims: Rows, incarnation: Longs, snapshot: Snapshot) -> Bools:
    """bool[V]: which victims still hold their room in the life that was to end; ``victims`` int64[V], NONE: unknown."""
    holds = np.isin(_of(victims, snapshot.tasks.status, GONE), (BOUND, RUNNING, TERMINATING))
    return np.asarray(holds & (_of(victims, snapshot.tasks.incarnation, NONE) == incarnation))


def _of(rows: Rows, column: NDArray[Any], unknown: int) -> NDArray[Any]:
    """A column at some rows; ``unknown`` where the row is NONE."""
    known = rows != NONE
    found = np.full(len(rows), unknown, column.dtype)
    found[known] = column[rows[known]]
    return found


def held_for(made: Statement, snapshot: Snapshot, policy: Policy) -> float:
    """For how many seconds room is held: as long as the first podgroup that says so waits, else as the policy says."""
    stated = snapshot.podgroups.wait_s[distinct(snapshot.tasks.podgroup[made.placed])]
    stated = stated[~np.isnan(stated)]
    return float(stated.min()) if len(stated) else policy.reservation_ttl_s
