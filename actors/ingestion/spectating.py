"""The live state for a command that only looks: the newest checkpoint and what came after it; nothing is written."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from actors.broker.bus import Bounds, Bus, DeadLetter, Entry
from actors.broker.memory_bus import MemoryBus
from actors.configuration.settings import Settings
from actors.ingestion.ingestor import Ingestor
from actors.ingestion.known.state import LiveState
from actors.ingestion.pace import Pace


class NotListed(Exception):
    """No state can be seen: the fleet has not said what it has, or part of it is lost."""


class Onlooker:
    """Follows the streams of a fleet, and leaves no trace in the broker."""

    def __init__(self, settings: Settings, bus: Bus, *, now_s: Callable[[], float]) -> None:
        self._settings, self._bus, self._now_s = settings, bus, now_s
        self._ingestor: Ingestor | None = None

    def state(self) -> LiveState:
        """The state as it stands now.

        Raises
        ------
        NotListed
            If the fleet has not listed what it has, or entries were lost since.
        """
        with _quiet():
            if self._ingestor is not None:
                self._ingestor.look_for_loss()
                self._ingestor.catch_up()
            if self._ingestor is None or self._ingestor.overtaken:  # the leader trims what it has read itself
                self._ingestor = self._begun()
        if not self._ingestor.state.listed:
            raise NotListed(f"fleet {self._settings.fleet}: no state can be seen before the fleet lists what it has")
        return self._ingestor.state

    def _begun(self) -> Ingestor:
        settings = self._settings
        made = Ingestor(
            _Spectator(self._bus), consumer="onlooker", now_s=self._now_s, pace=Pace(entries=settings.entries_per_read),
            limits=settings.limits.wire, most=settings.limits.state,
        )  # fmt: skip
        made.leads = False
        made.start()
        return made


@contextmanager
def _quiet() -> Iterator[None]:
    """Say nothing of what is read: it asks for no list and buries no letter, and the service has said the rest."""
    log = logging.getLogger("actors.ingestion")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(before)


class _Spectator(MemoryBus):
    """Reads the streams of another bus, and keeps to itself what a reader writes that must leave no trace."""

    def __init__(self, bus: Bus) -> None:
        super().__init__()
        self._bus = bus

    def bury(self, letters: Sequence[DeadLetter]) -> int:
        """Write no letter; none is new."""
        del letters
        return 0

    def follow(self, stream: str, after: str, *, count: int = 100, block_ms: int = 0) -> list[Entry]:
        """See the port."""
        return self._bus.follow(stream, after, count=count, block_ms=block_ms)

    def follow_any(self, after: Mapping[str, str], *, count: int = 100, block_ms: int = 0) -> Mapping[str, list[Entry]]:
        """See the port."""
        return self._bus.follow_any(after, count=count, block_ms=block_ms)

    def newest(self, stream: str, *, count: int = 1, before: str | None = None) -> list[Entry]:
        """See the port."""
        return self._bus.newest(stream, count=count, before=before)

    def bounds(self, stream: str) -> Bounds:
        """See the port."""
        return self._bus.bounds(stream)
