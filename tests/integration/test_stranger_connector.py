"""docs/protocol.md is enough to write a connector: one that knows nothing else drives the pipeline, broker and all."""

import ast
import sys
import time
from pathlib import Path

import pytest

from actors.broker.bus import DEAD, START
from actors.broker.embedded_broker import EmbeddedBroker
from actors.broker.redis_bus import RedisBus
from actors.broker.redis_client import RedisClient
from actors.broker.redis_ledger import RedisLedger
from actors.columns.name_directory import Directory
from actors.configuration.profiles import load_profile
from actors.configuration.settings import Settings, TelemetrySettings
from actors.observability.telemetry import start as start_telemetry
from actors.protocol.outcomes import Reports
from actors.search.dispatcher import Dispatcher
from actors.search.searcher import Searcher
from pipeline.actions.backoff import Backoff
from tests.integration.stranger import Stranger
from tests.support.assembly import Assembly

TURNS = 60


class Served(Assembly):
    """Every role in this process, the broker a real one, and a fleet that somebody else speaks for."""

    def __init__(self, client: RedisClient, fleet: str) -> None:
        self.clock = time.time
        self.bus, self.ledger = RedisBus(client, fleet), RedisLedger(client, fleet)
        self.settings = Settings(fleet=fleet, checkpoint_every_s=1e6)
        self.telemetry = start_telemetry(TelemetrySettings(), "test")
        self.policy = load_profile("default")
        self.restart_ingestor()
        self.directory = Directory()
        self.committer = self.new_committer("first")
        self.reports = Reports(self.bus)
        here = Searcher(self.policy, self.telemetry)
        self.dispatcher = Dispatcher(
            self.policy, here, here, self.commit, self.telemetry, now_s=time.time, backoff=Backoff(seed=1)
        )

    def round(self) -> None:
        """Everybody on our side."""
        self.committer.lead()
        if self.hear():
            self.dispatcher.cycle(self.news)


def test_the_stranger_uses_nothing_of_ours() -> None:
    tree = ast.parse((Path(__file__).parent / "stranger.py").read_text(encoding="utf-8"))
    named = {one.module or "" for one in ast.walk(tree) if isinstance(one, ast.ImportFrom)}
    named |= {alias.name for one in ast.walk(tree) if isinstance(one, ast.Import) for alias in one.names}
    assert {name.split(".")[0] for name in named} - set(sys.stdlib_module_names) == {"redis", "msgpack"}


def test_a_stranger_lists_its_fleet_obeys_and_the_history_is_clean(
    broker: EmbeddedBroker, client: RedisClient, fleet_name: str
) -> None:
    stranger, ours = Stranger(broker.url, fleet_name), Served(client, fleet_name)
    stranger.join()
    ours.round()  # nothing is known yet, so a full list is asked for, and the stranger gives it
    assert stranger.turn() == 1
    stranger.nonsense()
    stranger.submit("big", count=2, priority=10)
    for at in range(TURNS):
        ours.round()
        stranger.turn(dies=at % 2 == 0)
        if len(stranger.running("big")) == 2:
            break
    else:
        pytest.fail("the gang did not start")
    while stranger.turn():
        pass
    ours.round()
    assert len({stranger.nodes[node]["rack"] for node in stranger.running("big") if node}) == 1
    assert stranger.seen_twice > 0
    report = ours.report()
    assert report.broken == []
    assert report.placed == 1
    reasons = [entry.fields["reason"].decode() for entry in ours.bus.follow(DEAD, START)]
    assert [reason.split(":")[0] for reason in reasons] == ["version", "kind", "message", "batch", "entry"]
    assert "n9" in ours.ingest.ingestor.state.names.nodes
