"""What every process of the pipeline has: its connections, telemetry, and loops whose failure ends the process."""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass

from actors.broker.address import BrokerAddress
from actors.broker.redis_bus import RedisBus
from actors.configuration.settings import Settings
from actors.health.broker_clock import BrokerClock, time_of
from actors.observability.exposition import Metric
from actors.observability.logs import Line, keep_log
from actors.observability.span_store import ship_to
from actors.observability.telemetry import Telemetry, counting_outages
from actors.observability.telemetry import start as start_telemetry
from actors.observability.traces import SpanRecord
from pipeline.policy import Policy

log = logging.getLogger(__name__)

_FAILED = 70
#: Seconds that a process that failed waits until its last lines are fetched.
_LAST_WORDS_S = 1.0


@dataclass(frozen=True, slots=True)
class Wiring:
    """What every actor needs to know.

    Attributes
    ----------
    owner
        Name of this service in the ledger.
    """

    settings: Settings
    broker: BrokerAddress
    policy: Policy
    owner: str


class RoleProcess:
    """What all actors have: a connection to the broker, telemetry, a log."""

    def __init__(self, wiring: Wiring, role: str) -> None:
        settings = wiring.settings
        self._log = keep_log(role, settings.log_level)
        self.wiring = wiring
        # Telemetry first, so that a broker that is away at the start is counted. No span ends before it is there.
        self.telemetry: Telemetry = start_telemetry(
            settings.telemetry, role, fleet=settings.fleet, ship=self._ship if settings.telemetry.spans_kept else None
        )
        # The service was let in before it started any role: what is refused here is a right taken away since.
        self.link = wiring.broker.connect(role, say=counting_outages(self.telemetry), waits_for_rights=True)
        self.bus = RedisBus(
            self.link, settings.fleet,
            dead_letters=settings.dead_letters_kept, unread_kept_s=settings.unread_kept_s, shadow=settings.shadow,
        )  # fmt: skip

    def _ship(self, spans: list[SpanRecord]) -> object:
        return ship_to(self.bus, self.wiring.settings.telemetry.spans_kept)(spans)

    def follow_clock(self) -> Callable[[], float]:
        """The time of day by the broker's clock, which is followed from now on; waits until it is known once."""
        clock = BrokerClock()
        clock.look(lambda: self.link.ask(time_of))
        self.begin("clock", lambda: clock.keep(lambda: self.link.once(time_of)))
        return clock.now_s

    def ready(self) -> int:
        """Its process id; it answers once the actor is there."""
        return os.getpid()

    def said(self, process: int, number: int) -> tuple[int, int, list[Line]]:
        """Id of our process, how many lines it logged, and those after the first ``number`` of ``process``."""
        return os.getpid(), *self._log.since(number if process == os.getpid() else 0)

    def host(self) -> str:
        """The machine on which the role runs."""
        return socket.gethostname()

    def figures(self) -> list[Metric]:
        """Every figure that was recorded in this process."""
        return self.telemetry.exposed.families()

    def flush(self) -> None:
        """Send the spans and figures that wait."""
        self.telemetry.flush()

    def begin(self, name: str, loop: Callable[[], None]) -> threading.Thread:
        """Run a loop in a thread. If it fails, the process ends, and Ray starts another one, which recovers."""

        def run() -> None:
            try:
                loop()
            except BaseException:
                log.exception("the loop %s failed; the process ends", name)
                self._log.await_asked(_LAST_WORDS_S)
                os._exit(_FAILED)

        thread = threading.Thread(target=run, name=name, daemon=True)
        thread.start()
        return thread
