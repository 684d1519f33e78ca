"""The life of `clearway run`, beside `clearway fleet`, until it is told to stop; no password shows in any of it.

The tests are one story in the order in which they stand, since every start of a service costs seconds. Of a standby see
`test_standby.py`, of one that ends elsewhere in its life `test_ending.py`.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from prometheus_client.parser import text_string_to_metric_families
from typer.testing import CliRunner

from actors.broker.address import BrokerAddress
from actors.broker.bus import DEAD, DECISIONS, EVENTS, SPANS, START, STARVING
from actors.broker.embedded_broker import EmbeddedBroker
from actors.broker.redis_bus import RedisBus
from actors.cli.commands import app
from actors.processes.tree import descendants
from actors.protocol.bodies import PlanCommitted
from actors.protocol.envelopes import Message, decode_decisions
from actors.protocol.presence import present
from deploy import healthy
from tests.integration.services import SIGNAL_S, Command, Ending, asked, ready, until
from tests.support.pages import PODGROUP, asking

FLEET = "served"


class Life:
    """A service, what it works with, and what was found of it on the way."""

    def __init__(self, broker: EmbeddedBroker, folder: Path) -> None:
        self.broker, self._folder = broker, folder
        whole = urlsplit(broker.tcp_url)
        self.secret = str(whole.password)
        (folder / "password").write_text(self.secret + "\n")
        self._bare = f"redis://{whole.hostname}:{whole.port}/0"
        self.bus = RedisBus(BrokerAddress(broker.tcp_url).connect("test"), FLEET)
        self.service = self.started(
            "run", "--redis-url", self._bare, "--log-format", "json", CLEARWAY_SEARCHERS="1",
            CLEARWAY_LEASE_TTL_S="1.0", CLEARWAY_HEALTH="127.0.0.1:0", CLEARWAY_TELEMETRY__EXPORTER="console",
            CLEARWAY_REDIS_PASSWORD_FILE=str(folder / "password"),
        )  # fmt: skip
        self.ending = Ending(self.service.process)
        self.fleet: Command | None = None
        self.poison = ""
        self.evicting: PlanCommitted | None = None
        self.seen: list[str] = []

    def started(self, *arguments: str, **environment: str) -> Command:
        """A command for our fleet."""
        folder = self._folder / f"{len(list(self._folder.iterdir()))}-{arguments[0]}"
        folder.mkdir()
        return Command(folder, *arguments, CLEARWAY_FLEET=FLEET, **environment)

    def connected(self, *arguments: str) -> Command:
        """A command that knows the broker's whole address by its environment."""
        return self.started(*arguments, CLEARWAY_REDIS_URL=self.broker.tcp_url, CLEARWAY_TELEMETRY__EXPORTER="console")

    @property
    def health(self) -> str:
        """Where its health is served."""
        until(lambda: "health at " in self.service.complained(), "the log names the port")
        return self.service.complained().split("health at ")[1].split("/ready")[0]

    def await_state(self, state: str) -> None:
        """Wait until its health says so."""
        until(lambda: ready(self.health)["state"] == state, f"{state}: {self.service.complained()[-2_000:]}")

    def decided(self) -> Iterator[PlanCommitted]:
        """Every decision so far."""
        for entry in self.bus.follow(DECISIONS, START, count=10_000):
            for message in decode_decisions(entry):
                if isinstance(message, Message) and isinstance(message.body, PlanCommitted):
                    yield message.body

    def lines(self) -> list[dict[str, Any]]:
        """Its log, line by line. Beside it there is nothing but what the exporter writes, JSON as well."""
        text, at, found = self.service.complained().rstrip(), 0, []
        while at < len(text):
            one, end = json.JSONDecoder().raw_decode(text, at)
            if text[at:end].count("\n") == 0:
                found.append(one)
            at = end + len(text[end:]) - len(text[end:].lstrip())
        return found


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Life]:
    with EmbeddedBroker(tcp=True) as broker:
        made = Life(broker, tmp_path_factory.mktemp("life"))
        try:
            yield made
        finally:
            made.service.end()
            if made.fleet is not None:
                made.fleet.end()


def test_a_service_that_starts_says_so(life: Life) -> None:
    assert asked(f"{life.health}/live")[0] == 200
    assert ready(life.health)["state"] == "starts"
    assert asked(f"{life.health}/elsewhere")[0] == 404


def test_a_reload_is_refused_by_name_and_the_service_goes_on(life: Life) -> None:
    os.kill(life.service.process.pid, signal.SIGHUP)
    until(lambda: "SIGHUP is refused" in life.service.complained(), life.service.complained())
    assert life.service.process.poll() is None


def test_without_a_fleet_the_lease_is_given_back_and_its_health_says_why(life: Life) -> None:
    until(lambda: "leads no longer" in life.service.complained(), life.service.complained())
    code, said = asked(f"{life.health}/ready")
    assert code == 503
    assert json.loads(said)["state"] == "waits"
    assert "no fleet is listed" in (healthy.asked(f"{life.health}/ready") or "")


def test_it_finds_its_fleet_and_leads(life: Life) -> None:
    life.poison = life.bus.publish(EVENTS, {"b": b"no event at all"})
    life.fleet = life.connected("fleet", "--every-s", "2")
    life.await_state("leads")
    assert healthy.main([f"{life.health}/ready"]) == 0
    until(lambda: any(one.state == "leads" for _, one in present(life.bus, time.time()).values()), "others hear of it")


def test_what_it_decided_is_explained(life: Life) -> None:
    until(lambda: any(one.evictions for one in life.decided()), life.service.complained())
    life.evicting = next(one for one in life.decided() if one.evictions)
    explained = life.connected("explain", str(life.evicting.preemptor))
    assert explained.process.wait(60.0) == 0, explained.complained()
    assert f"for {life.evicting.preemptor}" in explained.said()
    assert "price: " in explained.said()


@pytest.mark.parametrize("words", asking(), ids=" ".join)
def test_a_command_on_a_page_that_asks_a_service_is_answered(words: list[str], life: Life) -> None:
    assert life.evicting is not None
    known = {"CLEARWAY_FLEET": FLEET, "CLEARWAY_REDIS_URL": life.broker.tcp_url}
    words = [str(life.evicting.preemptor) if word == PODGROUP else word for word in words]
    told = CliRunner(env=known).invoke(app, words)
    assert told.exit_code == 0, told.output
    assert told.stdout.strip()


def test_its_figures_are_those_of_every_role(life: Life) -> None:
    def families() -> dict[str, Any]:
        return {one.name: one for one in text_string_to_metric_families(asked(f"{life.health}/metrics")[1])}

    roles = {sample.labels["role"] for one in families().values() for sample in one.samples}
    assert roles >= {"run", "committer", "dispatcher", "ingestor"}
    until(
        lambda: any(one.value >= 1 for one in families()["clearway_evictions_tasks"].samples), "evictions are counted"
    )


def logged(pids: Iterable[int]) -> Iterator[str]:
    """What the processes have written into Ray's folder."""
    shown = [Path(f"/proc/{pid}/cmdline").read_text().split("\0") for pid in pids]
    folders = {word.partition("=")[2] for words in shown for word in words if word.startswith("--log_dir=")}
    assert folders
    for folder in folders:
        for file in Path(folder).rglob("*"):
            if file.is_file():
                yield file.read_text(errors="replace")


def test_when_its_broker_dies_every_process_says_so_and_no_password(life: Life) -> None:
    assert life.fleet is not None
    started = list(descendants(os.getpid()))
    assert len(started) > 6
    life.seen += [Path(f"/proc/{pid}/cmdline").read_text() for pid in started]
    life.seen += logged(started)
    life.seen += [repr(one.fields) for stream in (DECISIONS, SPANS, STARVING, DEAD)
                  for one in life.bus.follow(stream, START, count=10_000)]  # fmt: skip
    life.broker.kill()
    until(lambda: "broker unreachable" in life.fleet.complained(), "the fleet says so")
    roles: list[str] = []

    def written() -> bool:
        roles[:] = logged(descendants(os.getpid()))
        return all(any(word in one for one in roles) for word in ("broker unreachable", "trace_id"))

    until(written, "the roles say so, and their exporter is at work")
    life.seen += roles


def test_when_its_broker_is_back_it_leads_again(life: Life) -> None:
    life.broker.start()
    before = sum(1 for _ in life.decided())
    until(lambda: sum(1 for _ in life.decided()) > before, f"it decides: {life.service.complained()[-2_000:]}")
    life.await_state("leads")


def test_it_ends_cleanly_at_one_signal(life: Life) -> None:
    assert life.fleet is not None
    url = life.health
    assert life.ending.folders() != set()
    code, took_s = life.ending.by(signal.SIGTERM)
    assert took_s < SIGNAL_S, life.service.complained()
    assert code == 0
    assert life.ending.folders() == set()
    with pytest.raises(OSError, match="refused"):
        asked(f"{url}/live")
    assert life.fleet.end() == 0
    for one in (life.service, life.fleet):
        assert "Traceback" not in one.complained()


def test_its_log_has_what_every_role_decided_and_refused(life: Life) -> None:
    assert life.evicting is not None
    lines = life.lines()
    assert {line["fleet"] for line in lines} == {FLEET}
    plan = life.evicting.plan_id
    (decided,) = [line for line in lines if line.get("plan") == plan and "evicts" in line["message"]]
    assert decided["role"] == "committer"
    assert len(decided["trace_id"]) == 32
    assert [line["level"] for line in lines if f"refused events {life.poison}" in line["message"]] == ["warning"]
    assert any(line["message"].startswith("leads") for line in lines)


def test_a_password_showed_nowhere(life: Life) -> None:
    assert life.fleet is not None
    said = [text for one in (life.service, life.fleet) for text in (one.said(), one.complained())]
    assert "trace_id" in life.fleet.complained()
    assert sum(map(len, life.seen)) > 10_000
    assert [one for one in [*life.seen, *said] if life.secret in one] == []
