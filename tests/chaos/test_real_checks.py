"""What is asked of a real run, on histories that are made up: each breach is found, and only where there is one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from actors.broker.bus import DEAD, DECISIONS, EVENTS, Entry
from actors.broker.memory_bus import MemoryBus
from actors.protocol.bodies import PlanCommitted, PlanWithdrawn
from actors.protocol.envelopes import Outgoing, pack_decision
from tests.chaos import real_checks
from tests.chaos.memory_world import World
from tests.chaos.real_checks import Replayed, replayed
from tests.chaos.real_history import History
from tests.chaos.real_ray import Worker
from tests.chaos.schedule import drawn
from tests.support.assembly import Clock, gang


def decided(plan: str, epoch: int) -> Outgoing:
    body = PlanCommitted(plan_id=plan, epoch=epoch, action="gangpreempt")
    return Outgoing("plan_committed", plan, 0, body)


def taken_back(plan: str, epoch: int) -> Outgoing:
    return Outgoing("plan_withdrawn", plan, 0, PlanWithdrawn(plan_id=plan, epoch=epoch, reason="the need is gone"))


def entries(*sent: Outgoing) -> list[Entry]:
    return [Entry(DECISIONS, f"{at}-0", pack_decision(one)) for at, one in enumerate(sent, 1)]


# -- one writer --------------------------------------------------------------------------------------------------------


def test_what_is_written_under_an_earlier_lease_is_found() -> None:
    late = entries(decided("a", 1), taken_back("a", 2), decided("b", 1), decided("c", 2))
    assert real_checks._one_writer(late) == ["decision 3-0 was recorded under epoch 1, after one under epoch 2"]
    assert real_checks._one_writer(entries(decided("a", 1), decided("b", 1), taken_back("b", 2))) == []


# -- verdicts and decisions --------------------------------------------------------------------------------------------


def with_verdicts(said: dict[str, str]) -> Any:
    rows = {key.encode(): f"1 {entry} accepted".encode() for key, entry in said.items()}
    link = SimpleNamespace(ask=lambda call: call(SimpleNamespace(hgetall=lambda _: rows)))
    return SimpleNamespace(link=link, settings=SimpleNamespace(fleet="chaos"))


@pytest.mark.parametrize(
    ("said", "wrong"),
    [
        ({"a": "1-0", "a:withdrawn": "2-0", "refused": "-"}, []),
        ({"a": "1-0"}, ["a:withdrawn: the ledger says it stands at None, the stream has it at 2-0"]),
        (
            {"a": "1-0", "a:withdrawn": "2-0", "b": "9-0"},
            ["b: the ledger says it stands at 9-0, the stream has it at None"],
        ),
        ({"a": "-", "a:withdrawn": "2-0"}, ["a: the ledger says it stands at None, the stream has it at 1-0"]),
    ],
    ids=["as it must be", "a decision without a verdict", "a verdict without a decision", "a refusal that was decided"],
)  # fmt: skip
def test_verdicts_and_decisions_that_do_not_belong_together_are_found(said: dict[str, str], wrong: list[str]) -> None:
    decisions = entries(decided("a", 1), taken_back("a", 1))
    assert real_checks._verdicts(with_verdicts(said), decisions) == wrong


# -- dead letters ------------------------------------------------------------------------------------------------------


def buried(letters: Sequence[tuple[str, str]], refused: Sequence[str]) -> list[str]:
    bus = MemoryBus("chaos", Clock())
    for entry, reason in letters:
        bus.publish(DEAD, {"stream": b"events", "entry": entry.encode(), "index": b"0", "reason": reason.encode()})
    made: Any = SimpleNamespace(refused=tuple(("events", entry, 0) for entry in refused))
    return real_checks._buried(SimpleNamespace(bus=bus), made)  # type: ignore[arg-type]


def test_what_is_refused_and_not_buried_or_buried_twice_or_without_a_reason_is_found() -> None:
    assert buried([("1-0", "why")], ["1-0"]) == []
    assert buried([], ["1-0"]) == ["('events', '1-0', 0) was refused 1 times and buried 0 times"]
    assert buried([("1-0", "why")], []) == ["('events', '1-0', 0) was refused 0 times and buried 1 times"]
    twice = buried([("1-0", "why"), ("1-0", "why")], ["1-0"])
    assert twice == ["('events', '1-0', 0) was refused 1 times and buried 2 times"]
    assert any("without a reason" in sentence for sentence in buried([("1-0", "")], ["1-0"]))


# -- who ended ---------------------------------------------------------------------------------------------------------


def ended(role: str, restarts: int, struck: int, raylets: bool = False) -> list[str]:
    workers = [Worker(role, "a", 1, "n", "ALIVE", restarts)]
    there = SimpleNamespace(struck=Counter(a=struck), workers=lambda: workers)
    return real_checks._ended_alone(SimpleNamespace(schedule=SimpleNamespace(raylets=raylets), raylets=there))  # type: ignore[arg-type]


def test_a_role_that_ended_more_often_than_it_was_struck_is_found() -> None:
    assert ended("committer", 2, 1) == ["a committer ended 2 times and was struck 1 times"]
    assert ended("committer", 1, 1) == ended("searcher", 3, 0) == ended("committer", 2, 1, raylets=True) == []


# -- what stays in the streams -----------------------------------------------------------------------------------------


def test_an_entry_that_changed_or_went_before_it_was_trimmed_is_found() -> None:
    bus = MemoryBus("chaos", Clock())
    history = History(bus)
    ids = [bus.publish(EVENTS, {"batch": bytes([at])}) for at in range(3)]
    world: Any = SimpleNamespace(history=history)
    history.keep()
    assert real_checks._kept(world) == []
    log = bus._log(EVENTS)
    log.entries[1] = Entry(EVENTS, ids[1], {"batch": b"other"})
    assert real_checks._kept(world) == [f"entry {ids[1]} of {EVENTS} was seen and is not there as it was"]
    del log.ids[2], log.entries[2]
    assert len(real_checks._kept(world)) == 2


# -- the same state ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def played() -> World:
    """A history without faults, and the ingestor that lived through it."""
    world = World(drawn(1))
    for at in range(8):
        if at == 2:
            world.connector.say(world.connector.fleet.submit(gang("late", 2, 4)))
        world.turn()
    return world


def same_state(played: World, truth: Any = None, events: int | None = None) -> list[str]:
    """What is said of its checkpoint, against its replay, or that of fewer events."""
    before, after = played.bus.history[EVENTS], played.bus.history.get(DECISIONS, [])
    made: Replayed = replayed(before[:events], after)
    fleet = SimpleNamespace(truth=lambda: real_checks.told(made) if truth is None else truth)
    return real_checks._same_state(SimpleNamespace(bus=played.bus, fleet=fleet), made, before[:events], after)  # type: ignore[arg-type]


def test_a_fleet_that_has_another_state_than_the_replay_is_found(played: World) -> None:
    assert played.ingest is not None
    assert same_state(played) == ["the ingestor left no checkpoint"]
    played.ingest.ingestor.checkpoint()
    assert same_state(played) == []
    found = same_state(played, truth={})
    assert found
    assert all(re.match(r"\S+: the fleet has it None, the replay \(", sentence) for sentence in found)


def test_an_ingestor_that_knows_what_no_replay_has_is_found(played: World) -> None:
    assert played.ingest is not None
    played.ingest.ingestor.checkpoint()
    (found,) = same_state(played, events=1)
    assert found.startswith("the ingestor's state differs from its replay: default/late-0 is ")
