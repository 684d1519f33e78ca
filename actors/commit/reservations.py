"""Reservations of decisions that have not ended, by name, so that they outlast a renumbering of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from actors.columns.name_directory import Directory
from actors.protocol.bodies import PlanCommitted
from pipeline.cluster.arrays import frozen
from pipeline.decision import reservation
from pipeline.decision.reservation import Ending, GivenUp

#: How many names a reason lists.
_NAMED = 3


@dataclass(frozen=True, slots=True)
class HeldReservation:
    """The reservation of one decision, by name.

    Attributes
    ----------
    sequence
        Number of the decision in the ledger.
    tasks
        Nominated tasks.
    victims
        Tasks that must end, each with its incarnation.
    purpose, action, preemptor
        Those of the decision, for a decision that replaces it; None if it serves no podgroup.
    expires_at, deadline
        When the room is given up, and by when victims should have ended, in seconds.
    """

    plan_id: str
    sequence: int
    tasks: tuple[str, ...]
    victims: tuple[tuple[str, int], ...]
    purpose: str
    action: str
    preemptor: str | None
    expires_at: float
    deadline: float

    def in_rows(self, naming: Directory) -> reservation.Reservation:
        """The reservation in rows of the epoch of ``naming``."""
        return reservation.Reservation(
            naming.task_rows(self.tasks),
            naming.task_rows([name for name, _ in self.victims]),
            frozen([incarnation for _, incarnation in self.victims], np.int64),
            self.expires_at,
            self.deadline,
        )

    def tasks_start(self, made: PlanCommitted) -> bool:
        """Whether a later decision starts every task that still waits for its promise."""
        return set(self.tasks) <= {start.task for start in made.bindings}

    def sentence(self, why: GivenUp) -> str:
        """Why the reservation is given up, as a sentence with names."""
        victims = [name for name, _ in self.victims]
        names = victims if why.reason is Ending.VICTIMS_OVERDUE else self.tasks
        named = _some([names[at] for at in why.because_of.tolist()])
        return f"{why.reason.value}: {named}{' no longer waits' if why.reason is Ending.NEED_CHANGED else ''}"


def reserved(made: PlanCommitted, sequence: int, deadline_s: float, ttl_s: float, now: float) -> HeldReservation | None:
    """The reservation of a decision; None if the decision nominates no task."""
    tasks = tuple(one.task for one in made.promised)
    if not tasks:
        return None
    victims = tuple((one.task, one.incarnation) for one in made.evictions)
    expires_at = made.expires_at if made.expires_at is not None else now + ttl_s
    # Room may be held for longer or less than victims may take. Old decisions do not say when they were made.
    made_at = made.judged_on.at if made.judged_on is not None else expires_at - ttl_s
    return HeldReservation(
        made.plan_id, sequence, tasks, victims, made.purpose, made.action, made.preemptor, expires_at,
        made_at + deadline_s,
    )  # fmt: skip


def placed_anew(held: HeldReservation, made: PlanCommitted) -> HeldReservation | None:
    """The rest of a reservation after a later decision has placed some of its tasks; None if nothing is left."""
    anew = {one.task for one in made.nominations} | {start.task for start in made.bindings}
    left = tuple(task for task in held.tasks if task not in anew)
    return replace(held, tasks=left) if left else None


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
