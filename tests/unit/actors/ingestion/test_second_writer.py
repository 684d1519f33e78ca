"""A connector that was started twice: its two processes write for one fleet, and that is noticed."""

from typing import Any

import pytest
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from actors.ingestion.list_requests import LIST_WITHIN_S
from actors.protocol.envelopes import Outgoing
from actors.protocol.full_list import cut
from tests.support.measured import figure
from tests.support.told_world import CLUSTER, World, drained, state_of, task


class Copy:
    """One of the processes, with counts of its own."""

    def __init__(self, world: World, name: str, sequence: int = 0, revision: int = 100) -> None:
        self.world, self.name, self.sequence, self.revision = world, name, sequence, revision

    def say(self, kind: str, **body: Any) -> None:
        self.revision += 1
        self._send(Outgoing(kind, f"{kind}-uid", self.revision, body))

    def list_fleet(self, part_bytes: int = 1 << 19, only: int | None = None, **other: Any) -> None:
        self.revision += 1
        for part in cut({**CLUSTER, **other}, f"{self.name}-{self.revision}", part_bytes)[:only]:
            self._send(Outgoing("fleet_listed", "fleet", self.revision, part))

    def _send(self, message: Outgoing) -> None:
        self.sequence += 1
        self.world.say(message, sequence=str(self.sequence).encode(), writer=self.name.encode())


def refused(expected: str, found: str) -> str:
    return f"writer: expected {expected!r}, which listed the fleet last, found {found!r}: two connectors write"


def test_of_two_writers_with_equal_counts_the_one_that_did_not_list_last_is_refused() -> None:
    world = World()
    first, second = Copy(world, "first"), Copy(world, "second", revision=200)
    first.list_fleet()
    ingestor = world.ingestor()
    first.say("task_started", task="default/train-0", node="n0")
    second.list_fleet()
    second.say("task_started", task="default/train-1", node="n1")
    first.say("task_started", task="default/train-2", node="n2")  # its count and revision are the second's own
    drained(ingestor)
    assert world.letters() == [refused("second", "first")]
    assert (task(ingestor, "train-1")["node"], task(ingestor, "train-2")["node"]) == ("n1", None)
    assert (ingestor.folding.writers, world.asked()) == (2, [])


def test_a_list_of_the_writer_that_was_refused_makes_up_for_it() -> None:
    world = World()
    first, second = Copy(world, "first"), Copy(world, "second", revision=200)
    for one in (first, second):
        one.list_fleet()
    ingestor = world.ingestor()
    first.revision = 300
    first.say("queue_upserted", name="lost")
    drained(ingestor)
    world.now += LIST_WITHIN_S
    ingestor.poll()
    assert world.asked() == ["no list came within 15 s"]
    first.list_fleet(queues=[*CLUSTER["queues"], {"name": "lost"}])  # the second was stopped meanwhile
    first.say("task_started", task="default/train-0", node="n0")
    drained(ingestor)
    assert "lost" in ingestor.state.names.queues
    assert task(ingestor, "train-0")["node"] == "n0"
    assert (len(world.letters()), ingestor.state.holes, ingestor.state.anew) == (1, 0, False)
    world.now += 61.0
    ingestor.poll()
    assert (ingestor.folding.writers, len(world.asked())) == (1, 1)


def test_a_connector_that_starts_again_and_lists_takes_over_without_a_word() -> None:
    world = World()
    Copy(world, "first", sequence=40).list_fleet()
    ingestor = world.ingestor()
    again = Copy(world, "again", revision=200)
    again.list_fleet()
    again.say("queue_upserted", name="new")
    drained(ingestor)
    assert (world.letters(), world.asked(), ingestor.folding.writers) == ([], [], 1)
    assert (ingestor.state.writer, ingestor.state.sequence, ingestor.state.holes) == ("again", 2, 0)


def test_a_second_writer_whose_list_is_not_above_the_newest_changes_nothing() -> None:
    world = World()
    first, second = Copy(world, "first", revision=500), Copy(world, "second", revision=0)
    first.list_fleet()
    ingestor = world.ingestor()
    second.list_fleet(podgroups=[])
    second.say("node_removed", node="n0")
    first.say("task_started", task="default/train-0", node="n0")
    drained(ingestor)
    assert world.letters() == [refused("first", "second")] * 2
    assert task(ingestor, "train-0")["node"] == "n0"


def test_a_list_that_a_second_writer_breaks_off_leaves_the_first_owed() -> None:
    world = World()
    first, second = Copy(world, "first"), Copy(world, "second", revision=200)
    first.list_fleet()
    ingestor = world.ingestor()
    second.list_fleet(200, only=1)
    drained(ingestor)
    world.now += LIST_WITHIN_S
    ingestor.poll()
    assert world.asked() == ["no list came within 15 s"]
    first.revision = 300
    first.list_fleet()
    drained(ingestor)
    assert (ingestor.state.writer, ingestor.state.holes, world.letters()) == ("first", 0, [])


def test_lists_of_two_writers_part_by_part_are_not_mixed() -> None:
    world = World()
    Copy(world, "first").list_fleet()
    ingestor = world.ingestor()
    first, second = (cut(CLUSTER, name, 200) for name in ("first", "second"))
    for at, (one, other) in enumerate(zip(first, second, strict=True)):
        world.say(Outgoing("fleet_listed", "fleet", 300, one), writer=b"first")
        world.say(Outgoing("fleet_listed", "fleet", 400, other), writer=b"second")
        drained(ingestor)
        assert (len(world.letters()), ingestor.state.writer) == (at, "second")
    assert ingestor.state.documents.revisions["fleet"] == 400
    assert set(world.letters()) == {refused("second", "first")}


def test_unreadable_entries_and_entries_without_a_name_replace_no_writer() -> None:
    world = World()
    Copy(world, "first").list_fleet()
    ingestor = world.ingestor()
    world.tell("queue_upserted", name="by hand")
    world.say(world.outgoing("queue_upserted", {"name": "q"}), writer=b"x" * 200)
    drained(ingestor)
    assert "by hand" in ingestor.state.names.queues
    assert world.letters() == ["writer: expected at most 128 bytes, found 200"]
    assert ingestor.state.writer == "first"


@pytest.mark.parametrize("restarts", [False, True])
def test_who_writes_is_known_after_a_restart(restarts: bool) -> None:
    world = World()
    first, second = Copy(world, "first"), Copy(world, "second", revision=200)
    first.list_fleet()
    second.list_fleet()
    ingestor = world.ingestor()
    if restarts:
        ingestor.checkpoint()
        ingestor = world.ingestor("again")
    first.say("queue_upserted", name="lost")
    drained(ingestor)
    assert world.letters() == [refused("second", "first")]
    assert state_of(world.ingestor("replay")) == state_of(ingestor)


def test_a_second_writer_is_a_figure() -> None:
    world = World()
    first, second = Copy(world, "first"), Copy(world, "second", revision=200)
    first.list_fleet()
    reader = InMemoryMetricReader()
    loop = world.loop(reader)
    loop.turn(0)
    assert figure(reader, "clearway.fleet.writers") == 1
    second.list_fleet()
    first.say("queue_upserted", name="lost")
    world.now += 5.0
    loop.turn(0)
    assert figure(reader, "clearway.fleet.writers") == 2
