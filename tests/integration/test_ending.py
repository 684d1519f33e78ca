"""One signal ends a service within five seconds, wherever it stands, and nothing of it is left."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from actors.broker.embedded_broker import EmbeddedBroker
from actors.processes.tree import descendants, runs
from actors.ray_runtime.service_process import ServiceProcess

LIMIT_S, SIGNAL_S = 120.0, 5.0
#: Of folders that our processes make; behind it stands the id of the process.
PREFIXES = ("cw-", "clearway-")


def folders(pids: set[int]) -> set[Path]:
    """Those that any of the processes has made."""
    where = {Path("/tmp"), Path(tempfile.gettempdir())}
    names = {f"{prefix}{pid}_*" for prefix in PREFIXES for pid in pids}
    return {found for folder in where for name in names for found in folder.glob(name)}


def alive(pids: set[int]) -> set[int]:
    return {pid for pid in pids if runs(pid)}


def until(holds: Callable[[], bool], said: Callable[[], str]) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not holds():
        assert time.monotonic() < deadline, said()
        assert "Error: " not in said(), said()
        time.sleep(0.02)


class Started:
    """A service, and what came from it."""

    def __init__(self, log: Path, *options: str, **settings: str) -> None:
        told = {"fleet": "ending", "searchers": "1", "health": "127.0.0.1:0", **settings}
        self.service = ServiceProcess(log, *options, settings=told)
        self.pids = {self.service.process.pid}

    def ended(self, number: int, *, group: bool = False) -> tuple[int, float]:
        """Its exit code after one signal, and after how many seconds it and all that came from it were gone."""
        pid = self.service.process.pid
        came = set(descendants(pid))
        self.pids |= came
        began = time.monotonic()
        if group:
            os.killpg(pid, number)
        else:
            os.kill(pid, number)
        code = self.service.process.wait(LIMIT_S)
        until(lambda: not alive(came), lambda: f"left: {alive(came)}")
        return code, time.monotonic() - began

    def folders(self) -> set[Path]:
        """Those that it has made and that are there."""
        return folders(self.pids)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Started]]:
    made: list[Started] = []

    def begin(*options: str, **settings: str) -> Started:
        made.append(Started(tmp_path / f"{len(made)}.log", *options, **settings))
        return made[-1]

    yield begin
    for one in made:
        one.service.close()


@pytest.mark.parametrize(
    ("number", "group"),
    [(signal.SIGTERM, False), (signal.SIGINT, True)],
    ids=["SIGTERM to the process", "SIGINT to its group, as by Ctrl-C"],
)
def test_a_service_that_waits_for_its_fleet_ends_at_one_signal(
    start: Callable[..., Started], number: int, group: bool
) -> None:
    one = start()
    until(lambda: "not ready: no fleet" in one.service.said(), one.service.said)
    assert {found.name.partition("-")[0] for found in one.folders()} == {"cw", "clearway"}
    code, took_s = one.ended(number, group=group)
    assert took_s < SIGNAL_S, one.service.said()
    assert code in (0, 1)
    assert one.folders() == set()
    assert "Traceback" not in one.service.said()


@pytest.mark.parametrize("delay_s", [0.0, 2.0, 3.0, 4.0], ids=lambda delay: f"{delay:g} s after it began")
def test_a_service_that_starts_ends_at_one_signal(start: Callable[..., Started], delay_s: float) -> None:
    one = start()
    until(lambda: "health at " in one.service.said(), one.service.said)
    time.sleep(delay_s)
    _, took_s = one.ended(signal.SIGTERM)
    assert took_s < SIGNAL_S, one.service.said()
    assert one.folders() == set()
    assert "Traceback" not in one.service.said()


def test_a_service_whose_broker_died_ends_at_one_signal(start: Callable[..., Started]) -> None:
    with EmbeddedBroker() as broker:
        one = start("--redis-url", broker.url)
        until(lambda: "not ready: no fleet" in one.service.said(), one.service.said)
        broker.kill()
        until(lambda: "broker unreachable" in one.service.said(), one.service.said)
        _, took_s = one.ended(signal.SIGTERM)
        assert took_s < SIGNAL_S, one.service.said()
    assert one.folders() == set()


def test_a_reload_is_refused_by_name_and_the_service_goes_on(start: Callable[..., Started]) -> None:
    one = start()
    until(lambda: "health at " in one.service.said(), one.service.said)
    os.kill(one.service.process.pid, signal.SIGHUP)
    until(lambda: "SIGHUP is refused" in one.service.said(), one.service.said)
    assert one.service.process.poll() is None
    one.ended(signal.SIGTERM)
