"""A shadow decides and records, and no connector hears of it."""

from __future__ import annotations

import pytest

from actors.broker.bus import DECISIONS, EVENTS, SNAPSHOTS, START, Bus
from actors.broker.redis_bus import RedisBus
from actors.broker.redis_client import RedisClient
from actors.broker.redis_ledger import RedisLedger
from actors.configuration.settings import Settings
from actors.ingestion.loop import IngestLoop
from actors.protocol.bodies import PlanCommitted, ResyncRequested
from actors.protocol.envelopes import Message, Outgoing, decode_decisions, pack
from actors.search.dispatcher import Dispatcher
from actors.search.searcher import Searcher
from tests.integration.test_stranger_connector import Served
from tests.support.assembly import gang, rack_cluster


class Shadow(Served):
    """Every role in this process, on the streams of a shadow."""

    def __init__(self, client: RedisClient, fleet: str) -> None:
        super().__init__(client, fleet)
        self.bus = RedisBus(client, fleet, shadow=True)
        self.ledger = RedisLedger(client, fleet, shadow=True)
        self.settings = Settings(fleet=fleet, checkpoint_every_s=1e-3, shadow=True)
        self.restart_ingestor()
        self.committer = self.new_committer("shadow")
        here = Searcher(self.policy, self.telemetry)
        self.dispatcher = Dispatcher(self.policy, here, here, self.commit, self.telemetry, now_s=self.clock)


def bodies(bus: Bus) -> list[object]:
    entries = bus.follow(DECISIONS, START, count=1_000)
    return [one.body for entry in entries for one in decode_decisions(entry) if isinstance(one, Message)]


@pytest.fixture
def decided(client: RedisClient, fleet_name: str) -> tuple[RedisBus, Shadow]:
    """A full rack, a gang that is urgent, and a shadow that has decided."""
    theirs, shadow = RedisBus(client, fleet_name), Shadow(client, fleet_name)
    cluster = rack_cluster(racks=1)
    cluster["podgroups"] = [gang(f"low{at}", 1, 8, nodes=[f"n{at}"]) for at in range(4)]
    cluster["podgroups"].append(gang("urgent", 2, 8, priority=5))
    shadow.round()
    body = {"list_id": "1", "part": 0, "parts": 1, "cluster": cluster}
    for entry in pack([Outgoing("fleet_listed", "fleet", 1, body)]):
        theirs.publish(EVENTS, entry)
    for _ in range(3):
        shadow.round()
    return theirs, shadow


def test_what_a_shadow_decides_stands_in_a_stream_of_its_own(decided: tuple[RedisBus, Shadow]) -> None:
    theirs, shadow = decided
    (made,) = bodies(shadow.bus)
    assert isinstance(made, PlanCommitted)
    assert (made.preemptor, len(made.evictions)) == ("default/urgent", 2)
    assert {type(body) for body in bodies(theirs)} == {ResyncRequested}, "that it wants a list is all that is heard"


def test_a_service_that_starts_after_a_shadow_knows_nothing_of_it(
    decided: tuple[RedisBus, Shadow], fleet_name: str
) -> None:
    theirs, shadow = decided
    shadow.ingest.close()
    assert shadow.bus.bounds(SNAPSHOTS).length > 0
    assert theirs.bounds(SNAPSHOTS).length == 0
    after = IngestLoop(Settings(fleet=fleet_name), theirs, shadow.telemetry)
    after.turn(block_ms=0)
    assert after.snapshot.decided <= 0


def test_a_shadow_stands_by_beside_a_service_that_leads(client: RedisClient, fleet_name: str) -> None:
    shadow = Shadow(client, fleet_name)
    RedisLedger(client, fleet_name).acquire("the service", 60_000)
    assert not shadow.committer.lead()
    assert shadow.committer.leadership.leader == "the service"
