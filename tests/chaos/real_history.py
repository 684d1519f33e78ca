"""Keeps the streams' whole history while it happens, so that the pipeline may trim them as it always does.

Entries are read by position and then taken in the group's name: a reply that is lost costs nothing, and until an entry
is kept here the group holds it back from trimming.
"""

from __future__ import annotations

import threading

from actors.broker.bus import DECISIONS, EVENTS, START, Bus, Entry, id_order

GROUP = "history"
_BLOCK_MS = 50
_AT_ONCE = 500
_TURN_S = 0.002


class History:
    """Both streams from their beginning. `keep` and what reads it may be called from any thread."""

    def __init__(self, bus: Bus) -> None:
        self._bus, self._lock = bus, threading.Lock()
        self._kept: dict[str, list[Entry]] = {EVENTS: [], DECISIONS: []}
        for stream in self._kept:
            bus.join(stream, GROUP)

    def keep(self, block_ms: int = 0) -> None:
        """Keep what has come."""
        with self._lock:
            for stream, kept in self._kept.items():
                after = kept[-1].id if kept else START
                came = self._bus.follow(stream, after, count=_AT_ONCE, block_ms=block_ms if stream == DECISIONS else 0)
                kept.extend(came)
                if came:
                    self._bus.read(stream, GROUP, GROUP, count=len(came))
                    taken = self._bus.read(stream, GROUP, GROUP, count=2 * _AT_ONCE, pending=True)
                    done = id_order(kept[-1].id)
                    self._bus.acknowledge(stream, GROUP, [one.id for one in taken if id_order(one.id) <= done])

    def run(self, stop: threading.Event) -> None:
        """Keep until told to stop."""
        while not stop.wait(_TURN_S):  # in which the lock is somebody else's to take
            self.keep(_BLOCK_MS)

    def changed(self, stream: str) -> list[str]:
        """Ids of entries that are neither in the stream as they were nor trimmed."""
        there = {entry.id: entry.fields for entry in self._bus.follow(stream, START, count=1_000_000)}
        first = id_order(self._bus.bounds(stream).first)
        kept = [entry for entry in self.of(stream) if id_order(entry.id) >= first]
        return [entry.id for entry in kept if there.get(entry.id) != entry.fields]

    def of(self, stream: str) -> list[Entry]:
        """Everything that ever was in a stream."""
        self.keep()
        with self._lock:
            return list(self._kept[stream])
