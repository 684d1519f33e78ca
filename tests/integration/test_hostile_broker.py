"""A broker that is full, forgets all, takes rights away or is far away, while a service runs.

Nothing is lost.

The tests are one story in the order in which they stand, since every start of a service costs seconds.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from actors.broker.address import BrokerAddress
from actors.broker.embedded_broker import EmbeddedBroker
from actors.broker.redis_client import RedisClient
from actors.processes.service_process import ServiceProcess
from tests.integration.services import SmallFleet, ready, until, url_of
from tests.support.broker_doors import rules
from tests.support.proxies import SlowLine, slow_line

FLEET, FIRST, TTL_S = "troubled", ">first", 3.0
ALLOWED = ("reset", "on", FIRST, *rules("clearway", FLEET))
FAR_S = 0.1


class Troubled:
    """A fleet that the broker serves well, and a service that it does not."""

    def __init__(self, broker: EmbeddedBroker, line: SlowLine, folder: Path) -> None:
        self.line, self._administrator = line, RedisClient(broker.url)
        self.user(*ALLOWED)
        self.fleet = SmallFleet(BrokerAddress(broker.url), FLEET)
        self.password = folder / "password"
        self.password.write_text(FIRST[1:])
        settings = {
            "fleet": FLEET, "searchers": "1", "lease_ttl_s": str(TTL_S), "health": "127.0.0.1:0",
            "redis_username": "clearway", "redis_password_file": str(self.password),
        }  # fmt: skip
        url = f"redis://127.0.0.1:{line.port}/0"
        self.service = ServiceProcess(folder / "log", "--redis-url", url, settings=settings)
        self.fleet.until(lambda: self.service.leads is True, "it leads")
        self.url = url_of(self.service)

    def user(self, *words: str) -> None:
        """Change what our user may."""
        self._administrator.once(lambda link: link.execute_command("ACL", "SETUSER", "clearway", *words))

    def disk(self, appendfsync: str) -> None:
        """Change when the broker's disk has what was written."""
        self._administrator.once(lambda link: link.config_set("appendfsync", appendfsync))

    def set(self, name: str, value: str) -> None:
        """Change a setting of the broker."""
        self._administrator.once(lambda link: link.config_set(name, value))

    @property
    def data(self) -> Path:
        """The broker's folder."""
        (found,) = self._administrator.once(lambda link: link.config_get("dir")).values()
        return Path(os.fsdecode(found))

    def forget_all(self) -> None:
        """Leave the broker with an empty memory."""
        self._administrator.once(lambda link: link.flushall())

    def cut(self) -> None:
        """Close our user's connections, so that new ones are made."""
        self._administrator.once(lambda link: link.execute_command("CLIENT", "KILL", "USER", "clearway"))

    def until_refused(self, said: str) -> None:
        """Wait until the log has this, and the health page says that nothing is decided."""
        until(lambda: said in self.service.said(), f"the log has {said}")
        until(lambda: "no service holds" in ready(self.url)["why"], "it is not ready")
        assert self.service.process.poll() is None

    def until_running(self, name: str) -> None:
        """Wait until a gang of two that was submitted runs, and the service says that it leads."""
        tasks = self.fleet.loop.fleet._tasks
        names = [f"default/{name}-{at}" for at in range(2)]
        self.fleet.until(lambda: all(tasks[one].status == "Running" for one in names), f"{name} runs")
        self.fleet.until(lambda: ready(self.url)["state"] == "leads", "it leads again")

    def said_since(self, moment: str) -> list[str]:
        """The lines of the log that were written since. A line of a role arrives there some time after its stamp."""
        return [line for line in self.service.said().splitlines() if line[: len(moment)] >= moment]

    def close(self) -> None:
        self.service.close()
        self.fleet.close()
        self._administrator.close()


def now() -> str:
    """This moment, as logs write it."""
    return f"{datetime.now(UTC).replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Troubled]:
    with EmbeddedBroker(tcp=True) as broker:
        port = urlsplit(broker.tcp_url).port
        assert port is not None
        with slow_line(port) as line:
            made = Troubled(broker, line, tmp_path_factory.mktemp("troubled"))
            try:
                yield made
            finally:
                made.close()


def test_a_right_that_is_taken_away_is_named_and_waited_for(story: Troubled) -> None:
    story.user("-xadd")
    story.fleet.submit("without-right", 5, 2)
    story.until_refused("it refuses our user: it may not run XADD clearway:{troubled}:decisions")
    story.user("+xadd")
    story.until_running("without-right")


def test_all_keys_that_are_taken_away_are_waited_for(story: Troubled) -> None:
    story.user("resetkeys")
    story.fleet.submit("without-keys", 5, 2)
    story.until_refused("it refuses our user: No permissions to access a key")
    story.user(*ALLOWED)
    story.until_running("without-keys")


def test_a_broker_that_waits_for_its_disk_no_more_is_named_and_waited_for(story: Troubled) -> None:
    story.disk("everysec")
    story.until_refused("it answers before its disk has what was written (appendfsync everysec, appendonly yes): set")
    story.fleet.submit("without-disk", 5, 2)
    story.disk("always")
    story.until_running("without-disk")


def test_a_broker_whose_memory_is_full_is_waited_for(story: Troubled) -> None:
    story.set("maxmemory", "1")
    story.until_refused("command not allowed when used memory > 'maxmemory'")
    story.set("maxmemory", "0")
    story.fleet.submit("without-memory", 5, 2)
    story.until_running("without-memory")


def test_a_broker_that_cannot_save_what_it_has_is_waited_for(story: Troubled) -> None:
    """A folder stands where it would put its snapshot. It then refuses what writes."""
    in_the_way = story.data / "dump.rdb"
    (in_the_way / "full").mkdir(parents=True)
    story.set("save", "1 1")
    story.until_refused("MISCONF")
    story.set("save", "")
    shutil.rmtree(in_the_way)
    story.fleet.submit("without-snapshot", 5, 2)
    story.until_running("without-snapshot")


def test_a_password_that_is_changed_is_waited_for_and_read_again_from_its_file(story: Troubled) -> None:
    story.user("resetpass", ">second")
    story.cut()
    story.fleet.submit("without-password", 5, 2)
    story.until_refused("it refuses the credentials: invalid username-password pair")
    story.password.write_text("second\n")
    story.until_running("without-password")
    assert "second" not in story.service.said().replace("seconds", "")


def test_a_broker_that_is_a_fifth_of_a_second_away_serves_as_any_other(story: Troubled) -> None:
    began = now()
    story.line.each_way_s = FAR_S
    for name in ("far-0", "far-1", "far-2"):
        story.fleet.submit(name, 6, 2)
        story.until_running(name)
    story.line.each_way_s = 0.0
    until(lambda: "allocate for default/far-2" in story.service.said(), "the log has all that was decided")
    said = story.said_since(began)
    bad = ("unreachable", "lease lost", "leads no longer", "full list", "process ends")
    assert [line for line in said if any(word in line for word in bad)] == [], said


def test_no_role_ended_and_nothing_was_lost_or_done_twice(story: Troubled) -> None:
    assert "the process ends" not in story.service.said()
    report = story.fleet.report()
    assert report.broken == []
    lacking = ("right", "keys", "disk", "memory", "snapshot", "password")
    gangs = {f"without-{what}" for what in lacking} | {"far-0", "far-1", "far-2"}
    assert report.waited_ms.keys() == {f"default/{name}" for name in gangs}
    assert report.decisions["preempt"] == len(gangs)


def test_a_broker_that_has_lost_all_is_noticed_and_nothing_is_decided_twice(story: Troubled) -> None:
    """It counts decisions anew, so the history does not end in the audit of what was before."""
    began = now()
    story.forget_all()
    story.fleet.until(lambda: "the broker has lost" in "\n".join(story.said_since(began)), "it asks for a list")
    story.fleet.until(lambda: ready(story.url)["state"] == "leads" and ready(story.url)["listed"], "it leads again")
    story.fleet.submit("without-past", 6, 2)
    story.until_running("without-past")
    until(lambda: "allocate for default/without-past" in story.service.said(), "the log has all that was decided")
    decided = [line for line in story.said_since(began) if "evicts" in line]
    assert len(decided) == 1
    assert "preempt for default/without-past" in decided[0]
    assert story.fleet.loop.fleet.tally.misfits == 0
