"""The simulated fleet at a broker: a loop with a clock, in a thread of the demo or in a process of its own."""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from actors.broker.address import ALONE, BrokerAddress, broker_for
from actors.broker.bus import DECISIONS, EVENTS, START, Bus, Entry, has_gap, id_order
from actors.broker.redis_bus import RedisBus
from actors.broker.retry import ToldToStop, until_stopped
from actors.configuration.settings import Settings
from actors.documents.safe_msgpack import WIRE_LIMITS, WireLimits, whole_number
from actors.fleets.inventory import Inventory, load_inventory
from actors.fleets.simulated import SimulatedFleet
from actors.fleets.workload import arriving, initial_load, runtimes_s
from actors.ingestion.group_notes import GROUP as INGESTORS
from actors.observability.logs import write_log
from actors.observability.telemetry import Telemetry, counting_outages
from actors.observability.telemetry import start as start_telemetry
from actors.processes.unique_name import unique_name
from actors.protocol.bodies import ResyncRequested
from actors.protocol.envelopes import Message, Outgoing, decode_decisions, pack

log = logging.getLogger(__name__)

GROUP = "fleet"
_LONGEST_BLOCK_MS = 250
#: Decisions that are carried out before they are acknowledged together.
_AT_ONCE = 50
#: Seconds that a paused fleet waits before it looks again.
_LOOK_AGAIN_S = 0.05
#: A fleet that was away for this many seconds looks whether decisions were trimmed meanwhile.
_AWAY_S = 60.0
#: Bytes that the number of an entry takes at most.
_NUMBER_BYTES = 20


@dataclass(frozen=True, slots=True)
class FleetPace:
    """How much a fleet publishes, and how often.

    Attributes
    ----------
    every_s
        Seconds of this process between two arrivals of gangs; 0: none arrive.
    seed
        Seed of the running times of gangs.
    limits
        Limits of the entries that it sends.
    window_bytes
        Number of unread bytes above which it pauses; a full list is sent whole all the same.
    """

    every_s: float
    seed: int = 0
    limits: WireLimits = WIRE_LIMITS
    window_bytes: int = 64 << 20


class FleetLoop:
    """Reads decisions, lets the fleet carry them out, lets gangs arrive, and publishes events.

    Parameters
    ----------
    pause
        Called with the seconds to wait.
    writer
        Names this process in its entries, unlike any other; None: such a name is made.
    """

    def __init__(
        self,
        fleet: SimulatedFleet,
        inventory: Inventory,
        bus: Bus,
        telemetry: Telemetry,
        pace: FleetPace,
        *,
        now_s: Callable[[], float] = time.time,
        pause: Callable[[float], object] = time.sleep,
        writer: str | None = None,
    ) -> None:
        self._writer = (writer or unique_name()).encode()
        self._window_bytes, self._pause = pace.window_bytes, pause
        self._unread: deque[tuple[tuple[int, int], int]] = deque()
        self._unread_bytes = 0
        self._turned_at = now_s()
        entry_bytes = pace.limits.entry_bytes - _NUMBER_BYTES - len(self._writer)
        self._limits, self._sent = replace(pace.limits, entry_bytes=entry_bytes), 0
        self.fleet, self._inventory, self._bus, self._telemetry = fleet, inventory, bus, telemetry
        self._every_s, self._now_s, self._runs_s = pace.every_s, now_s, runtimes_s(inventory, pace.seed)
        self._next_arrival: float | None = None
        self._listed = START
        self._losing: deque[str] = deque()
        self.arrived = 0
        self._consumer = f"fleet-{int(now_s() * 1000)}"

    def open(self) -> None:
        """Publish a full list, and carry out decisions from then on. Entry numbers continue from an earlier start.

        Decisions that an earlier start received and did not acknowledge are carried out next: what a process says
        before it has listed is refused.
        """
        self._bus.join(DECISIONS, GROUP)
        self._sent = max((whole_number(said) or 0 for said in self._counted()), default=0)
        self._list()
        while left := self._bus.recover(DECISIONS, GROUP, self._consumer, idle_ms=0, count=_AT_ONCE):
            self._obey(left)

    def admit_gangs(self) -> None:
        """Let gangs arrive from now on."""
        self._next_arrival = self._now_s() if self._every_s > 0 else None

    def close_gates(self) -> None:
        """Let no more gangs arrive."""
        self._next_arrival = None

    def lose(self, node: str) -> None:
        """Lose a node at the next turn; any thread may call this."""
        self._losing.append(node)

    def turn(self, block_ms: int = _LONGEST_BLOCK_MS) -> None:
        """One round: due events, arrivals, decisions (waits ``block_ms`` for them); a pause if too much is unread."""
        if self._unread_bytes > self._window_bytes and not self._caught_up():
            self._pause(_LOOK_AGAIN_S)
            return
        now, away_s = self._now_s(), self._now_s() - self._turned_at
        self._turned_at = now
        if away_s > _AWAY_S and has_gap(self._bus.bounds(DECISIONS), self._bus.reached(DECISIONS, GROUP)):
            log.warning("decisions were trimmed while the fleet was away for %.0f s: listing", away_s)
            self._list()
        while self._losing:
            self._publish(self.fleet.fail_node(self._losing.popleft()))
        self._publish(self.fleet.step(now))
        if self._next_arrival is not None and now >= self._next_arrival:
            self._next_arrival += self._every_s
            self._arrive(now)
        due = [at for at in (self.fleet.next_at(), self._next_arrival) if at is not None]
        wait_ms = min([block_ms, *(int((at - now) * 1000) for at in due)])
        # Entries that were handed out and never arrived, because the broker died or was slow, are pending: these first.
        while left := self._bus.read(DECISIONS, GROUP, self._consumer, count=_AT_ONCE, pending=True):
            self._obey(left)
        self._obey(self._bus.read(DECISIONS, GROUP, self._consumer, count=_AT_ONCE, block_ms=max(1, wait_ms)))

    def _obey(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            for message in decode_decisions(entry):
                if isinstance(message, Message):
                    self._answer(message)
                else:
                    log.warning("decision refused: %s", message.reason)
        if entries:
            self._bus.acknowledge(DECISIONS, GROUP, [entry.id for entry in entries])

    def _answer(self, message: Message) -> None:
        if isinstance(message.body, ResyncRequested):
            if id_order(message.body.read) >= id_order(self._listed) or not self._on_its_way():
                self._list()
            return
        with self._telemetry.span("obey", message.carrier, kind=message.kind):
            self._publish(self.fleet.obey(message, self._now_s()))

    def run(self, stop: threading.Event) -> None:
        """Turn until told to stop."""
        while not stop.is_set():
            self.turn()

    def _arrive(self, now: float) -> None:
        document = arriving(self._inventory, now, self.arrived)
        self.arrived += 1
        with self._telemetry.span("arrive", podgroup=str(document["name"]), tasks=len(document["tasks"])):
            self._publish(self.fleet.submit(document, next(self._runs_s)))

    def _list(self) -> None:
        self._listed = self._publish(self.fleet.listing(f"{self._consumer}-{self.fleet.revision}"))

    def _on_its_way(self) -> bool:
        """Whether the list that was sent last is in the stream; otherwise the broker has lost it."""
        at_ms, number = id_order(self._listed)
        return any(entry.id == self._listed for entry in self._bus.newest(EVENTS, before=f"{at_ms}-{number + 1}"))

    def _counted(self) -> list[bytes]:
        """The number of the last entry of an earlier start; empty if there is none."""
        return [entry.fields.get("sequence", b"") for entry in self._bus.newest(EVENTS)]

    def _publish(self, events: Sequence[Outgoing]) -> str:
        """Send events in numbered entries, so that a lost one is noticed; the id of the last entry."""
        last = START
        for entry in pack(events, self._telemetry.carrier(), self._limits):
            self._sent += 1
            numbered = {**entry, "sequence": str(self._sent).encode(), "writer": self._writer}
            last = self._bus.publish(EVENTS, numbered, insist=True)
            size = sum(map(len, entry.values()))
            self._unread.append((id_order(last), size))
            self._unread_bytes += size
            if self._unread_bytes > self._window_bytes:
                self._caught_up()
        return last

    def _caught_up(self) -> bool:
        """Drop entries that were read since; whether the unread rest is small enough."""
        reached = id_order(self._bus.reached(EVENTS, INGESTORS))
        while self._unread and self._unread[0][0] <= reached:
            self._unread_bytes -= self._unread.popleft()[1]
        return self._unread_bytes <= self._window_bytes


def simulated(inventory: Inventory, seed: int, now: float) -> SimulatedFleet:
    """A fleet with its initial load. Revisions begin at the clock, so they exceed those of an earlier start."""
    made = inventory.synthetic
    cluster = {**inventory.cluster(), "podgroups": initial_load(inventory, seed, now)}
    return SimulatedFleet(cluster, seed=seed, grace_s=made.load.grace_s, speed=made.speed, revision=int(now * 1000))


def run(settings: Settings, *, seed: int, every_s: float, inventory: Path | None) -> int:
    """Run ``clearway fleet`` until SIGTERM or SIGINT; the exit code, 0."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    write_log("fleet", settings.fleet, settings.log_format, settings.log_level)
    loaded = load_inventory(inventory)
    if settings.redis_url is None:
        log.warning(ALONE)
    with broker_for(settings) as address:
        try:
            _serve(settings, address, loaded, FleetPace(every_s, seed, settings.outgoing), stop)
        except ToldToStop:
            log.info("fleet %s: told to stop while the broker was away", settings.fleet)
    return 0


def _serve(
    settings: Settings, address: BrokerAddress, inventory: Inventory, pace: FleetPace, stop: threading.Event
) -> None:
    telemetry = start_telemetry(settings.telemetry, "fleet", fleet=settings.fleet)
    link = address.connect("fleet", functions=False, say=counting_outages(telemetry), pause=until_stopped(stop))
    bus = RedisBus(link, settings.fleet)
    try:
        loop = FleetLoop(simulated(inventory, pace.seed, time.time()), inventory, bus, telemetry, pace)
        loop.open()
        link.waits_for_rights = True  # what it is refused now was taken away since
        log.info("fleet %s: %d nodes listed", settings.fleet, len(loop.fleet.nodes))
        loop.admit_gangs()
        loop.run(stop)
    finally:
        bus.close()
        telemetry.stop()
