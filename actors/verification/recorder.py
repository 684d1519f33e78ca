"""Records the history of the streams. Its consumer group keeps entries from being trimmed until they are recorded."""

from __future__ import annotations

import threading
from collections.abc import Callable

from actors.broker.bus import DECISIONS, EVENTS, Bus, Entry
from actors.protocol.envelopes import Message, decisions_in

GROUP = "history"
_BLOCK_MS = 100


class Recorder:
    """Reads both streams from their beginning.

    Parameters
    ----------
    heard
        Called with every decision as it arrives.

    Attributes
    ----------
    events, decisions
        Entries of the two streams so far, in order.
    """

    def __init__(self, bus: Bus, heard: Callable[[Message], object]) -> None:
        self._bus, self._heard = bus, heard
        self.events: list[Entry] = []
        self.decisions: list[Entry] = []
        for stream in (EVENTS, DECISIONS):
            bus.join(stream, GROUP)

    def turn(self, block_ms: int = _BLOCK_MS) -> bool:
        """Record new entries, waiting up to ``block_ms`` milliseconds for decisions; returns whether there were any."""
        decisions = self._bus.read(DECISIONS, GROUP, GROUP, count=500, block_ms=block_ms)
        events = self._bus.read(EVENTS, GROUP, GROUP, count=500)
        for stream, entries, kept in ((DECISIONS, decisions, self.decisions), (EVENTS, events, self.events)):
            kept.extend(entries)
            self._bus.acknowledge(stream, GROUP, [entry.id for entry in entries])
        for message in decisions_in(decisions):
            self._heard(message)
        return bool(decisions or events)

    def run(self, stop: threading.Event) -> None:
        """Record until told to stop, then record what is left."""
        while not stop.is_set():
            self.turn()
        while self.turn(block_ms=1):
            pass
