"""A small fleet with its history, and questions to health pages, for services in processes of their own."""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from actors.broker.address import BrokerAddress
from actors.broker.redis_bus import RedisBus
from actors.configuration.settings import TelemetrySettings
from actors.fleets.inventory import load_inventory
from actors.fleets.process import FleetLoop, FleetPace
from actors.fleets.simulated import SimulatedFleet
from actors.observability.telemetry import start as start_telemetry
from actors.ray_runtime.service_process import ServiceProcess
from actors.verification.audit import AuditReport, audited
from actors.verification.recorder import Recorder
from tests.support.assembly import gang, rack_cluster

ROOT = Path(__file__).parents[2]
LIMIT_S = 90.0


class SmallFleet:
    """Sixteen nodes full of small work, whoever decides for them, and the history of it."""

    def __init__(self, address: BrokerAddress, fleet: str) -> None:
        cluster = rack_cluster(racks=4)
        cluster["podgroups"] = [gang(f"low{at}", 1, 8, nodes=[f"n{at}"]) for at in range(16)]
        self.bus = RedisBus(address.connect("test"), fleet)
        telemetry = start_telemetry(TelemetrySettings(), "fleet")
        simulated = SimulatedFleet(cluster, seed=1, grace_s=(0.2, 0.2))
        self.loop = FleetLoop(
            simulated, load_inventory(), RedisBus(address.connect("fleet"), fleet), telemetry, FleetPace(every_s=0.0)
        )
        self.recorder = Recorder(RedisBus(address.connect("history"), fleet), lambda _: None)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self.recorder.run, args=(self._stop,), daemon=True)
        self.loop.open()
        self._thread.start()

    def until(self, holds: Callable[[], bool], what: str, limit_s: float = LIMIT_S) -> float:
        """Let the fleet turn until something holds; how many seconds it took."""
        began = time.monotonic()
        while not holds():
            assert time.monotonic() < began + limit_s, f"it did not come to pass in time: {what}"
            self.loop.turn(block_ms=50)
        return time.monotonic() - began

    def place(self, name: str, priority: int, tasks: int = 2, gpu: int = 8) -> float:
        """A gang arrives and comes to run; how many seconds it took."""
        document: dict[str, Any] = gang(name, tasks, gpu, priority=priority, topology={"required": "rack"})
        self.loop._publish(self.loop.fleet.submit(document))
        known = self.loop.fleet._tasks
        names = [f"default/{name}-{at}" for at in range(tasks)]
        return self.until(lambda: all(known[one].status == "Running" for one in names), f"{name} runs")

    def close(self) -> None:
        """No more history."""
        self._stop.set()
        self._thread.join(LIMIT_S)

    def report(self) -> AuditReport:
        """What the history came to. It is kept here, so that no trimming can hide any of it."""
        self.close()
        return audited(self.recorder.events, self.recorder.decisions)


def until(holds: Callable[[], bool], what: str) -> None:
    """Wait for what has no event of its own."""
    deadline = time.monotonic() + LIMIT_S
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


def asked(url: str) -> tuple[int, str]:
    """Status and text of a page."""
    try:
        with urllib.request.urlopen(url, timeout=5.0) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refusal:
        return refusal.code, refusal.read().decode()


def url_of(service: ServiceProcess) -> str:
    """Where a service's health is served, once its log says so."""
    until(lambda: "health at " in service.said(), "the log names the port")
    return service.said().split("health at ")[1].split("/ready")[0]


def ready(url: str) -> dict[str, Any]:
    """What a service says of itself."""
    said: dict[str, Any] = json.loads(asked(f"{url}/ready")[1])
    return said
