"""When the ingestor asks the fleet for a full list, and what holds until it has come."""

import pytest
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from actors.broker.bus import EVENTS, SNAPSHOTS
from actors.configuration.settings import Settings, TelemetrySettings
from actors.ingestion.ingestor import Ingestor
from actors.ingestion.list_requests import LIST_WITHIN_S
from actors.ingestion.loop import IngestLoop
from actors.observability.telemetry import start as start_telemetry
from actors.protocol.envelopes import Outgoing
from actors.protocol.full_list import cut
from tests.support.told_world import CLUSTER, World, drained


@pytest.fixture
def world() -> World:
    made = World()
    made.list_fleet()
    return made


def test_a_state_that_no_list_has_completed_is_said_to_be_unlisted(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.ingestor().checkpoint()
    world.tell("task_started", task="default/train-0", node="n1")
    world.bus._log(EVENTS).drop(2)
    reader = InMemoryMetricReader()
    telemetry = start_telemetry(TelemetrySettings(), "test", reader=reader)
    loop = IngestLoop(Settings(fleet="told"), world.bus, telemetry, now_s=lambda: world.now)
    assert loop.turn(0) is None
    world.now += 5.0
    assert loop.turn(0) is None
    assert loop.unlisted
    assert "unlisted for 0 s: nothing is decided before the fleet lists what it has" in caplog.text
    assert figure(reader, "clearway.state.unlisted") == pytest.approx(5.0, abs=0.1)
    world.list_fleet(list_id="again")
    assert loop.turn(0) is not None
    world.now += 5.0
    loop.turn(0)
    assert not loop.unlisted
    assert figure(reader, "clearway.state.unlisted") == 0.0


def figure(reader: InMemoryMetricReader, name: str) -> float:
    """The newest value of a gauge."""
    data = reader.get_metrics_data()
    assert data is not None
    found = [
        metric.data.data_points[0].value
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
        if metric.name == name
    ]
    return float(found[0])


def test_a_start_without_anything_asks_for_a_full_list() -> None:
    world = World()
    ingestor = world.ingestor()
    assert world.asked() == ["nothing is known yet"]
    world.list_fleet()
    assert drained(ingestor).state.listed
    assert len(world.asked()) == 1


def test_a_list_that_does_not_come_is_asked_for_again() -> None:
    world = World()
    ingestor = world.ingestor()
    world.now += LIST_WITHIN_S - 1.0
    assert len(drained(ingestor).snapshot.nodes) == 0
    assert len(world.asked()) == 1
    world.now += 1.0
    ingestor.poll()
    assert world.asked() == ["nothing is known yet", "no list came within 15 s"]
    world.list_fleet()
    drained(ingestor)
    world.now += LIST_WITHIN_S
    ingestor.poll()
    assert len(world.asked()) == 2


def test_a_hole_in_the_fleets_own_count_asks_for_a_list_once(world: World) -> None:
    ingestor = world.ingestor()
    for sequence in (b"1", b"2", b"2", b"5", b"9"):
        world.say(world.outgoing("task_started", {"task": "default/train-0", "node": "n0"}), sequence=sequence)
    drained(ingestor)
    assert world.asked() == ["entries 3 to 4 of the fleet never came"]


def test_a_stream_that_begins_behind_a_checkpoint_asks_for_a_list(world: World) -> None:
    ingestor = world.ingestor()
    ingestor.checkpoint()
    lost = World()
    for entry in world.bus.follow(SNAPSHOTS, "0-0"):
        lost.bus.publish(SNAPSHOTS, entry.fields)
    recovered = Ingestor(lost.bus, consumer="second", now_s=lambda: lost.now)
    recovered.start()
    assert not recovered.state.listed  # and so nobody is told of what is left
    assert lost.asked() == ["entries are missing from events"]
    lost.now, lost.revision = world.now + 1, world.revision
    lost.list_fleet()
    assert drained(recovered).state.listed


def test_a_list_that_is_owed_is_asked_for_again_after_a_restart() -> None:
    world = World()
    world.list_fleet()
    ingestor = world.ingestor()
    for number in (1, 3):  # the second never came
        world.say(world.outgoing("queue_upserted", {"name": f"q{number}"}), sequence=str(number).encode())
    drained(ingestor)
    ingestor.checkpoint()
    assert world.asked() == ["entries 2 to 2 of the fleet never came"]
    again = world.ingestor("again")
    assert world.asked()[1:] == ["1 entries of the fleet never came"]
    world.list_fleet(list_id="at last")
    drained(again)
    assert again.state.holes == 0
    again.checkpoint()
    world.ingestor("third")
    assert len(world.asked()) == 2


def test_a_list_does_not_make_up_for_what_is_lost_after_it() -> None:
    world = World()
    world.list_fleet()
    ingestor = world.ingestor()
    world.say(world.outgoing("queue_upserted", {"name": "q1"}), sequence=b"1")
    world.list_fleet(list_id="between")
    world.say(world.outgoing("queue_upserted", {"name": "q3"}), sequence=b"3")
    drained(ingestor)
    assert ingestor.state.holes == 1
    world.now += LIST_WITHIN_S
    ingestor.poll()
    assert len(world.asked()) == 2


def test_a_list_whose_rest_never_comes_is_asked_for_again() -> None:
    world = World()
    world.list_fleet()
    ingestor = world.ingestor()
    parts = cut(CLUSTER, "torn", 100)
    world.say(Outgoing("fleet_listed", "fleet", 99, parts[0]), sequence=b"1")
    for again in (ingestor, None):
        reader = again if again is not None else world.ingestor("again")
        drained(reader)
        world.say(world.outgoing("queue_upserted", {"name": "q"}), sequence=b"9")
        asked = len(world.asked())
        world.now += LIST_WITHIN_S
        reader.poll()
        world.now += LIST_WITHIN_S
        reader.poll()
        assert len(world.asked()) > asked


def test_a_list_does_not_make_up_for_what_is_lost_between_its_parts() -> None:
    world = World()
    world.list_fleet()
    ingestor = world.ingestor()
    first, *rest = cut(CLUSTER, "torn", 200)
    assert rest
    world.say(Outgoing("fleet_listed", "fleet", 99, first), sequence=b"1")
    world.say(world.outgoing("queue_upserted", {"name": "q"}), sequence=b"3")
    for at, part in enumerate(rest):
        world.say(Outgoing("fleet_listed", "fleet", 99, part), sequence=str(4 + at).encode())
    drained(ingestor)
    assert ingestor._list_revision == 99
    assert ingestor.state.holes == 1
