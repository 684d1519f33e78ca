"""One signal ends a service within five seconds, wherever it stands, and nothing of it is left.

How one that leads ends is the end of its story in `test_service.py`.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from actors.broker.embedded_broker import EmbeddedBroker
from actors.ray_runtime.service_process import ServiceProcess
from tests.integration.services import LIMIT_S, Ending

SIGNAL_S = 5.0


class Started(Ending):
    """A service that is to end."""

    def __init__(self, log: Path, *options: str) -> None:
        told = {"fleet": "ending", "searchers": "1", "health": "127.0.0.1:0"}
        self.service = ServiceProcess(log, *options, settings=told)
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
def start(tmp_path: Path) -> Iterator[Callable[..., Started]]:
    made: list[Started] = []

    def begin(*options: str) -> Started:
        made.append(Started(tmp_path / f"{len(made)}.log", *options))
        return made[-1]

    yield begin
    for one in made:
        one.service.close()


def test_a_service_that_waits_for_its_fleet_ends_at_ctrl_c_which_its_whole_group_hears(
    start: Callable[..., Started],
) -> None:
    one = start()
    one.await_said("not ready: no fleet")
    assert {found.name.partition("-")[0] for found in one.folders()} == {"cw", "clearway"}
    code, took_s = one.by(signal.SIGINT, group=True)
    assert took_s < SIGNAL_S, one.said()
    assert code in (0, 1)
    assert one.folders() == set()
    assert "Traceback" not in one.said()


@pytest.mark.parametrize("delay_s", [0.0, 2.0, 3.0, 4.0], ids=lambda delay: f"{delay:g} s after it began")
def test_a_service_that_starts_ends_at_one_signal(start: Callable[..., Started], delay_s: float) -> None:
    one = start()
    one.await_said("health at ")
    time.sleep(delay_s)
    _, took_s = one.by(signal.SIGTERM)
    assert took_s < SIGNAL_S, one.said()
    assert one.folders() == set()
    assert "Traceback" not in one.said()


def test_a_service_whose_broker_died_ends_at_one_signal(start: Callable[..., Started]) -> None:
    with EmbeddedBroker() as broker:
        one = start("--redis-url", broker.url)
        one.await_said("not ready: no fleet")
        broker.kill()
        one.await_said("broker unreachable")
        _, took_s = one.by(signal.SIGTERM)
        assert took_s < SIGNAL_S, one.said()
    assert one.folders() == set()
