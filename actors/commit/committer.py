"""The committer: judges plans against the newest state, one after the other, and records each decision once.

It is the only writer. The broker decides whether it may write (`ledger`): Ray may run two committers for a while.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import takewhile

import msgpack

from actors.broker.bus import Bus
from actors.broker.ledger import Duplicate, Fenced, Lease, Ledger, Record, Recorded, RecordOutcome
from actors.columns.decision_message import decision
from actors.columns.name_directory import Directory
from actors.commit.claim_records import ClaimRecords
from actors.commit.decision_book import DecisionBook
from actors.commit.decision_metrics import count_decision, count_from_zero
from actors.commit.judged import Judged, Recordable, attributes_of, named, planned_on, sentence
from actors.commit.lease import LeaseKeeper
from actors.commit.newest_state import NewestState
from actors.commit.record_writer import RecordWriter
from actors.commit.replacement import Moment
from actors.commit.reservations import HeldReservation
from actors.contracts import CommitResult, Leadership, Offer
from actors.documents.safe_msgpack import unpacked
from actors.observability.telemetry import Telemetry
from actors.observability.traces import SPAN_JUDGE, SPAN_RECORD
from actors.protocol.bodies import JudgedOn, PlanCommitted
from actors.protocol.envelopes import Outgoing, pack_decision
from actors.protocol.outcomes import Fulfilled
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.overlay import outstanding
from pipeline.decision.reservation import Ended, GivenUp, fate, held_for
from pipeline.decision.verdict import Accepted
from pipeline.judge import judge
from pipeline.policy import Policy

log = logging.getLogger(__name__)

_NOT_OURS = "another service holds the lease"


@dataclass(frozen=True, slots=True)
class TimeLimits:
    """Time limits in seconds: of a lease, and of a victim's end. The policy says how long room is held."""

    lease_ttl_s: float = 5.0
    eviction_deadline_s: float = 120.0


class Committer:
    """One fleet's writer. Not for several threads at once.

    Parameters
    ----------
    ledger, bus
        Where decisions are recorded, and read after a start.
    naming
        Names of rows of the epoch of the newest snapshot.
    owner
        Name of the lease's owner; different for every process, and different after a restart.
    now_s
        The clock, in seconds since the epoch.
    elapsed_s
        A clock that is never set, in seconds, for the lease and for what is due after some time; None: ``now_s``.

    Attributes
    ----------
    lost_behind
        Number of the ledger's last record, if the newest snapshot contains later decisions: the broker lost them.
    """

    def __init__(
        self,
        ledger: Ledger,
        bus: Bus,
        policy: Policy,
        naming: Directory,
        telemetry: Telemetry,
        *,
        owner: str,
        now_s: Callable[[], float],
        elapsed_s: Callable[[], float] | None = None,
        limits: TimeLimits | None = None,
    ) -> None:
        self._bus, self._policy, self._naming, self._telemetry = bus, policy, naming, telemetry
        self._now_s, self._limits = now_s, limits if limits is not None else TimeLimits()
        self._lease = LeaseKeeper(ledger, owner, self._limits.lease_ttl_s, elapsed_s or now_s)
        self._state = NewestState()
        self._book = DecisionBook(self._limits.eviction_deadline_s, policy.reservation_ttl_s, now_s)
        self._writer = RecordWriter(ledger, self._lease, self._state, telemetry, elapsed_s or now_s)
        self._claims = ClaimRecords(self._book, self._writer, policy, naming)
        self.lost_behind: int | None = None
        count_from_zero(telemetry.figures)

    # -- the right to write ------------------------------------------------------------------------------------

    @property
    def leads(self) -> bool:
        """Whether it held the lease when it last asked."""
        return self._lease.held is not None

    @property
    def leadership(self) -> Leadership:
        """Which service leads."""
        return self._lease.leadership

    def lead(self) -> bool:
        """Take or renew the lease; whether it is ours. After taking it, the recorded decisions are read first."""
        leads = self._lease.keep(self._writer.recorded) or self._lease.take(self._begin)
        newest, recorded = self._state.snapshot, None
        if leads and newest is not None and newest.decided > self._writer.recorded:  # none else wrote
            recorded = self._writer.recorded
        self.lost_behind = recorded
        return leads

    def resign(self) -> None:
        """Give the lease back."""
        self._lease.resign()

    def _begin(self, lease: Lease) -> None:
        self._state.forget()
        self._writer.begin(lease)
        self._book.read_again(self._bus)

    # -- judging -----------------------------------------------------------------------------------------------

    def hear(self, snapshot: Snapshot) -> None:
        """Take a newer snapshot."""
        self.lost_behind = None
        self._state.hear(snapshot)

    def unlisted(self) -> None:
        """News was lost: nothing is judged, withdrawn or replaced before there is a snapshot again."""
        self._state.lose()

    def commit(self, offers: Sequence[Offer]) -> list[CommitResult]:
        """Judge and record plans in order, each on the decisions before it. A repeated call gives the same results."""
        answers: list[CommitResult] = []
        while len(answers) < len(offers):
            answers += self._answered(offers[len(answers) :])
        return answers

    def _answered(self, offers: Sequence[Offer]) -> list[CommitResult]:
        """Answers to the first offers: each is judged as if those before it were recorded; then all are recorded."""
        ready = self._ready()
        if isinstance(ready, str):
            return [CommitResult(offer.plan_id, "unready", ready) for offer in offers]
        lease, newest = ready
        known = list(takewhile(lambda offer: offer.plan.assumes.revision <= newest.revision, offers))
        if not known:
            late = "the news that the plan was made on has not arrived yet"
            return [CommitResult(offers[0].plan_id, "unready", late)]
        judged = [self._judged(offer, self._writer.recorded + at, newest, lease) for at, offer in enumerate(known, 1)]
        with ExitStack() as spans:
            packed = [self._packed(one, spans) for one in judged]
            outcomes = self._writer.record(lease, [one.record for one in packed])
            return [self._answer(one, outcome, lease) for one, outcome in zip(packed, outcomes, strict=False)]

    def _ready(self) -> tuple[Lease, Snapshot] | str:
        """The lease and the newest snapshot, or why nothing can be judged now."""
        lease, newest = self._lease.held, self._state.snapshot
        if lease is None:
            return _NOT_OURS
        unready = self._state.unready(self._book.last, self._writer.recorded)
        return (lease, newest) if unready is None and newest is not None else unready or ""

    def _judged(self, offer: Offer, number: int, newest: Snapshot, lease: Lease) -> Judged:
        """Judge an offer; later offers see it as the decision with this number that it is to become."""
        snapshot = self._state.over(newest)
        with self._telemetry.span(SPAN_JUDGE, offer.carrier, plan=offer.plan_id) as work:
            on = JudgedOn(epoch=newest.epoch, revision=newest.revision, at=self._now_s())
            judged = Judged(offer, judge(offer.plan, snapshot, self._policy, on.at), on, None, snapshot)
            work.set(verdict=judged.word, reason=judged.reason or None, **named(offer, snapshot, self._naming))
        if not isinstance(judged.verdict, Accepted):
            return judged
        made = judged.verdict.statement
        self._state.add(outstanding(made, snapshot, number, on.at))
        body = decision(
            offer.plan_id, lease.epoch, offer.plan, made, snapshot, self._naming,
            self._now_s() + held_for(made, snapshot, self._policy),
            planned_on=planned_on(offer, snapshot, self._naming), judged_on=on,
        )  # fmt: skip
        return replace(judged, body=body, refused_on=None)

    def _packed(self, judged: Judged, spans: ExitStack) -> Recordable:
        """The record of an offer; its span stays open until it is recorded."""
        offer, body = judged.offer, judged.body
        span = self._telemetry.span(SPAN_RECORD, offer.carrier, plan=offer.plan_id, verdict=judged.word)
        work = spans.enter_context(span)
        said: bytes = msgpack.packb([judged.word, judged.reason])
        if body is None:
            return Recordable(judged, Record(offer.plan_id, said), work)
        sent = pack_decision(Outgoing("plan_committed", offer.plan_id, 0, body), self._telemetry.carrier())
        return Recordable(judged, Record(offer.plan_id, said, sent), work)

    def _answer(self, packed: Recordable, outcome: RecordOutcome, lease: Lease) -> CommitResult:
        """The result for the caller; also updates what the committer holds."""
        judged, plan_id = packed.judged, packed.judged.offer.plan_id
        if not isinstance(outcome, Recorded):
            answer = self._not_recorded(plan_id, outcome)
        elif judged.body is None or not isinstance(judged.verdict, Accepted):
            answer = CommitResult(plan_id, judged.word, judged.reason)
            log.info("refused as %s: %s", judged.word, judged.reason, extra={"plan": plan_id})
            self._claims.refused(judged, lease, self._now_s())
        else:
            answer = CommitResult(plan_id, "accepted", "", judged.verdict.statement, outcome.revision)
            self._accepted(judged.body, outcome.revision)
            packed.work.set(**attributes_of(judged.body), dropped=judged.verdict.dropped)
        self._telemetry.figures.verdicts.add(1, {"verdict": answer.verdict, "reason": answer.reason})
        return answer

    def _accepted(self, body: PlanCommitted, number: int) -> None:
        log.info("%s", sentence(body), extra={"plan": body.plan_id, "podgroup": body.preemptor})
        self._book.committed(body, number)
        if body.preemptor is not None:
            self._book.claims.accepted(body.preemptor)
        count_decision(self._telemetry.figures, body)

    def _not_recorded(self, plan_id: str, outcome: Fenced | Duplicate) -> CommitResult:
        """The result of an offer that was not recorded now: the first verdict holds."""
        if isinstance(outcome, Fenced):
            self._writer.doubt(plan_id, outcome)
            return CommitResult(plan_id, "unready", _NOT_OURS)
        first, why = unpacked(outcome.first.verdict)
        sequence = outcome.first.revision if first == "accepted" else 0
        if sequence > self._book.last and not self._state.contains(sequence):
            self._writer.doubt(plan_id, outcome)  # an answer was lost, so the overlay lacks what was written
        return CommitResult(plan_id, str(first), str(why), None, sequence)

    # -- after the commit --------------------------------------------------------------------------------------

    def fulfilled(self) -> list[Fulfilled]:
        """Decisions without a task that still waits; each is told once, and once more after the lease was taken."""
        return [Fulfilled(plan_id=one.plan_id, decision=one.sequence, at=self._now_s()) for one in self._book.take()]

    @property
    def reservations(self) -> tuple[HeldReservation, ...]:
        """The reservations that are held, the oldest first."""
        return self._book.reservations

    def next_deadline(self) -> float | None:
        """When `tend` has something to do even without news, in seconds; None for never."""
        return self._book.next_deadline()

    def tend(self) -> list[str]:
        """End, keep, replace or withdraw each reservation; returns the replaced and withdrawn plans."""
        given_up: list[str] = []
        if isinstance(self._ready(), str):
            if not self.leads:  # another service's figures say this now
                self._telemetry.figures.reservations_held.drop()
                self._telemetry.figures.domains_reserved.drop()
            return given_up
        for held in self.reservations:
            ready = self._ready()
            if isinstance(ready, str):
                break
            lease, newest = ready
            if held.sequence > newest.decided:
                continue
            now = fate(held.in_rows(self._naming), newest, self._now_s())
            if isinstance(now, Ended):
                self._book.fulfil(held)
            elif isinstance(now, GivenUp) and self._give_up(held, now, lease, newest):
                given_up.append(held.plan_id)
        self._telemetry.figures.reservations_held.set(len(self.reservations))
        self._release_claims()
        self._telemetry.figures.domains_reserved.set(len(self._book.claims.active))
        self._writer.forget()
        return given_up

    def _give_up(self, held: HeldReservation, why: GivenUp, lease: Lease, newest: Snapshot) -> bool:
        """Withdraw or replace a decision; False if the lease was lost."""
        on = JudgedOn(epoch=newest.epoch, revision=newest.revision, at=self._now_s())
        moment = Moment(self._state.over(newest), self._policy, self._naming, lease.epoch, on)
        due = moment.instead(held, why, self._limits.eviction_deadline_s, self._book.overdue)
        message, reason = Outgoing(due.kind, due.body.plan_id, 0, due.body), held.sentence(why)
        outcome = self._writer.publish(lease, due.key, due.verdict, message, reason)
        if outcome is None:
            return False
        log.warning("plan %s given up, %s: %s", held.plan_id, due.kind.replace("_", " "), reason)
        self._state.add(outstanding(due.made, newest, outcome.revision, on.at, why.alive))
        figures = self._telemetry.figures
        figures.victims_overdue.add(len(due.body.overdue))
        if isinstance(due.body, PlanCommitted):
            self._book.committed(due.body, outcome.revision)
            count_decision(figures, due.body)
            figures.reservations_substituted.add(1)
        else:
            self._book.withdrawn(due.body)
            figures.reservations_expired.add(1)
        return True

    def _release_claims(self) -> None:
        """End the claims that are over."""
        ready = self._ready()
        if isinstance(ready, str):
            return
        for claim, why in self._book.claims.over(ready[1], self._naming, self._now_s()):
            if self._lease.held is not None:
                self._claims.release(self._lease.held, claim, why)
