"""One signal ends a service soon, wherever it stands, and nothing of it is left.

How one that leads ends is told in `test_service.py`, and in `test_standby.py` how one ends whose broker died.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from actors.processes.service_process import ServiceProcess
from tests.integration.services import LIMIT_S, ROOT, SIGNAL_S, Ending


class Started(Ending):
    """A service that is to end."""

    def __init__(self, log: Path) -> None:
        told = {"fleet": "ending", "searchers": "1", "health": "127.0.0.1:0"}
        self.service = ServiceProcess(log, settings=told)
        self.said = self.service.said
        super().__init__(self.service.process)

    def await_said(self, words: str) -> None:
        """Wait until its log has these words."""
        deadline = time.monotonic() + LIMIT_S
        while words not in self.said():
            assert time.monotonic() < deadline, self.said()
            assert "Error: " not in self.said(), self.said()
            time.sleep(0.02)


@pytest.fixture
def one(tmp_path: Path) -> Iterator[Started]:
    made = Started(tmp_path / "log")
    yield made
    made.service.close()


def test_a_service_that_waits_for_its_fleet_ends_at_ctrl_c_which_its_whole_group_hears(one: Started) -> None:
    one.await_said("not ready: no fleet")
    assert {found.name.partition("-")[0] for found in one.folders()} == {"cw", "clearway"}
    code, took_s = one.by(signal.SIGINT, group=True)
    assert took_s < SIGNAL_S, one.said()
    assert code in (0, 1)
    assert one.folders() == set()
    assert "Traceback" not in one.said()


@pytest.mark.parametrize("delay_s", [0.0, 2.0, 3.0, 4.0], ids=lambda delay: f"{delay:g} s after it began")
def test_a_service_that_starts_ends_at_one_signal(one: Started, delay_s: float) -> None:
    one.await_said("health at ")
    time.sleep(delay_s)
    _, took_s = one.by(signal.SIGTERM)
    assert took_s < SIGNAL_S, one.said()
    assert one.folders() == set()
    assert "Traceback" not in one.said()


PROGRAM = """
import os, signal
from ray import _raylet
from actors.processes.ending import EndSignals
from actors.ray_runtime.cluster import ray_cluster

connect = _raylet.CoreWorker

def told_meanwhile(*given, **named):
    connected = connect(*given, **named)
    print("told", flush=True)
    os.kill(os.getpid(), signal.SIGTERM)
    return connected

_raylet.CoreWorker = told_meanwhile
with EndSignals(limit_s=600.0) as ending, ray_cluster(None, "ending"):
    ending.listen()
    ending.told.wait()
"""


def test_a_signal_while_ray_connects_ends_the_process_in_order(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w+b") as log:
        process = subprocess.Popen([sys.executable, "-c", PROGRAM], cwd=ROOT, stdout=log, stderr=log)
        ending = Ending(process)
        code = process.wait(LIMIT_S)
        log.seek(0)
        said = log.read().decode()
    assert (code, said) == (0, "told\n")
    assert ending.folders() == set()
