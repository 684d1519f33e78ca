"""An offer on its way through the committer: judged, then packed to be recorded with the others of its cycle."""

from __future__ import annotations

from dataclasses import dataclass

from actors.broker.ledger import Record
from actors.columns.decision_message import whose
from actors.columns.name_directory import Directory
from actors.contracts import Offer
from actors.observability.traces import Work
from actors.protocol.bodies import JudgedOn, PlanCommitted, PlannedOn
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.verdict import Conflict, Stale, Verdict

#: No decision names more podgroups that its cycle left out.
_PAUSED = 256


@dataclass(frozen=True, slots=True)
class Judged:
    """An offer, and its verdict on a state with the numbers ``on``.

    ``body`` is the decision to be recorded if it is accepted. What a refusal asks of the state comes later, so only
    then is the snapshot kept: each decision makes another one, and a cycle may have many.
    """

    offer: Offer
    verdict: Verdict
    on: JudgedOn
    body: PlanCommitted | None
    refused_on: Snapshot | None

    @property
    def word(self) -> str:
        """``accepted``, ``stale`` or ``conflict``."""
        return type(self.verdict).__name__.lower()

    @property
    def reason(self) -> str:
        """Why the offer is refused; empty if it is accepted."""
        return self.verdict.reason if isinstance(self.verdict, Stale | Conflict) else ""


@dataclass(frozen=True, slots=True)
class Recordable:
    """The record of an offer, and the span in which it is recorded."""

    judged: Judged
    record: Record
    work: Work


def named(offer: Offer, snapshot: Snapshot, naming: Directory) -> dict[str, str | None]:
    """Whose plan an offer is, as attributes of a span; without names if its rows are those of another epoch."""
    made = offer.plan.statement
    known = offer.plan.assumes.epoch == snapshot.epoch
    preemptor, queue = whose(made, snapshot, naming) if known else (None, None)
    return {"action": made.action, "preemptor": preemptor, "queue": queue}


def planned_on(offer: Offer, snapshot: Snapshot, naming: Directory) -> PlannedOn:
    """What an accepted plan follows from. What paused is not named if it is too much, or newer than our own state."""
    assumes, began = offer.plan.assumes, offer.began
    told = len(began.paused) <= _PAUSED and max(began.paused, default=0) < len(snapshot.podgroups)
    paused = tuple(sorted(naming.podgroups(list(began.paused)))) if told else None
    return PlannedOn(epoch=assumes.epoch, revision=assumes.revision, at=began.now, paused=paused)


def sentence(body: PlanCommitted) -> str:
    """A decision as a line of the log."""
    done = {
        "evicts": len(body.evictions), "nominates": len(body.promised), "takes back": len(body.taken_back),
        "binds": len(body.bindings),
    }  # fmt: skip
    acts = ", ".join(f"{word} {count}" for word, count in done.items() if count) or "does nothing"
    preemptor = f" for {body.preemptor}" if body.preemptor else ""
    where = f" in {body.domain}" if body.domain else ""
    return f"{body.action}{preemptor}: {acts}{where}"


def attributes_of(body: PlanCommitted) -> dict[str, str | int | None]:
    """A decision as attributes of a span."""
    return {
        "preemptor": body.preemptor, "queue": body.queue, "domain": body.domain, "action": body.action,
        "victims": len(body.evictions), "nominations": len(body.promised), "bindings": len(body.bindings),
        "cost": ", ".join(f"{name}={value}" for name, value in body.cost.items()),
    }  # fmt: skip
