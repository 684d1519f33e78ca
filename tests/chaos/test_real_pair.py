"""Two services for one fleet, of processes that are made up: each thing that a pair must complain of, it does."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.chaos import real_faults, real_pair
from tests.chaos.real_faults import TAKEOVER_S
from tests.chaos.real_pair import Pair
from tests.chaos.real_ray import TookTooLong, Worker
from tests.chaos.real_schedule import Fault, Kind

PIDS = 100


class Service:
    """A service that is only said to run; its exit code is None where it does not end when it is told to."""

    def __init__(self, log: Path, *options: str, settings: Mapping[str, str]) -> None:
        self.options, self.settings, self.words = options, settings, "INFO started"
        self.leads: bool | None = None
        self.code: int | None = 0
        self.over: int | None = None
        pid = PIDS + int(log.stem.removeprefix("service"))
        self.process = SimpleNamespace(pid=pid, poll=lambda: self.over)

    def said(self) -> str:
        return self.words

    def end(self) -> int:
        if self.code is None:
            raise subprocess.TimeoutExpired("clearway run", 1.0)
        self.over = self.code
        return self.code

    def kill(self) -> None:
        self.over = -signal.SIGKILL

    def close(self) -> None:
        self.over = 0 if self.over is None else self.over


@pytest.fixture
def pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pair:
    """One that leads, and one that stands by."""
    monkeypatch.setattr(real_pair, "ServiceProcess", Service)
    monkeypatch.setattr(real_pair, "_START_LIMIT_S", 0.0)
    made = Pair(tmp_path, "redis://nowhere", None, {"fleet": "chaos"})
    first, second = services(made)
    first.leads, second.leads = True, False
    return made


def services(pair: Pair) -> list[Any]:
    return list(pair._started)


def test_two_that_start_lead_stand_by_and_end_in_order_are_nothing_to_complain_of(pair: Pair) -> None:
    pair.await_ready(0.0)
    pair.stop()
    assert pair.objections == []
    assert pair.living == []
    assert [one.options for one in services(pair)] == [("--redis-url", "redis://nowhere")] * 2


@pytest.mark.parametrize("leads", [(True, True), (False, False), (True, None), (None, None)])
def test_two_leaders_and_none_are_not_ready(pair: Pair, leads: tuple[bool | None, bool | None]) -> None:
    for one, said in zip(services(pair), leads, strict=True):
        one.leads, one.words = said, f"INFO the last that was said: {said}"
    with pytest.raises(TookTooLong, match="one leads, the other waits") as late:
        pair.await_ready(0.0)
    assert [f"said: {said}" in str(late.value) for said in leads] == [True, True], "the logs of both are told"


def test_in_the_place_of_one_that_ended_another_is_started(pair: Pair) -> None:
    pair.kill_leader()
    assert pair.leader is None
    with pytest.raises(TookTooLong):
        pair.await_ready(0.0)
    dead, standby, fresh = services(pair)
    assert pair.living == [standby, fresh]
    standby.leads, fresh.leads = True, False
    pair.await_ready(0.0)
    assert pair.leader is standby
    assert dead not in pair.living


def test_of_two_that_say_that_they_lead_the_one_that_started_last_counts(pair: Pair) -> None:
    first, second = services(pair)
    second.leads = True  # the first was frozen and does not know better
    assert pair.leader is second
    first.leads = False
    assert pair.leader is second


def test_a_service_that_does_not_end_when_it_is_told_to_is_complained_of(pair: Pair) -> None:
    services(pair)[0].code = None
    pair.stop_leader()
    (complaint,) = pair.objections
    assert "did not end within" in complaint


def test_a_service_that_ends_with_a_failure_is_complained_of_with_its_last_words(pair: Pair) -> None:
    services(pair)[1].code, services(pair)[1].words = 1, "ERROR no room"
    pair.stop()
    assert pair.objections == ["a service that was told to stop ended with 1: ERROR no room"]


def test_a_loop_that_failed_is_complained_of_though_its_service_was_killed_later(pair: Pair) -> None:
    services(pair)[0].words = "Traceback (most recent call last): KeyError"
    pair.kill_leader()
    pair.stop()
    assert pair.objections == ["service 0 failed: Traceback (most recent call last): KeyError"]


def test_the_leader_and_its_roles_freeze_and_thaw_together_and_no_other_service(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(real_pair.os, "kill", lambda pid, number: sent.append((pid, number)))
    monkeypatch.setattr(real_pair, "descendants", lambda pid: {pid + 1_000, pid + 2_000})
    monkeypatch.setattr(real_pair, "runs", lambda pid: pid != PIDS + 2_000)  # one ended meanwhile
    pair.freeze_leader()
    pair.thaw()
    pair.thaw()
    frozen = [PIDS, PIDS + 1_000]
    assert sorted(sent) == sorted((pid, number) for pid in frozen for number in (signal.SIGSTOP, signal.SIGCONT))


@pytest.fixture
def named() -> Iterator[Callable[[str], int]]:
    """Starts processes of a name; they end when their input does."""
    started: list[subprocess.Popen[bytes]] = []

    def start(name: str) -> int:
        one = subprocess.Popen([name], executable="/bin/cat", stdin=subprocess.PIPE)
        started.append(one)
        return one.pid

    yield start
    for one in started:
        one.communicate()


def test_roles_are_told_by_the_names_of_processes(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, named: Callable[[str], int]
) -> None:
    committer, idle, gone = named("ray::CommitterActor.turn"), named("ray::IDLE"), 2**22 + 1
    monkeypatch.setattr(real_pair, "descendants", lambda _: {committer, idle, gone})
    (found,) = pair.workers("committer")
    assert (found.pid, found.alive) == (committer, True)
    assert pair.workers("searcher") == []
    services(pair)[0].leads = False
    assert pair.workers("committer") == [], "there is no leader"


def test_on_a_ray_that_both_share_roles_are_those_of_the_leaders_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(real_pair, "ServiceProcess", Service)
    workers = {
        PIDS: [Worker("committer", "a", 1, "n", "ALIVE", 0), Worker("committer", "b", 2, "n", "DEAD", 0)],
        PIDS + 1: [Worker("committer", "c", 3, "n", "ALIVE", 0)],
    }
    raylets: Any = SimpleNamespace(address="here:1", of_driver=workers.__getitem__)
    both = Pair(tmp_path, "redis://nowhere", raylets, {})
    first, second = services(both)
    assert first.options == ("--redis-url", "redis://nowhere", "--ray-address", "here:1")
    first.leads, second.leads = True, False
    assert [one.pid for one in both.workers("committer")] == [1]


@pytest.mark.parametrize(("took_s", "complains"), [(TAKEOVER_S - 1.0, False), (TAKEOVER_S + 1.0, True)])
def test_a_standby_that_takes_too_long_to_decide_is_complained_of(
    pair: Pair, took_s: float, complains: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SimpleNamespace(now=0.0, monotonic=lambda: clock.now, sleep=lambda _: None)
    monkeypatch.setattr(real_faults, "time", clock)

    def watch(**_: int) -> None:
        clock.now += took_s
        world.epoch += 1

    world: Any = SimpleNamespace(
        pair=pair, epoch=3, arrived=[], took_over_s=[], objections=[], watch=watch,
        newest_epoch=lambda: world.epoch, arrive=lambda **_: None, all_living=lambda: None,
    )  # fmt: skip
    real_faults._take_over(world, Fault(Kind.KILL_LEADER))
    assert world.took_over_s == [took_s]
    assert [complaint.startswith("a standby decided after") for complaint in world.objections] == [True] * complains
    assert pair.leader is None
