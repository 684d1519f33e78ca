"""A small fleet with its history, and questions to health pages, for services in processes of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
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
from actors.processes.service_process import ServiceProcess
from actors.processes.tree import descendants, runs
from actors.verification.audit import AuditReport, audited
from actors.verification.recorder import Recorder
from tests.support.assembly import gang, rack_cluster

ROOT = Path(__file__).parents[2]
LIMIT_S = 90.0
#: Seconds in which a service ends at one signal, wherever it stands. Alone it needs three at most; beside three other
#: test processes on two cores it may take half as long again, so the guard is wider.
SIGNAL_S = 15.0
#: Of folders that our processes make; behind it stands the id of the process.
_PREFIXES = ("cw-", "clearway-")


class SmallFleet:
    """Racks of four nodes full of small work, whoever decides for them, and the history of it."""

    def __init__(self, address: BrokerAddress, fleet: str, racks: int = 4) -> None:
        cluster = rack_cluster(racks)
        cluster["podgroups"] = [gang(f"low{at}", 1, 8, nodes=[f"n{at}"]) for at in range(4 * racks)]
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

    def submit(self, name: str, priority: int, tasks: int, gpu: int = 8) -> None:
        """A gang arrives, which needs room in one rack."""
        document: dict[str, Any] = gang(name, tasks, gpu, priority=priority, topology={"required": "rack"})
        self.loop._publish(self.loop.fleet.submit(document))

    def place(self, name: str, priority: int, tasks: int = 2, gpu: int = 8) -> float:
        """A gang arrives and comes to run; how many seconds it took."""
        self.submit(name, priority, tasks, gpu)
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


class Command:
    """A command of ours as a process of its own, with its standard output and its standard error in files."""

    def __init__(self, folder: Path, *arguments: str, **environment: str) -> None:
        self._out, self._err = folder / "out", folder / "err"
        known = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "actors", *arguments], stdout=out, stderr=err, cwd="/", env=known,
                start_new_session=True,
            )  # fmt: skip

    def said(self) -> str:
        """Its standard output so far."""
        return self._out.read_text()

    def complained(self) -> str:
        """Its standard error so far."""
        return self._err.read_text()

    def end(self) -> int:
        """Its exit code, after SIGTERM unless it has ended."""
        if self.process.poll() is None:
            self.process.terminate()
        return self.process.wait(LIMIT_S)


class Ending:
    """A process that is to end at one signal, with all that came from it."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process, self.pids = process, {process.pid}
        # It makes none while it is still being imported. A process that was killed may have had the same id.
        self._before = _folders("*")

    def by(self, number: int, *, group: bool = False) -> tuple[int, float]:
        """Its exit code after one signal, and after how many seconds it and all that came from it were gone."""
        pid = self.process.pid
        came = set(descendants(pid))
        self.pids |= came
        began = time.monotonic()
        (os.killpg if group else os.kill)(pid, signal.Signals(number))
        code = self.process.wait(LIMIT_S)
        until(lambda: not any(map(runs, came)), f"all that came from {pid} is gone", look_s=0.02)
        return code, time.monotonic() - began

    def folders(self) -> set[Path]:
        """Those that it and what came from it have made and that are there."""
        return {found for pid in self.pids for found in _folders(f"{pid}_*")} - self._before


def _folders(names: str) -> set[Path]:
    """Folders of ours; ``names`` is a pattern for what stands behind the prefix."""
    where = {Path("/tmp"), Path(tempfile.gettempdir())}
    return {found for folder in where for prefix in _PREFIXES for found in folder.glob(prefix + names)}


def until(holds: Callable[[], bool], what: str, look_s: float = 0.1) -> None:
    """Wait for what has no event of its own."""
    deadline = time.monotonic() + LIMIT_S
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(look_s)


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
