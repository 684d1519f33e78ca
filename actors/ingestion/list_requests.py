"""Asking a fleet for a full list: once, until it answers or its time is over.

A request goes to the decisions stream, but not through the ledger: decision 22 says why.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from actors.broker.bus import DECISIONS, Bus
from actors.protocol.bodies import ResyncRequested
from actors.protocol.envelopes import Outgoing, pack_decision

log = logging.getLogger(__name__)

#: Seconds after which a fleet that was asked for a list is asked again.
LIST_WITHIN_S = 15.0


@dataclass(frozen=True, slots=True)
class _Owed:
    """A list that was asked for: the list known then, and when it was asked for or a part of it came (seconds)."""

    known: int
    asked_at: float


class ListRequests:
    """The list that a fleet owes, if any.

    Parameters
    ----------
    consumer
        Name of the reader that asks.
    elapsed_s
        A clock that is never set, in seconds.
    """

    def __init__(self, bus: Bus, consumer: str, elapsed_s: Callable[[], float]) -> None:
        self._bus, self._consumer, self._elapsed_s = bus, consumer, elapsed_s
        self._owed: _Owed | None = None

    @property
    def open(self) -> bool:
        """Whether a list is owed."""
        return self._owed is not None

    def ask(self, reason: str, known: int, read: str, lost_after: int | None = None) -> None:
        """Ask, unless a list is owed already.

        Parameters
        ----------
        known
            Revision of the newest list that was taken; -1 before there was one.
        read
            The last entry of events that was read.
        lost_after
            Revision of the newest list before the broker lost what was read, if it did.
        """
        if self._owed is not None:
            return
        log.warning("asking for a full list: %s", reason)
        said = ResyncRequested(reason=reason, read=read, lost_after=lost_after)
        asked = Outgoing("resync_requested", self._consumer, 0, said)
        self._bus.publish(DECISIONS, pack_decision(asked), insist=True)
        self.coming(known)

    def repeat(self, known: int, read: str, lost_after: int | None = None) -> None:
        """Ask again if time is over: the list or the request may be lost, and without it the state would stay wrong."""
        if self._owed is None or self._elapsed_s() < self._owed.asked_at + LIST_WITHIN_S:
            return
        self._owed = None
        self.ask(f"no list came within {LIST_WITHIN_S:g} s", known, read, lost_after)

    def coming(self, known: int) -> None:
        """A list is on its way: its time begins now."""
        self._owed = _Owed(known, self._elapsed_s())

    def answered(self, known: int, *, enough: bool) -> None:
        """The newest list is ``known`` now; if it is a new one and not ``enough``, another is still owed."""
        if self._owed is not None and known != self._owed.known:
            self._owed = None
            if not enough:
                self.coming(known)
