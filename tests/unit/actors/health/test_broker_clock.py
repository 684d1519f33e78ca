"""Decisions go by the broker's clock, whatever the clock of the machine says."""

from __future__ import annotations

from pathlib import Path

import pytest

import actors
from actors.broker.bus import BrokerUnreachable
from actors.health.broker_clock import EVERY_S, BrokerClock
from tests.support.assembly import Clock

ROLES = ("committer_actor.py", "dispatcher_actor.py", "ingestor_actor.py")


class Machines:
    """The broker's machine, and one whose clock differs from the broker's by so much."""

    def __init__(self, wrong_s: float) -> None:
        self.elapsed, self.wrong_s, self.broker = Clock(50.0), wrong_s, 1_700_000_000.0
        self.takes_s = 0.0
        self.clock = BrokerClock(self.elapsed, lambda: self.ask() + self.wrong_s)

    def ask(self) -> float:
        """The broker's time."""
        return self.broker + self.elapsed.now - 50.0

    def asked(self) -> float:
        """The same, where question and answer take their time."""
        self.elapsed.now += self.takes_s / 2
        said = self.ask()
        self.elapsed.now += self.takes_s / 2
        return said


@pytest.mark.parametrize("wrong_s", [300.0, -300.0])
def test_a_machine_whose_clock_is_wrong_by_five_minutes_goes_by_the_brokers_and_says_so_once(
    wrong_s: float, caplog: pytest.LogCaptureFixture
) -> None:
    machines = Machines(wrong_s)
    for _ in range(3):
        machines.clock.look(machines.ask)
        assert machines.clock.now_s() == machines.ask()
        machines.elapsed.now += 60.0
    where = "ahead of" if wrong_s > 0 else "behind"
    assert [line for line in caplog.messages if "clock" in line] == [
        f"this machine's clock is 300 s {where} the broker's; decisions go by the broker's"
    ]
    machines.wrong_s = 0.0
    machines.clock.look(machines.ask)
    assert not machines.clock._said


def test_time_goes_on_while_the_broker_is_away() -> None:
    machines, waits = Machines(0.0), list[float]()
    machines.clock.look(machines.ask)

    def away() -> float:
        raise BrokerUnreachable("away")

    def wait(seconds: float) -> None:
        waits.append(seconds)
        machines.elapsed.now += seconds
        if len(waits) == 3:
            raise StopIteration

    with pytest.raises(StopIteration):
        machines.clock.keep(away, wait)
    assert waits == [EVERY_S] * 3
    assert machines.clock.now_s() == machines.ask()


def test_a_broker_that_is_far_away_is_not_followed_to_and_fro() -> None:
    machines, before = Machines(0.0), 0.0
    machines.clock.look(machines.asked)
    for takes_s in (0.4, 0.01, 1.0, 0.2):
        machines.takes_s = takes_s
        machines.clock.look(machines.asked)
        assert machines.clock.now_s() == pytest.approx(machines.ask(), abs=1e-6)
        assert machines.clock.now_s() > before
        before = machines.clock.now_s()


def test_a_broker_whose_clock_is_set_is_followed() -> None:
    machines = Machines(0.0)
    machines.clock.look(machines.ask)
    machines.broker += 120.0
    machines.clock.look(machines.ask)
    assert machines.clock.now_s() == machines.ask()


def test_no_role_that_folds_or_decides_asks_its_machine_for_the_time_of_day() -> None:
    for name in ROLES:
        source = (Path(actors.__file__).parent / "ray_runtime" / name).read_text()
        assert "time.time(" not in source
        assert "=time.time" not in source
        assert "follow_clock()" in source
