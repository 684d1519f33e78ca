"""The decision that is recorded when a reservation is given up: a withdrawal, or a plan that replaces it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from actors.columns.decision_message import decision
from actors.columns.name_directory import Directory
from actors.commit.reservations import HeldReservation
from actors.protocol.bodies import JudgedOn, Overdue, PlanCommitted, PlanWithdrawn
from pipeline.actions.substitution import substitute
from pipeline.cluster.arrays import NONE, Rows, frozen
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.attempt import Attempt
from pipeline.decision.plan import Plan
from pipeline.decision.reservation import Ending, GivenUp, held_for, still_holding
from pipeline.decision.statement import Statement, withdrawal
from pipeline.policy import Policy, Purpose


@dataclass(frozen=True, slots=True)
class Instead:
    """The decision to record, its key and verdict, and its statement beside sparing victims."""

    key: str
    verdict: str
    body: PlanCommitted | PlanWithdrawn
    made: Statement

    @property
    def kind(self) -> str:
        """The kind of the message."""
        return "plan_committed" if isinstance(self.body, PlanCommitted) else "plan_withdrawn"


@dataclass(frozen=True, slots=True)
class Moment:
    """The time and state at which a reservation is given up.

    Attributes
    ----------
    snapshot
        The newest, with all outstanding decisions folded in.
    epoch
        Epoch of the lease under which it is recorded.
    on
        The numbers of this state, and the time.
    """

    snapshot: Snapshot
    policy: Policy
    naming: Directory
    epoch: int
    on: JudgedOn

    def instead(self, held: HeldReservation, why: GivenUp, avoided_s: float, overdue: Mapping[str, Overdue]) -> Instead:
        """The decision to record instead of a reservation.

        Parameters
        ----------
        avoided_s
            Seconds for which victims that did not end are not chosen again.
        overdue
            Overdue victims of earlier decisions, by name.
        """
        late = self._late(why, self.on.at + avoided_s) if why.reason is Ending.VICTIMS_OVERDUE else ()
        found = self._another(held, why, overdue) if late else None
        if found is None:
            reason = held.sentence(why)
            withdrawn = PlanWithdrawn(
                plan_id=held.plan_id, epoch=self.epoch, reason=reason, overdue=late, judged_on=self.on
            )
            return Instead(f"{held.plan_id}:withdrawn", "withdrawn", withdrawn, withdrawal(why.waiting))
        key, expires_at = f"{held.plan_id}:instead", self.on.at + held_for(found.statement, self.snapshot, self.policy)
        body = decision(
            key, self.epoch, found, found.statement, self.snapshot, self.naming, expires_at, judged_on=self.on
        )
        body = body.model_copy(update={"replaces": held.plan_id, "overdue": late})
        return Instead(key, "accepted", body, found.statement)

    def _late(self, why: GivenUp, until: float) -> tuple[Overdue, ...]:
        names = self.naming.tasks(why.alive.tolist())
        incarnations = self.snapshot.tasks.incarnation[why.alive].tolist()
        return tuple(
            Overdue(task=task, incarnation=incarnation, avoided_until=until)
            for task, incarnation in zip(names, incarnations, strict=True)
        )

    def _another(self, held: HeldReservation, why: GivenUp, overdue: Mapping[str, Overdue]) -> Plan | None:
        if held.preemptor is None:
            return None
        (preemptor,) = self.naming.podgroup_rows([held.preemptor]).tolist()
        if preemptor == NONE:
            return None
        made = Attempt(
            self.snapshot, self.policy, Purpose(held.purpose), (preemptor,), None, self.on.at, held.action
        )  # fmt: skip
        return substitute(made, why.waiting, why.alive, self._avoided(overdue))

    def _avoided(self, overdue: Mapping[str, Overdue]) -> Rows:
        """Rows of overdue victims that still hold their room and may not be counted on yet."""
        avoided = [one for one in overdue.values() if one.avoided_until > self.on.at]
        rows = self.naming.task_rows([one.task for one in avoided])
        incarnation = frozen([one.incarnation for one in avoided], np.int64)
        return rows[still_holding(rows, incarnation, self.snapshot)]
