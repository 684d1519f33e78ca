"""The fleet beside a broker: how it numbers and cuts what it says."""

import signal
from contextlib import nullcontext
from typing import Any

import pytest
from pydantic import SecretStr

from actors.broker.address import ALONE
from actors.broker.bus import DEAD, DECISIONS, EVENTS, START
from actors.broker.memory_bus import MemoryBus
from actors.configuration.settings import Settings, TelemetrySettings
from actors.documents.safe_msgpack import WireLimits
from actors.fleets import process
from actors.fleets.inventory import load_inventory
from actors.fleets.process import GROUP, FleetLoop, FleetPace
from actors.fleets.simulated import SimulatedFleet
from actors.ingestion.ingestor import Ingestor
from actors.observability.telemetry import start as start_telemetry
from actors.protocol.bodies import Binding, PlanCommitted, ResyncRequested
from actors.protocol.envelopes import Outgoing, decode_decisions, decode_events, pack_decision
from tests.support.assembly import Clock, gang, rack_cluster

QUIET = FleetPace(every_s=0.0)


def loop_on(bus: MemoryBus, clock: Clock, pace: FleetPace = QUIET, **more: Any) -> FleetLoop:
    fleet = SimulatedFleet(rack_cluster(), seed=1, revision=int(clock.now))
    telemetry = start_telemetry(TelemetrySettings(), "fleet")
    return FleetLoop(fleet, load_inventory(), bus, telemetry, pace, now_s=clock, **more)


def numbers(bus: MemoryBus) -> list[bytes]:
    return [entry.fields["sequence"] for entry in bus.follow(EVENTS, START)]


@pytest.mark.parametrize("url", [None, SecretStr("redis://broker:6379/0")])
def test_a_fleet_that_no_other_process_finds_says_so(
    url: SecretStr | None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("write_log", "broker_for", "_serve"):
        monkeypatch.setattr(process, name, lambda *_: nullcontext())
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    assert process.run(Settings(redis_url=url), seed=1, every_s=0.0, inventory=None) == 0
    assert (ALONE in caplog.text) == (url is None)


def test_entries_are_counted_and_a_restart_counts_on() -> None:
    clock = Clock()
    bus = MemoryBus("test", clock)
    first = loop_on(bus, clock)
    first.open()
    first.lose("n0")
    first.turn(block_ms=1)
    assert numbers(bus) == [b"1", b"2"]
    clock.now += 1.0
    loop_on(bus, clock).open()
    assert numbers(bus) == [b"1", b"2", b"3"]


def test_a_fleet_that_was_started_twice_is_noticed() -> None:
    """Both count on from the newest entry."""
    clock = Clock()
    bus = MemoryBus("test", clock)
    first = loop_on(bus, clock, writer="first")
    first.open()
    clock.now += 1.0
    second = loop_on(bus, clock, writer="second")
    second.open()
    first._sent = second._sent
    ingestor = Ingestor(bus, consumer="test", now_s=clock)
    ingestor.start()
    for one, name in ((second, "theirs"), (first, "ours")):
        one._publish(one.fleet.submit(gang(name, 1, 1)))
    while ingestor._turn():
        pass
    assert "default/theirs" in ingestor.state.names.podgroups
    assert "default/ours" not in ingestor.state.names.podgroups
    letters = [entry.fields["reason"].decode() for entry in bus.follow(DEAD, START)]
    assert letters == ["writer: expected 'second', which listed the fleet last, found 'first': two connectors write"]


def test_an_entry_that_is_lost_on_the_way_is_missed() -> None:
    clock = Clock()
    bus, thinned = MemoryBus("test", clock), MemoryBus("test", clock)
    loop = loop_on(bus, clock)
    loop.open()
    for node in ("n0", "n1"):
        loop.lose(node)
        loop.turn(block_ms=1)
    for entry in bus.follow(EVENTS, START):
        if entry.fields["sequence"] != b"2":
            thinned.publish(EVENTS, entry.fields)
    Ingestor(thinned, consumer="test", now_s=clock).start()
    asked = [one for entry in thinned.follow(DECISIONS, START) for one in decode_decisions(entry)]
    assert [one.body.reason for one in asked] == ["entries 2 to 2 of the fleet never came"]


def test_an_entry_holds_as_many_events_as_the_settings_say() -> None:
    clock = Clock()
    bus = MemoryBus("test", clock)
    loop = loop_on(bus, clock, FleetPace(0.0, limits=Settings(events_per_entry=2).outgoing))
    loop._publish([event for at in range(5) for event in loop.fleet.submit(gang(f"g{at}", 1, 1))])
    assert [len(decode_events(entry)) for entry in bus.follow(EVENTS, START)] == [2, 2, 1]


def test_the_wire_allows_no_more_than_its_limits_whatever_the_fleet_would_send() -> None:
    assert Settings(events_per_entry=500, limits={"messages": 100}).outgoing == WireLimits(messages=100)


def test_a_restart_obeys_what_the_one_before_was_handed_and_never_acknowledged() -> None:
    clock = Clock()
    bus = MemoryBus("test", clock)
    made = PlanCommitted(plan_id="p", epoch=1, action="allocate", bindings=[Binding(task="default/g-0", node="n0")])
    bus.publish(DECISIONS, pack_decision(Outgoing("plan_committed", "p", 1, made)))
    bus.join(DECISIONS, GROUP)
    bus.read(DECISIONS, GROUP, "a fleet that died")
    loop = loop_on(bus, clock)
    loop.fleet.submit(gang("g", 1, 1))
    loop.open()
    assert loop.fleet.tally.started == 1
    assert bus.lags(DECISIONS)[GROUP].pending == 0


def test_a_decision_whose_delivery_was_lost_is_obeyed_at_the_next_turn() -> None:
    clock = Clock()
    bus = MemoryBus("test", clock)
    loop = loop_on(bus, clock)
    loop.fleet.submit(gang("g", 1, 1))
    loop.open()
    made = PlanCommitted(plan_id="p", epoch=1, action="allocate", bindings=[Binding(task="default/g-0", node="n0")])
    bus.publish(DECISIONS, pack_decision(Outgoing("plan_committed", "p", 1, made)))
    bus.read(DECISIONS, GROUP, loop._consumer)  # handed out, and the answer never came
    loop.turn(block_ms=1)
    assert loop.fleet.tally.started == 1
    assert bus.lags(DECISIONS)[GROUP].pending == 0


def test_a_fleet_whose_events_are_not_read_stands_still_until_they_are() -> None:
    clock, waits = Clock(), []
    bus = MemoryBus("test", clock)
    loop = loop_on(bus, clock, FleetPace(0.0, window_bytes=100), pause=waits.append)
    loop.open()
    made = PlanCommitted(plan_id="p", epoch=1, action="allocate", bindings=[Binding(task="default/g-0", node="n0")])
    loop._publish(loop.fleet.submit(gang("g", 1, 1)))
    bus.publish(DECISIONS, pack_decision(Outgoing("plan_committed", "p", 1, made)))
    for _ in range(3):
        loop.turn(block_ms=1)
    assert len(waits) == 3
    assert loop.fleet.tally.started == 0
    ingestor = Ingestor(bus, consumer="test", now_s=clock)
    ingestor.start()
    loop.turn(block_ms=1)
    assert len(waits) == 3
    assert loop.fleet.tally.started == 1


def test_a_fleet_that_was_away_until_decisions_were_trimmed_tells_a_list() -> None:
    clock = Clock()
    bus = MemoryBus("test", clock, unread_kept_s=3_600.0)
    loop = loop_on(bus, clock)
    loop.open()
    ids = []
    for _ in range(3):
        clock.now += 1.0
        ids.append(bus.publish(DECISIONS, {"batch": b"\x90"}))
    loop.turn(block_ms=1)
    clock.now += 100.0
    ids.append(bus.publish(DECISIONS, {"batch": b"\x90"}))
    loop.turn(block_ms=1)
    assert len(numbers(bus)) == 1  # away for a while, but nothing is missing
    for _ in range(2):
        ids.append(bus.publish(DECISIONS, {"batch": b"\x90"}))
        clock.now += 1.0
    clock.now += 4_000.0
    assert bus.trim(DECISIONS, covered=ids[-1]) == 5
    loop.turn(block_ms=1)
    assert len(numbers(bus)) == 2


def forgotten() -> tuple[MemoryBus, FleetLoop, Clock]:
    """A fleet that has listed what it has, on a broker that has lost all since."""
    clock = Clock()
    bus = MemoryBus("test", clock)
    loop = loop_on(bus, clock)
    loop.open()
    clock.now += 1.0
    bus._logs = MemoryBus("test", clock)._logs
    bus.join(DECISIONS, GROUP)
    return bus, loop, clock


def test_a_fleet_lists_again_where_its_last_list_is_no_longer_in_the_stream() -> None:
    """That list ends behind what was read, and yet is not on its way: the broker has lost it."""
    bus, loop, clock = forgotten()
    ingestor = Ingestor(bus, consumer="test", now_s=clock)
    ingestor.start()
    for _ in range(2):  # asked once more, it waits: its list is there now
        loop.turn(block_ms=1)
        assert bus.bounds(EVENTS).added == 1
        ask(bus)
    while ingestor._turn():
        pass
    assert ingestor.state.listed


def test_a_fleet_lists_again_although_it_has_said_more_since_its_list_was_lost() -> None:
    """What came later was taken for that list, and nothing was decided before the next request, 15 s later."""
    bus, loop, _ = forgotten()
    loop._publish(loop.fleet.submit(gang("late", 1, 8)))
    for _ in range(2):  # asked once more, it waits: its list is there now
        ask(bus)
        loop.turn(block_ms=1)
        assert bus.bounds(EVENTS).added == 2


def ask(bus: MemoryBus) -> None:
    """A request of a reader that has read nothing."""
    bus.publish(DECISIONS, pack_decision(Outgoing("resync_requested", "test", 0, ResyncRequested(reason="test"))))
