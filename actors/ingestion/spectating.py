"""The live state for a command that only looks: the newest checkpoint and what came after it; nothing is written."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from actors.broker.bus import Bus
from actors.broker.spectator import Spectator
from actors.configuration.settings import Settings
from actors.ingestion.ingestor import Ingestor
from actors.ingestion.known.state import LiveState
from actors.ingestion.pace import Pace


class NotListed(Exception):
    """No state can be seen: the fleet has not said what it has, or part of it is lost."""


class Onlooker:
    """Follows the streams of a fleet, and leaves no trace in the broker."""

    def __init__(self, settings: Settings, bus: Bus, *, now_s: Callable[[], float]) -> None:
        self._fleet = settings.fleet
        self._ingestor = Ingestor(
            Spectator(bus), consumer="onlooker", now_s=now_s, pace=Pace(entries=settings.entries_per_read),
            limits=settings.limits.wire, most=settings.limits.state,
        )  # fmt: skip
        self._ingestor.leads = False
        self._started = False

    def state(self) -> LiveState:
        """The state as it stands now.

        Raises
        ------
        NotListed
            If the fleet has not listed what it has, or entries were lost since.
        """
        with _quiet():
            if not self._started:
                self._ingestor.start()
                self._started = True
            while self._ingestor.poll() or self._ingestor.behind:
                pass
        if not self._ingestor.state.listed:
            raise NotListed(f"fleet {self._fleet}: no state can be seen before the fleet lists what it has")
        return self._ingestor.state


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
