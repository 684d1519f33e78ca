"""`clearway run` as processes that a test may freeze and kill whole, and a small fleet with its history."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from actors.audit import Report, audited
from actors.broker import BrokerAddress
from actors.fleets.inventory import load_inventory
from actors.fleets.process import FleetLoop
from actors.fleets.simulated import SimulatedFleet
from actors.recorder import Recorder
from actors.redis_bus import RedisBus
from actors.settings import TelemetrySettings
from actors.telemetry import start as start_telemetry
from tests.assembly import gang, rack_cluster

ROOT = Path(__file__).parents[2]
LIMIT_S = 90.0


class Service:
    """One `clearway run` with everything it started."""

    def __init__(self, name: str, folder: Path, *options: str, **settings: str) -> None:
        self.name, self.log = name, folder / f"{name}.log"
        told = {f"CLEARWAY_{key.upper()}": value for key, value in settings.items()}
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "CLEARWAY_COMMIT_SYNC_MS": "0", **told}
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "actors", "run", *options], cwd="/", env=environment, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip

    def said(self) -> str:
        return self.log.read_text(errors="replace")

    @property
    def leads(self) -> bool | None:
        """What it last said of itself; None before it said anything."""
        words = re.findall(r" INFO (leads|stands by)\b", self.said())
        return words[-1] == "leads" if words else None

    def signal(self, number: int) -> None:
        """To the process and all that came from it, however deep."""
        for pid in (self.process.pid, *descendants(self.process.pid)):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                continue

    def freeze(self) -> None:
        """As if the whole machine stood still."""
        self.signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.signal(signal.SIGCONT)

    def kill(self) -> None:
        """Without a word to anybody; frozen first, so that nothing notices and none of it outlives the rest."""
        self.freeze()
        left = {self.process.pid, *descendants(self.process.pid)}
        folders = {found for pid in left for found in re.findall(r"/tmp/cw-\w+", command_line(pid))}
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        self.process.wait()
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)

    def end(self) -> int:
        """Its exit code after SIGTERM."""
        self.process.terminate()
        return self.process.wait(LIMIT_S)

    def close(self) -> None:
        """Whatever state it is in."""
        if self.process.poll() is None:
            self.thaw()
            try:
                self.end()
            except subprocess.TimeoutExpired:
                self.kill()


def command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:  # it ended meanwhile
        return ""


def descendants(root: int) -> Iterator[int]:
    """Processes that came from another, children before grandchildren."""
    parents: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text()
        except OSError:  # it ended meanwhile
            continue
        parents.setdefault(int(stat.rpartition(")")[2].split()[1]), []).append(int(folder.name))
    wave = [root]
    while wave:
        wave = [child for parent in wave for child in parents.get(parent, ())]
        yield from wave


class SmallFleet:
    """Sixteen nodes full of small work, whoever decides for them, and the history of it."""

    def __init__(self, address: BrokerAddress, fleet: str) -> None:
        cluster = rack_cluster(racks=4)
        cluster["podgroups"] = [gang(f"low{at}", 1, 8, nodes=[f"n{at}"]) for at in range(16)]
        self.bus = RedisBus(address.connect("test"), fleet)
        telemetry = start_telemetry(TelemetrySettings(), "fleet")
        simulated = SimulatedFleet(cluster, seed=1, grace_s=(0.2, 0.2))
        self.loop = FleetLoop(
            simulated, load_inventory(), RedisBus(address.connect("fleet"), fleet), telemetry, every_s=0.0
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

    def report(self) -> Report:
        """What the history came to. It is kept here, so that no trimming can hide any of it."""
        self.close()
        return audited(self.recorder.events, self.recorder.decisions)
