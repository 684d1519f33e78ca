"""How long a fleet is without decisions after the leader is killed while a standby waits."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from actors.benchmarks.figures import Figure, NotAvailable, until
from actors.broker.address import BrokerAddress
from actors.broker.bus import DECISIONS, Entry
from actors.broker.embedded_broker import EmbeddedBroker
from actors.broker.redis_bus import RedisBus
from actors.configuration.settings import Settings, TelemetrySettings
from actors.fleets.background import Background
from actors.fleets.inventory import load_inventory
from actors.fleets.process import FleetLoop, FleetPace, simulated
from actors.observability.telemetry import start as start_telemetry
from actors.processes.service_process import ServiceProcess
from actors.protocol.bodies import PlanCommitted
from actors.protocol.envelopes import decisions_in

RUNS = 3
_FLEET, _SEED = "takeover", 7
#: Seconds between arrivals of gangs, so that one is always waiting. They come during a takeover only: gangs that pile
#: up make cycles longer, and what would be measured is the backlog.
_EVERY_S = 0.5
_LIMIT_S = 120.0


def takeover() -> Figure:
    """From SIGKILL of the leader and its children to the first decision of the standby, on the fleet of the demo."""
    spent: list[_Takeover] = []
    with EmbeddedBroker() as broker, tempfile.TemporaryDirectory(prefix="clearway-") as folder:
        address, services = BrokerAddress(broker.url), list[ServiceProcess]()

        def start() -> None:
            log = Path(folder) / f"{len(services)}.log"
            options = ("--redis-url", broker.url, "--fleet", _FLEET)
            services.append(ServiceProcess(log, *options, settings={"searchers": "1"}))

        with _arrivals(address) as fleet:
            bus = RedisBus(address.connect("bench"), _FLEET)
            try:
                start()
                for _ in range(RUNS):
                    start()
                    fleet.admit_gangs()
                    spent.append(_once(bus, services))
                    fleet.close_gates()
            finally:
                for one in services:
                    one.close()
                bus.close()
    whole = [one.decided_ms for one in spent]
    also = {
        "longest_ms": round(max(whole)), "lease_ms": round(float(np.median([one.lease_ms for one in spent]))),
        "longest_lease_ms": round(max(one.lease_ms for one in spent)), "lease_ttl_s": Settings().lease_ttl_s,
        "nodes": 1_523,
    }  # fmt: skip
    return Figure(float(round(np.median(whole))), None, len(spent), also)


@dataclass(frozen=True, slots=True)
class _Takeover:
    """Milliseconds from the end of the leader until the standby leads (by its log, to 0.1 s), and until it decides."""

    lease_ms: float
    decided_ms: float


def _once(bus: RedisBus, services: list[ServiceProcess]) -> _Takeover:
    """One takeover."""
    living = [one for one in services if one.process.poll() is None]
    until(lambda: {one.leads for one in living} == {True, False}, "one leads and one stands by", _LIMIT_S)
    until(lambda: bool(_epochs(bus.newest(DECISIONS, count=50))), "a decision", _LIMIT_S)
    leader, standby = sorted(living, key=lambda one: not one.leads)
    began = time.perf_counter()
    leader.kill()
    before = max(_epochs(bus.newest(DECISIONS, count=50)))
    after, deadline = bus.bounds(DECISIONS).last, time.monotonic() + _LIMIT_S
    lease_ms = 0.0
    while time.monotonic() < deadline:
        entries = bus.follow(DECISIONS, after, block_ms=100)
        now_ms = (time.perf_counter() - began) * 1e3
        if not lease_ms and standby.leads:
            lease_ms = now_ms
        if max(_epochs(entries), default=0) > before:
            return _Takeover(lease_ms or now_ms, now_ms)
        after = entries[-1].id if entries else after
    raise NotAvailable(f"the standby decided nothing within {_LIMIT_S:.0f} s")


def _epochs(entries: Sequence[Entry]) -> list[int]:
    """The epoch of the lease of each plan among the entries."""
    return [one.body.epoch for one in decisions_in(entries) if isinstance(one.body, PlanCommitted)]


@contextmanager
def _arrivals(address: BrokerAddress) -> Iterator[FleetLoop]:
    """The simulated fleet of the demo, at which gangs arrive while its gates are open."""
    inventory, bus = load_inventory(), RedisBus(address.connect("fleet"), _FLEET)
    telemetry = start_telemetry(TelemetrySettings(), "fleet", fleet=_FLEET)
    loop = FleetLoop(simulated(inventory, _SEED, time.time()), inventory, bus, telemetry, FleetPace(_EVERY_S, _SEED))
    running = Background(loop.run)
    loop.open()
    running.start()
    try:
        yield loop
    finally:
        running.end()
        bus.close()
        telemetry.stop()
