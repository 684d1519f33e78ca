"""Two services for one fleet: one decides, the other folds along, and takes over when the first dies, freezes or ends.

Each has a Ray of its own, so that it outlives the other's machine. A third one is on the leader's Ray: their roles do
not meet, and when that Ray ends, it says so. The tests are one story in the order in which they stand, since every
start of a service costs seconds.
"""

import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from actors.broker.address import BrokerAddress
from actors.broker.bus import EVENTS, id_order
from actors.broker.embedded_broker import EmbeddedBroker
from actors.processes.service_process import ServiceProcess
from actors.processes.tree import descendants
from actors.protocol.bodies import PlanCommitted
from actors.protocol.envelopes import Message, decode_decisions
from tests.integration.services import LIMIT_S, SIGNAL_S, Ending, SmallFleet, asked, ready, until, url_of

#: Twice the default: a leader that waits longer than this for a processor loses the lease, and here a third service
#: starts beside a leader and a standby on two processors.
TTL_S = 10.0
_REFUSED = 2


class Pair:
    """A fleet, and the services that stand by for each other."""

    def __init__(self, broker: EmbeddedBroker, folder: Path) -> None:
        self.broker, self.folder, self.services = broker, folder, list[ServiceProcess]()
        self.fleet = SmallFleet(BrokerAddress(broker.url), "standby")

    def start(self, *options: str) -> ServiceProcess:
        settings = {
            "fleet": "standby", "searchers": "1", "lease_ttl_s": str(TTL_S), "checkpoint_every_s": "0.5",
            "health": "127.0.0.1:0",
        }  # fmt: skip
        log = self.folder / f"service{len(self.services)}.log"
        made = ServiceProcess(log, "--redis-url", self.broker.url, *options, settings=settings)
        self.services.append(made)
        return made

    def settled(self, *among: ServiceProcess) -> tuple[ServiceProcess, ServiceProcess]:
        """Who leads and who stands by, once both have said so."""
        self.fleet.until(lambda: sorted(str(one.leads) for one in among) == ["False", "True"], "one leads, one waits")
        leader, standby = sorted(among, key=lambda one: not one.leads)
        return leader, standby

    def until_leads(self, service: ServiceProcess) -> None:
        """Wait until a service has said that it leads. What a role has logged stands in the log some time later."""
        self.fleet.until(lambda: bool(service.leads), "it says that it leads", LIMIT_S)

    def overtake(self) -> None:
        """Until what a frozen reader has read last is no longer there."""
        last, small = id_order(self.fleet.bus.bounds(EVENTS).last), 0
        while id_order(self.fleet.bus.bounds(EVENTS).first) <= last:
            assert small < 200, "nothing is trimmed"
            self.fleet.place(f"small{small}", priority=3, tasks=1, gpu=0)
            small += 1

    def epochs(self) -> list[int]:
        """Of the lease of every decision, in the order of the stream."""
        read = [one for entry in self.fleet.recorder.decisions for one in decode_decisions(entry)]
        return [one.body.epoch for one in read if isinstance(one, Message) and isinstance(one.body, PlanCommitted)]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with EmbeddedBroker() as broker:
        made = Pair(broker, tmp_path_factory.mktemp("services"))
        try:
            made.start(), made.start()
            yield made
        finally:
            for service in made.services:
                service.close()
            made.fleet.close()


@pytest.fixture
def story(pair: Pair) -> Iterator[Pair]:
    yield pair
    for service in pair.services:
        assert "Traceback" not in service.said(), service.said()


def test_one_leads_and_decides_and_the_other_says_that_it_stands_by(story: Pair) -> None:
    leader, standby = map(url_of, story.settled(*story.services))
    story.fleet.place("first", priority=1)
    assert len(set(story.epochs())) == 1
    story.fleet.until(lambda: ready(standby)["state"] == "stands by", "its health says so")
    story.fleet.until(lambda: "stands by" in ready(leader)["others"].values(), "the leader's health says so")
    assert asked(f"{standby}/ready")[0] == 200


def test_a_frozen_leader_is_replaced_and_stands_by_once_it_thaws(story: Pair) -> None:
    leader, standby = story.settled(*story.services)
    leader.freeze()
    story.fleet.place("frozen", priority=2)
    story.until_leads(standby)
    story.overtake()
    leader.thaw()
    story.fleet.until(lambda: leader.leads is False, "the former leader stands by")
    story.fleet.place("thawed", priority=4)
    assert leader.process.poll() is None
    story.until_leads(standby)


def joined(leader: ServiceProcess) -> tuple[str, str]:
    """Address and token file of the Ray that a service has started."""
    lines = "\n".join(
        Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        for pid in descendants(leader.process.pid)
    )
    address, folder = re.search(r"--gcs-address=(\S+)", lines), re.search(r"/tmp/cw-\w+", lines)
    assert address is not None
    assert folder is not None
    return address.group(1), f"{folder.group()}/token"


def test_a_standby_on_the_leaders_ray_stands_by_beside_one_on_its_own(
    story: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    leader, _ = story.settled(*story.services)
    address, token = joined(leader)
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", token)
    third = story.start("--ray-address", address)
    story.fleet.until(lambda: third.leads is False, "the third stands by")
    story.fleet.place("beside", priority=5)
    assert leader.leads
    assert not third.leads


def test_the_former_leader_takes_over_from_one_that_is_killed(story: Pair) -> None:
    leader, standby = story.settled(*story.services[:2])
    story.fleet.until(lambda: "leads" in ready(url_of(standby))["others"].values(), "the standby heard that it leads")
    leader.kill()
    story.fleet.place("killed", priority=6)
    story.until_leads(standby)
    story.fleet.until(lambda: not ready(url_of(standby))["others"], "its health says that the others are gone")
    story.fleet.until(lambda: "is gone; its last word was that it leads" in standby.said(), "its log says so too")


def test_the_standby_on_the_ray_that_was_killed_has_ended_with_one_sentence(story: Pair) -> None:
    third = story.services[2]
    story.fleet.until(lambda: third.process.poll() is not None, "it ends")
    assert third.process.poll() == _REFUSED
    assert third.said().strip().splitlines()[-1].startswith("clearway: the Ray cluster has ended, and our roles")


def test_one_that_is_told_to_stop_hands_over_at_once(story: Pair) -> None:
    leader = next(one for one in story.services if one.process.poll() is None)
    standby = story.start()
    story.settled(leader, standby)
    assert leader.end() == 0
    story.until_leads(standby)
    story.fleet.place("handed-over", priority=7)


def test_there_was_one_writer_all_along(story: Pair) -> None:
    report = story.fleet.report()
    epochs = story.epochs()
    assert report.broken == []
    gangs = ("first", "frozen", "thawed", "beside", "killed", "handed-over")
    assert {f"default/{gang}" for gang in gangs} <= report.waited_ms.keys()
    assert epochs == sorted(epochs)
    assert len(set(epochs)) == 4


def test_one_whose_broker_died_ends_at_one_signal(story: Pair) -> None:
    service = next(one for one in story.services if one.process.poll() is None)
    ending = Ending(service.process)
    story.broker.kill()
    until(lambda: "broker unreachable" in service.said(), service.said())
    _, took_s = ending.by(signal.SIGTERM)
    assert took_s < SIGNAL_S, service.said()
    assert ending.folders() == set()
