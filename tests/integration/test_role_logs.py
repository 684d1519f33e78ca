"""What roles say comes to the service's own log, each line once, also when further roles join."""

from __future__ import annotations

import io
import logging
import os
import signal
import time
from collections.abc import Iterator

import pytest
import ray

from actors.observability.logs import Line, Written
from actors.ray_runtime.cluster import ray_cluster
from actors.ray_runtime.role_logs import RoleLogs

LIMIT_S = 60.0


@ray.remote(num_cpus=0)
class Role:
    """Has said one line before it is asked."""

    def __init__(self, name: str) -> None:
        self._lines = [Line(1.0, "INFO", name, f"{name} begins")]

    def said(self, process: int, number: int) -> tuple[int, int, list[Line]]:
        return 1, len(self._lines), self._lines[number if process == 1 else 0 :]

    def process(self) -> int:
        return os.getpid()

    def host(self) -> str:
        return "here"

    def say(self, message: str) -> None:
        self._lines.append(Line(2.0, "INFO", "role", message))


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    """A Ray cluster for these tests."""
    with ray_cluster(None, "role-logs"):
        yield


def awaited(out: io.StringIO, text: str) -> None:
    deadline = time.monotonic() + LIMIT_S
    while text not in out.getvalue():
        assert time.monotonic() < deadline, out.getvalue()
        time.sleep(0.02)


def said_so(caplog: pytest.LogCaptureFixture, message: str) -> None:
    deadline = time.monotonic() + LIMIT_S
    while message not in caplog.messages:
        assert time.monotonic() < deadline, caplog.messages
        time.sleep(0.02)


def test_a_role_that_joins_does_not_make_the_others_repeat_themselves() -> None:
    out = io.StringIO()
    first, second = Role.remote("first"), Role.remote("second")
    logs = RoleLogs(Written("run", "demo", "text", out), {"first": first})
    try:
        awaited(out, "first begins")
        logs.add({"first": first, "second": second})
        awaited(out, "second begins")
        ray.get(first.say.remote("once more"))
        awaited(out, "once more")
    finally:
        logs.close()
    said = [line.split(" ", 3)[3] for line in out.getvalue().splitlines()]
    assert said == ["first begins", "second begins", "once more"]


def test_a_role_that_dies_is_named(caplog: pytest.LogCaptureFixture) -> None:
    out, role = io.StringIO(), Role.remote("searcher-0")
    logs = RoleLogs(Written("run", "demo", "text", out), {"searcher-0": role})
    try:
        awaited(out, "searcher-0 begins")
        ray.kill(role)
        said_so(caplog, "searcher-0 does not answer: ActorDiedError")
    finally:
        logs.close()
    assert len(caplog.messages) == 1


def test_a_role_that_has_not_ended_and_does_not_answer_is_named_and_so_is_its_return(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    out, role = io.StringIO(), Role.remote("dispatcher")
    logs = RoleLogs(Written("run", "demo", "text", out), {"dispatcher": role}, silent_s=1.0)
    try:
        awaited(out, "dispatcher begins")
        assert logs.places()["dispatcher"].answers
        process = ray.get(role.process.remote())
        os.kill(process, signal.SIGSTOP)
        said_so(caplog, "dispatcher does not answer: for 1 s")
        assert not logs.places()["dispatcher"].answers
        os.kill(process, signal.SIGCONT)
        said_so(caplog, "dispatcher answers again, process 1")
        assert logs.places()["dispatcher"].answers
    finally:
        logs.close()
