"""`clearway run` and `clearway fleet` as processes: they find each other through a broker and stop when told."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from actors.broker.address import BrokerAddress
from actors.broker.bus import DECISIONS, EVENTS, SERVICES, START
from actors.broker.embedded_broker import EmbeddedBroker
from actors.broker.redis_bus import RedisBus
from actors.protocol.bodies import PlanCommitted
from actors.protocol.envelopes import Message, decode_decisions
from actors.protocol.presence import present

ROOT = Path(__file__).parents[2]
LIMIT_S = 90.0


def clearway(*arguments: str) -> subprocess.Popen[str]:
    """The command in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "CLEARWAY_FLEET": "served"}
    return subprocess.Popen(
        [sys.executable, "-m", "actors", *arguments], cwd="/", env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as running:
        yield running


def test_service_and_fleet_find_each_other_and_stop_cleanly(broker: EmbeddedBroker) -> None:
    fleet = clearway("fleet", "--redis-url", broker.url, "--every-s", "2")
    service = clearway("run", "--redis-url", broker.url, "--log-format", "json")
    try:
        bus = RedisBus(BrokerAddress(broker.url).connect("test"), "served")
        poison = bus.publish(EVENTS, {"b": b"no event at all"})
        evicting, after, deadline = None, START, time.monotonic() + LIMIT_S
        while evicting is None and time.monotonic() < deadline:
            for entry in bus.follow(DECISIONS, after, block_ms=500):
                after = entry.id
                for message in decode_decisions(entry):
                    if (
                        isinstance(message, Message)
                        and isinstance(message.body, PlanCommitted)
                        and message.body.evictions
                    ):
                        evicting = message.body
        assert evicting is not None
        explained = clearway("explain", "--redis-url", broker.url, str(evicting.preemptor))
        said, _ = explained.communicate(timeout=LIMIT_S)
        assert explained.returncode == 0
        assert f"for {evicting.preemptor}" in said
        assert "price: " in said
        # Its roles may have decided before all of them were there, and before the service knew who leads.
        while not any(one.state == "leads" for _, one in present(bus, time.time()).values()):
            assert time.monotonic() < deadline, "the service never says that it leads"
            bus.follow(SERVICES, bus.bounds(SERVICES).last, block_ms=500)
    finally:
        for process in (service, fleet):
            process.send_signal(signal.SIGTERM)
        ended = [(process.communicate(timeout=LIMIT_S), process.returncode) for process in (service, fleet)]
    for (_, complained), code in ended:
        assert code == 0, complained
        assert "Traceback" not in complained
    said_by_roles(ended[0][0][1], evicting.plan_id, poison)


def said_by_roles(log: str, plan: str, poison: str) -> None:
    """What every role says stands in the service's own log: what was decided, and what was refused."""
    lines = [json.loads(line) for line in log.splitlines()]
    assert {line["fleet"] for line in lines} == {"served"}
    (decided,) = [line for line in lines if line.get("plan") == plan and "evicts" in line["message"]]
    assert decided["role"] == "committer"
    assert len(decided["trace_id"]) == 32
    assert [line["level"] for line in lines if f"refused events {poison}" in line["message"]] == ["warning"]
    assert any(line["message"].startswith("leads") for line in lines)


def test_a_service_without_its_broker_says_so_and_still_stops_when_told() -> None:
    service = clearway("run", "--redis-url", "redis://127.0.0.1:1/0")
    assert service.stderr is not None
    said = next(line for line in service.stderr if "broker unreachable" in line)
    service.send_signal(signal.SIGTERM)
    service.communicate(timeout=LIMIT_S)
    assert "127.0.0.1:1" in said
    assert service.returncode == 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("run", "--redis-url", "http://nowhere"), "must begin with redis://"),
        (("run", "--profile", "nobodys"), "profile: expected one of"),
        (("fleet", "--inventory", "/nowhere.yaml"), "/nowhere.yaml: cannot be read"),
        (("explain",), "redis_url: expected the broker"),
        (("demo", "--settings", "/nowhere.toml"), "/nowhere.toml: cannot be read"),
    ],
)
def test_what_is_refused_is_one_sentence_and_code_2(arguments: tuple[str, ...], sentence: str) -> None:
    process = clearway(*arguments)
    _, complained = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 2
    assert sentence in complained
    assert complained.count("\n") == 1
