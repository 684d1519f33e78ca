"""The committer's book of decisions: reservations, claims, overdue victims. It is rebuilt from the stream."""

from __future__ import annotations

import logging
from collections.abc import Callable

from actors.broker.bus import DECISIONS, START, Bus
from actors.commit.claim_book import ClaimBook
from actors.commit.reservations import HeldReservation, placed_anew, reserved
from actors.protocol.bodies import DomainReleased, DomainReserved, Overdue, PlanCommitted, PlanWithdrawn
from actors.protocol.envelopes import Message, decode_decisions

log = logging.getLogger(__name__)

#: How many entries of the decisions are read at once.
_READ_AT_ONCE = 200


class DecisionBook:
    """Reservations, claims and overdue victims of decisions that have not ended.

    Parameters
    ----------
    deadline_s, ttl_s
        How long a victim may take to end, and how long room is held.
    now_s
        The clock, in seconds since the epoch.

    Attributes
    ----------
    overdue
        Victims that did not end, by name.
    last
        Number of the last decision before the lease was taken.
    """

    def __init__(self, deadline_s: float, ttl_s: float, now_s: Callable[[], float]) -> None:
        self._deadline_s, self._ttl_s, self._now_s = deadline_s, ttl_s, now_s
        self._reservations: dict[str, HeldReservation] = {}
        self._fulfilled: list[HeldReservation] = []
        self.claims = ClaimBook()
        self.overdue: dict[str, Overdue] = {}
        self.last = 0

    @property
    def reservations(self) -> tuple[HeldReservation, ...]:
        """The reservations that are held, the oldest first."""
        return tuple(self._reservations.values())

    def read_again(self, bus: Bus) -> None:
        """Forget everything and read the recorded decisions; one that cannot be read holds no room, and is logged."""
        self._reservations, self.claims, self.overdue, self.last = {}, ClaimBook(), {}, 0
        after = START
        while entries := bus.follow(DECISIONS, after, count=_READ_AT_ONCE):
            for entry in entries:
                for message in decode_decisions(entry):
                    if isinstance(message, Message):
                        self._remember(message)
                    else:
                        log.error("decision %s cannot be read, so it holds no room: %s", entry.id, message.reason)
            after = entries[-1].id

    def _remember(self, message: Message) -> None:
        self.last, body = max(self.last, message.revision), message.body
        if isinstance(body, PlanCommitted):
            self.committed(body, message.revision)
        elif isinstance(body, PlanWithdrawn):
            self.withdrawn(body)
        elif isinstance(body, DomainReserved | DomainReleased):
            self.claims.remember(body)

    def committed(self, made: PlanCommitted, sequence: int) -> None:
        """Hold the reservation of a decision, and what it leaves of older ones."""
        self._avoid(made.overdue)
        if made.replaces is not None:
            self.end(made.replaces)
        for older in self.reservations:
            left = placed_anew(older, made)
            if left is None and older.tasks_start(made):
                self.fulfil(older)
            elif left is None:
                self.end(older.plan_id)
            else:
                self._reservations[older.plan_id] = left
        held = reserved(made, sequence, self._deadline_s, self._ttl_s, self._now_s())
        if held is not None:
            self._reservations[held.plan_id] = held

    def withdrawn(self, made: PlanWithdrawn) -> None:
        """A decision was taken back."""
        self._avoid(made.overdue)
        self.end(made.plan_id)

    def end(self, plan_id: str) -> None:
        """Nothing is held for a decision any more."""
        self._reservations.pop(plan_id, None)

    def fulfil(self, held: HeldReservation) -> None:
        """No task of a decision waits any more."""
        self.end(held.plan_id)
        self._fulfilled.append(held)

    def take(self) -> list[HeldReservation]:
        """Those that were fulfilled since this was asked last."""
        taken, self._fulfilled = self._fulfilled, []
        return taken

    def _avoid(self, late: tuple[Overdue, ...]) -> None:
        """Let no plan count on victims that did not end, for some time."""
        now = self._now_s()
        active = {name: one for name, one in self.overdue.items() if one.avoided_until > now}
        self.overdue = active | {one.task: one for one in late}

    def next_deadline(self) -> float | None:
        """When the next reservation or claim runs out; seconds."""
        times = [time for held in self.reservations for time in (held.deadline, held.expires_at)]
        times += [claim.expires_at for claim in self.claims.active]
        return min((time for time in times if time > self._now_s()), default=None)
