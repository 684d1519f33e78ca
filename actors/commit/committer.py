"""The committer: judges plans against the newest state, one after the other, and records each decision once.

It is the only writer. Whether it may write is the broker's to say (`ledger`): Ray may run two of it for a while.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgpack

from actors.broker.bus import DECISIONS, START, BrokerUnreachable, Bus
from actors.broker.ledger import Busy, Duplicate, Fenced, Lease, Ledger, Outcome, Record, Recorded
from actors.columns.decision_message import EVICTED_TO_REQUESTED, Naming, decision
from actors.commit.claim_book import Claims
from actors.commit.replacement import instead
from actors.commit.reservations import Ended, GivenUp, Reservation, fate, placed_anew, reserved
from actors.contracts import Answer, Offer, Standing
from actors.documents.safe_msgpack import unpacked
from actors.observability.telemetry import Telemetry
from actors.observability.traces import SPAN_JUDGE, SPAN_RECORD, Work
from actors.protocol.bodies import DomainReleased, DomainReserved, Overdue, PlanCommitted, PlanWithdrawn
from actors.protocol.envelopes import Message, Outgoing, decode_decisions, pack_decision
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.overlay import Overlay, Promise, outstanding, promise
from pipeline.decision.verdict import Accepted, Conflict, Stale
from pipeline.judge import judge
from pipeline.policy import Policy

log = logging.getLogger(__name__)

#: Verdicts of decisions that were trimmed are looked for so often, in seconds.
_FORGET_EVERY_S = 60.0


@dataclass(frozen=True, slots=True)
class Terms:
    """How long things may take, in seconds: a lease, the death of a victim. How long room is held is policy."""

    lease_ttl_s: float = 5.0
    eviction_deadline_s: float = 120.0


class Committer:
    """One fleet's writer. Not for several threads at once.

    Parameters
    ----------
    ledger, bus
        Where decisions are recorded, and read again after a start.
    naming
        What rows are called; of the epoch of the newest snapshot heard of.
    owner
        Who holds the lease: unlike any other process's, and unlike this one's before a restart.
    now_s
        The clock, in seconds since the epoch.
    """

    def __init__(
        self,
        ledger: Ledger,
        bus: Bus,
        policy: Policy,
        naming: Naming,
        telemetry: Telemetry,
        *,
        owner: str,
        now_s: Callable[[], float],
        terms: Terms | None = None,
    ) -> None:
        self._ledger, self._bus, self._policy, self._naming, self._telemetry = ledger, bus, policy, naming, telemetry
        self._owner, self._now_s, self._terms = owner, now_s, terms if terms is not None else Terms()
        self._lease: Lease | None = None
        self._newest: Snapshot | None = None
        self._promises: tuple[Promise, ...] = ()
        self._overlay = Overlay()
        self._reservations: dict[str, Reservation] = {}
        self._claims = Claims()
        self._overdue: dict[str, Overdue] = {}
        self._recorded_before = 0
        self._forget_at = self._leads_until = 0.0
        self._leader: Lease | Busy | None = None

    # -- the right to write ------------------------------------------------------------------------------------

    @property
    def leads(self) -> bool:
        """Whether it held the lease when it last asked."""
        return self._lease is not None

    @property
    def standing(self) -> Standing:
        """Who leads. Our lease is counted from when it was asked for, so that the broker does not end it earlier."""
        left_s = max(0.0, self._leads_until - self._now_s()) if self._lease is not None else 0.0
        if self._leader is None or (self._lease is not None and not left_s):  # nobody has told us lately
            return Standing()
        return Standing(left_s, self._leader.epoch, self._leader.owner)

    def lead(self) -> bool:
        """Take the lease or hold on to it; whether it is ours. Taking it begins with what others recorded."""
        ttl_ms, until = int(self._terms.lease_ttl_s * 1000), self._now_s() + self._terms.lease_ttl_s
        if self._lease is not None:
            if self._ledger.renew(self._lease, ttl_ms):
                self._leads_until = until
                return True
            self._lose("it ran out")
        taken = self._leader = self._ledger.acquire(self._owner, ttl_ms)
        if isinstance(taken, Busy):
            return False
        self._recover()
        self._lease, self._leads_until = taken, until
        log.info("lease taken, epoch %d", taken.epoch)
        return True

    def resign(self) -> None:
        """Give the lease back, so that the next one need not wait for it to run out."""
        if self._lease is not None:
            self._ledger.release(self._lease)
            self._lease = self._leader = None

    def _lose(self, why: str) -> None:
        log.warning("lease lost: %s", why)
        self._lease = self._leader = None
        self._promises = ()

    def _recover(self) -> None:
        """Reservations of all decisions that stand, and the number of the last one: nothing is judged before it."""
        self._reservations, self._promises, self._claims, self._overdue = {}, (), Claims(), {}
        self._recorded_before = 0
        after = START
        while entries := self._bus.follow(DECISIONS, after, count=200):
            for entry in entries:
                for message in decode_decisions(entry):
                    if isinstance(message, Message):
                        self._remember(message)
            after = entries[-1].id

    def _remember(self, message: Message) -> None:
        self._recorded_before = max(self._recorded_before, message.revision)
        if isinstance(message.body, PlanCommitted | PlanWithdrawn):
            self._avoid(message.body)
        if isinstance(message.body, PlanWithdrawn):
            self._reservations.pop(message.body.plan_id, None)
        elif isinstance(message.body, PlanCommitted):
            if message.body.replaces is not None:
                self._reservations.pop(message.body.replaces, None)
            self._reserve(message.body, message.revision)
        elif isinstance(message.body, DomainReserved | DomainReleased):
            self._claims.remember(message.body)

    def _avoid(self, body: PlanCommitted | PlanWithdrawn) -> None:
        """Victims that did not end: nobody is to count on them for a while."""
        standing = {name: one for name, one in self._overdue.items() if one.avoided_until > self._now_s()}
        self._overdue = standing | {one.task: one for one in body.overdue}

    def _reserve(self, made: PlanCommitted, sequence: int) -> None:
        """Hold what a decision promises, and of older ones what it did not place anew."""
        for older in self.reservations:
            left = placed_anew(older, made)
            if left is None:
                del self._reservations[older.plan_id]
            else:
                self._reservations[older.plan_id] = left
        deadline_s, ttl_s = self._terms.eviction_deadline_s, self._policy.reservation_ttl_s
        held = reserved(made, sequence, deadline_s, ttl_s, self._now_s())
        if held is not None:
            self._reservations[held.plan_id] = held

    # -- judging and recording ---------------------------------------------------------------------------------

    def hear(self, snapshot: Snapshot) -> None:
        """Take a newer snapshot; what it contains of our decisions needs no overlay any more."""
        self._newest = snapshot
        self._promises = outstanding(self._promises, snapshot)

    def commit(self, offers: Sequence[Offer]) -> list[Answer]:
        """Judge and record in the order given; each plan sees those before it. Asking again gives the same answers."""
        return [self._one(offer) for offer in offers]

    def _unready(self) -> str | None:
        """Why nothing can be judged now, or None."""
        if self._lease is None:
            return "the lease is somebody else's"
        if self._newest is None:
            return "no snapshot has arrived yet"
        if self._newest.decided < self._recorded_before:
            return "earlier decisions are not folded yet"
        if any(one.epoch != self._newest.epoch for one in self._promises):
            return "rows were renumbered and our own decisions are not folded yet"
        return None

    def _one(self, offer: Offer) -> Answer:
        unready = self._unready()
        if self._newest is not None and offer.plan.assumes.revision > self._newest.revision:
            unready = unready or "the news that the plan was made on has not arrived yet"
        if unready is not None or self._newest is None:
            return Answer(offer.plan_id, "unready", unready or "")
        snapshot = self._overlay.of(self._newest, self._promises)
        with self._telemetry.span(SPAN_JUDGE, offer.carrier, plan=offer.plan_id) as work:
            verdict = judge(offer.plan, snapshot, self._policy, self._now_s())
            word = type(verdict).__name__.lower()
            reason = verdict.reason if isinstance(verdict, Stale | Conflict) else ""
            work.set(verdict=word, reason=reason or None, action=offer.plan.statement.action)
        with self._telemetry.span(SPAN_RECORD, offer.carrier, plan=offer.plan_id, verdict=word) as work:
            if isinstance(verdict, Accepted):
                answer = self._accept(offer, verdict, snapshot, work)
            else:
                outcome = self._record(offer.plan_id, word, reason)
                answer = self._answered(offer.plan_id, outcome, word, reason)
                if isinstance(outcome, Recorded):
                    self._refused(offer, reason, snapshot)
        self._telemetry.figures.verdicts.add(1, {"verdict": answer.verdict, "reason": answer.reason})
        return answer

    def _refused(self, offer: Offer, reason: str, snapshot: Snapshot) -> None:
        """A gang that is refused too often in a row gets its domain for a while."""
        assert self._lease is not None
        claim = self._claims.refused(
            offer.plan, reason, snapshot, self._policy, self._naming, epoch=self._lease.epoch, now=self._now_s()
        )
        if claim is not None:
            self._claim(f"{offer.plan_id}:claim", "domain_reserved", claim)

    def _accept(self, offer: Offer, verdict: Accepted, snapshot: Snapshot, work: Work) -> Answer:
        assert self._lease is not None
        made, expires_at = verdict.statement, self._now_s() + self._policy.reservation_ttl_s
        body = decision(offer.plan_id, self._lease.epoch, offer.plan, made, snapshot, self._naming, expires_at)
        sent = Outgoing("plan_committed", offer.plan_id, 0, body)
        outcome = self._record(offer.plan_id, "accepted", "", pack_decision(sent, self._telemetry.carrier()))
        if not isinstance(outcome, Recorded):
            return self._answered(offer.plan_id, outcome, "accepted", "")
        self._promises = (*self._promises, promise(made, snapshot, outcome.revision, self._now_s()))
        self._reserve(body, outcome.revision)
        if body.preemptor is not None:
            self._claims.accepted(body.preemptor)
        self._count(body)
        work.set(
            preemptor=body.preemptor, queue=body.queue, domain=body.domain, action=body.action,
            victims=len(body.evictions), nominations=len(body.nominations), bindings=len(body.bindings),
            cost=", ".join(f"{name}={value}" for name, value in body.cost.items()), dropped=verdict.dropped,
        )  # fmt: skip
        return Answer(offer.plan_id, "accepted", "", made, outcome.revision)

    def _record(self, key: str, verdict: str, reason: str, entry: dict[str, bytes] | None = None) -> Outcome:
        assert self._lease is not None
        said: bytes = msgpack.packb([verdict, reason])
        try:
            return self._ledger.commit(Record(key, self._lease.epoch, said, entry or {}))
        except BrokerUnreachable:
            self._lose(f"nobody knows whether {key} was recorded")  # the stream does, and is read with the next lease
            raise

    def _answered(self, plan_id: str, outcome: Outcome, verdict: str, reason: str) -> Answer:
        """What the ledger's outcome means for who asked: the first verdict stands, whatever we think now."""
        if isinstance(outcome, Fenced):
            self._lose(f"epoch {outcome.epoch} was given out")
            return Answer(plan_id, "unready", "the lease is somebody else's")
        if isinstance(outcome, Duplicate):
            first, why = unpacked(outcome.first.verdict)
            number = outcome.first.revision if first == "accepted" else 0
            if number and not self._knows(number):  # the answer was lost, and what we wrote is in no overlay
                self._doubt(plan_id, outcome)
            return Answer(plan_id, str(first), str(why), None, number)
        return Answer(plan_id, verdict, reason)

    def _knows(self, number: int) -> bool:
        """Whether a decision of ours is laid over the newest snapshot, or in it."""
        folded = self._newest.decided if self._newest is not None else 0
        return number <= max(folded, self._recorded_before) or any(one.made.seq == number for one in self._promises)

    def _count(self, body: PlanCommitted) -> None:
        figures = self._telemetry.figures
        if body.evictions:
            figures.evictions.add(1, {"action": body.action})
            figures.evicted_tasks.add(len(body.evictions), {"action": body.action})
            figures.gangs_broken.add(int(body.cost.get("gangs_broken", 0)))
            figures.lost_work.add(float(body.cost.get("lost_work", 0)))
            for name, ratio in body.cost.items():
                if name.startswith(EVICTED_TO_REQUESTED):
                    figures.evicted_to_requested.set(ratio, {"resource": name.removeprefix(EVICTED_TO_REQUESTED)})
        if body.nominations or body.bindings:
            figures.gangs_placed.add(1)

    # -- after the commit --------------------------------------------------------------------------------------

    @property
    def reservations(self) -> tuple[Reservation, ...]:
        """Those that stand, the oldest first."""
        return tuple(self._reservations.values())

    def next_deadline(self) -> float | None:
        """When `tend` has something to do even if nothing new is heard; seconds."""
        times = [time for held in self._reservations.values() for time in (held.deadline, held.expires_at)]
        times += [claim.expires_at for claim in self._claims.standing]
        return min((time for time in times if time > self._now_s()), default=None)

    def tend(self) -> list[str]:
        """End, keep, replace or withdraw each reservation; returns the plans replaced and withdrawn."""
        if self._unready() is not None or self._newest is None:
            return []
        withdrawn = []
        for held in self.reservations:
            if self._lease is None:
                break
            if held.sequence > self._newest.decided:
                continue
            now = fate(held, self._newest, self._naming, self._now_s())
            if isinstance(now, Ended):
                del self._reservations[held.plan_id]
            elif isinstance(now, GivenUp) and self._give_up(held, now, self._newest):
                withdrawn.append(held.plan_id)
        self._telemetry.figures.reservations_held.set(len(self._reservations))
        self._release(self._newest)
        self._forget()
        return withdrawn

    def _forget(self) -> None:
        """Now and then, so that the ledger stays as bounded as its stream."""
        if self._lease is not None and self._now_s() >= self._forget_at:
            self._forget_at = self._now_s() + _FORGET_EVERY_S
            self._ledger.forget(self._lease)

    def _give_up(self, held: Reservation, why: GivenUp, newest: Snapshot) -> bool:
        """Withdraw a decision, or put another in its place; False if the lease was lost."""
        assert self._lease is not None
        due = instead(
            held, why, self._overlay.of(newest, self._promises), self._policy, self._naming,
            epoch=self._lease.epoch, now=self._now_s(), avoided_s=self._terms.eviction_deadline_s,
            overdue=self._overdue,
        )  # fmt: skip
        sent = pack_decision(Outgoing(due.kind, due.body.plan_id, 0, due.body), self._telemetry.carrier())
        outcome = self._record(due.key, due.verdict, why.reason, sent)
        if not isinstance(outcome, Recorded):
            self._doubt(due.key, outcome)
            return False
        log.warning("plan %s given up, %s: %s", held.plan_id, due.kind.replace("_", " "), why.reason)
        del self._reservations[held.plan_id]
        self._avoid(due.body)
        undone = promise(due.made, newest, outcome.revision, self._now_s(), why.spared)
        self._promises = (*self._promises, undone)
        figures = self._telemetry.figures
        figures.victims_overdue.add(len(due.body.overdue))
        if isinstance(due.body, PlanCommitted):
            self._reserve(due.body, outcome.revision)
            self._count(due.body)
            figures.reservations_substituted.add(1)
        else:
            figures.reservations_expired.add(1)
        return True

    def _release(self, newest: Snapshot) -> None:
        """End the claims that are over."""
        for claim, why in self._claims.over(newest, self._naming, self._now_s()):
            if self._lease is not None:
                body = DomainReleased(podgroup=claim.podgroup, epoch=self._lease.epoch, reason=why)
                self._claim(f"{claim.podgroup}:{claim.expires_at}:released", "domain_released", body)

    def _claim(self, key: str, kind: str, body: DomainReserved | DomainReleased) -> None:
        """Record that a domain is kept for a podgroup, or is not any more."""
        sent = pack_decision(Outgoing(kind, body.podgroup, 0, body), self._telemetry.carrier())
        outcome = self._record(key, kind, body.reason, sent)
        if not isinstance(outcome, Recorded):
            self._doubt(key, outcome)
            return
        log.warning("%s for %s: %s", kind.replace("_", " "), body.podgroup, body.reason)
        self._claims.remember(body)
        self._telemetry.figures.domains_reserved.set(len(self._claims.standing))

    def _doubt(self, key: str, outcome: Fenced | Duplicate) -> None:
        """We are not the writer, or wrote something that we do not know of: begin again with what is recorded."""
        epoch = outcome.epoch if isinstance(outcome, Fenced) else None
        self._lose(f"epoch {epoch} was given out" if epoch is not None else f"{key} was recorded already")
