"""A known password goes in and is looked for in all that comes out: lines, traces, errors, command lines, logs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from actors.broker.address import BrokerAddress, broker_for
from actors.broker.bus import DEAD, DECISIONS, SPANS, START, STARVING, BrokerRefused, BrokerUnreachable
from actors.broker.embedded_broker import EmbeddedBroker
from actors.broker.redis_bus import RedisBus
from actors.configuration.settings import SettingsRefused, load_settings
from actors.processes.tree import descendants
from tests.support.processes import listeners

ROOT = Path(__file__).parents[2]
FLEET = "secretive"
LIMIT_S = 90.0


class Command:
    """A command of ours as a process, all that it says kept."""

    def __init__(self, *arguments: str, **environment: str) -> None:
        known = {"PYTHONPATH": str(ROOT), "CLEARWAY_FLEET": FLEET, **environment}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "actors", *arguments], cwd="/", env={**os.environ, **known}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        self.said: list[str] = []
        self.unreachable = threading.Event()
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said.append(line)
            if "broker unreachable" in line:
                self.unreachable.set()

    def end(self) -> str:
        """All that it said, once it has ended."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.process.wait(LIMIT_S)
        self.reader.join()
        assert self.process.stdout is not None
        self.process.stdout.close()
        return "".join(self.said)


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(tcp=True) as running:
        yield running


def logged(pids: Iterable[int]) -> Iterator[str]:
    """What the processes have written into Ray's folder."""
    shown = [Path(f"/proc/{pid}/cmdline").read_text().split("\0") for pid in pids]
    folders = {word.partition("=")[2] for words in shown for word in words if word.startswith("--log_dir=")}
    assert folders
    for folder in folders:
        for file in Path(folder).rglob("*"):
            if file.is_file():
                yield file.read_text(errors="replace")


def test_a_password_shows_nowhere(broker: EmbeddedBroker, tmp_path: Path) -> None:
    whole = urlsplit(broker.tcp_url)
    secret = str(whole.password)
    (tmp_path / "password").write_text(secret + "\n")
    bare = f"redis://{whole.hostname}:{whole.port}/0"
    traced = {"CLEARWAY_TELEMETRY__EXPORTER": "console"}
    fleet = Command("fleet", "--every-s", "2", CLEARWAY_REDIS_URL=broker.tcp_url, **traced)
    service = Command(
        "run", "--redis-url", bare, CLEARWAY_REDIS_PASSWORD_FILE=str(tmp_path / "password"),
        CLEARWAY_SEARCHERS="1", **traced,
    )  # fmt: skip
    seen: list[str] = []
    try:
        bus = RedisBus(BrokerAddress(broker.tcp_url).connect("test"), FLEET)
        deadline = time.monotonic() + LIMIT_S
        while not any(b"plan_committed" in one.fields["batch"] for one in bus.follow(DECISIONS, START, block_ms=500)):
            assert time.monotonic() < deadline, service.said[-20:]
            assert service.process.poll() is None, service.said[-20:]
        started = list(descendants(os.getpid()))
        assert len(started) > 6
        seen += [Path(f"/proc/{pid}/cmdline").read_text() for pid in started]
        seen += logged(started)
        seen += [repr(one.fields) for stream in (DECISIONS, SPANS, STARVING, DEAD)
                 for one in bus.follow(stream, START, count=10_000)]  # fmt: skip
        broker.kill()
        assert fleet.unreachable.wait(LIMIT_S)
        roles = list(logged(descendants(os.getpid())))
        while not all(any(word in one for one in roles) for word in ("broker unreachable", "trace_id")):
            assert time.monotonic() < deadline + LIMIT_S
            roles = list(logged(descendants(os.getpid())))
        seen += roles
        broker.start()
    finally:
        said = [service.end(), fleet.end()]
    assert "trace_id" in said[1]
    assert sum(map(len, seen)) > 10_000
    assert [one for one in [*seen, *said] if secret in one] == []


@pytest.mark.parametrize(
    "url",
    ["redis://:hidden@127.0.0.1:1/0", "redis://me:hidden/x@there/0", "redis://me:hidden@there:port/0", "hidden",
     "redis://[hidden", "rediss://me:hidden@127.0.0.1:1/0", "unix://:hidden@/nowhere/s", "redis://hidden\u2100@x/0"],
)  # fmt: skip
def test_what_is_said_of_an_address_that_fails_shows_no_password(url: str, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises((SettingsRefused, BrokerUnreachable, BrokerRefused)) as refusal:  # noqa: SIM117
        with broker_for(load_settings(redis_url=url, broker_wait_s=0.15)) as address:
            address.connect("test", functions=False)
    for said in (str(refusal.value), "".join(traceback.format_exception(refusal.value)), caplog.text):
        assert "hidden" not in said


def test_our_own_broker_listens_to_this_user_alone(tmp_path: Path) -> None:
    with EmbeddedBroker(tmp_path) as broker:
        assert listeners([broker.pid]) == []
        socket = Path(broker.url.removeprefix("unix://"))
        assert (socket.stat().st_mode & 0o077, socket.parent.stat().st_mode & 0o077) == (0, 0)
        assert broker.url.removeprefix("unix://") in Path("/proc/net/unix").read_text()
        written = [file for file in tmp_path.rglob("*") if file.is_file()]
        assert written
        assert [file for file in written if file.stat().st_mode & 0o077] == []
    with EmbeddedBroker(tcp=True) as broker:
        assert [one.host for one in listeners([broker.pid])] == ["0100007F"]
