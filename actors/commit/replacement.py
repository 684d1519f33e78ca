"""What is decided instead of a reservation that is given up: that it is withdrawn, or another plan in its place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from actors.columns.decision_message import Naming, decision
from actors.commit.reservations import GivenUp, Reservation, holding
from actors.protocol.bodies import Overdue, PlanCommitted, PlanWithdrawn
from pipeline.actions.substitution import substitute
from pipeline.cluster.arrays import Rows
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.overlay import released
from pipeline.decision.plan import Plan
from pipeline.decision.statement import Statement
from pipeline.policy import Policy, Purpose


@dataclass(frozen=True, slots=True)
class Instead:
    """The decision to record, under which key and verdict, and what it does beside sparing victims."""

    key: str
    verdict: str
    body: PlanCommitted | PlanWithdrawn
    made: Statement

    @property
    def kind(self) -> str:
        """Of the message."""
        return "plan_committed" if isinstance(self.body, PlanCommitted) else "plan_withdrawn"


def instead(
    held: Reservation,
    why: GivenUp,
    snapshot: Snapshot,
    policy: Policy,
    naming: Naming,
    *,
    epoch: int,
    now: float,
    avoided_s: float,
    overdue: Mapping[str, Overdue],
) -> Instead:
    """What becomes of it on the newest snapshot, all promises laid over it.

    Parameters
    ----------
    epoch
        Of the lease under which it is recorded.
    avoided_s
        How long nobody is to count on victims that did not end.
    overdue
        Those of earlier decisions, by name.
    """
    late = _late(why, snapshot, naming, now + avoided_s) if why.overdue else ()
    found = _another(held, why, snapshot, policy, now, _avoided(overdue, snapshot, naming, now)) if late else None
    if found is None:
        withdrawn = PlanWithdrawn(plan_id=held.plan_id, epoch=epoch, reason=why.reason, overdue=late)
        return Instead(f"{held.plan_id}:withdrawn", "withdrawn", withdrawn, released(why.tasks))
    key, expires_at = f"{held.plan_id}:instead", now + policy.reservation_ttl_s
    body = decision(key, epoch, found, found.statement, snapshot, naming, expires_at)
    body = body.model_copy(update={"replaces": held.plan_id, "overdue": late})
    return Instead(key, "accepted", body, found.statement)


def _late(why: GivenUp, snapshot: Snapshot, naming: Naming, until: float) -> tuple[Overdue, ...]:
    names, lives = naming.tasks(why.spared.tolist()), snapshot.tasks.incarnation[why.spared].tolist()
    return tuple(
        Overdue(task=task, incarnation=life, avoided_until=until) for task, life in zip(names, lives, strict=True)
    )


def _avoided(overdue: Mapping[str, Overdue], snapshot: Snapshot, naming: Naming, now: float) -> Rows:
    """Rows of victims that still hold their room in the life that was to end, and are not to be counted on yet."""
    lives = [(one.task, one.incarnation) for one in overdue.values() if one.avoided_until > now]
    return holding(lives, snapshot, naming)


def _another(
    held: Reservation, why: GivenUp, snapshot: Snapshot, policy: Policy, now: float, avoided: Rows
) -> Plan | None:
    if held.purpose not in (Purpose.PREEMPT, Purpose.RECLAIM):
        return None
    return substitute(snapshot, policy, now, Purpose(held.purpose), held.action, why.tasks, why.spared, avoided)
