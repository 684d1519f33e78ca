"""When the ingestor asks the fleet for a full list, and what holds until it has come."""

from typing import Any

import pytest
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from actors.broker.bus import EVENTS, SNAPSHOTS
from actors.ingestion.ingestor import Ingestor
from actors.ingestion.list_requests import LIST_WITHIN_S
from actors.protocol.envelopes import Outgoing
from actors.protocol.full_list import cut
from tests.support.measured import figure
from tests.support.told_world import CLUSTER, World, drained, task

#: An event about an object of each kind, each about another one.
EVERY_KIND: list[tuple[str, dict[str, Any]]] = [
    ("node_upserted", {"name": "n3", "allocatable": {"cpu": 4, "pods": 10}}),
    ("topology_changed", {"topology": {"levels": ["rack"], "labels": {"rack": "rack"}}}),
    ("queue_upserted", {"name": "dev"}),
    ("priority_class_upserted", {"name": "high", "value": 2}),
    ("budget_upserted", {"name": "b", "disruptions_allowed": 2}),
    ("podgroup_upserted", {"name": "train", "queue": "ml"}),
    ("task_upserted", {"podgroup": "default/train", "task": {"name": "train-2"}}),
    ("task_started", {"task": "default/train-0", "node": "n0"}),
    ("task_terminating", {"task": "default/train-1"}),
]


def test_a_state_that_no_list_has_completed_is_said_to_be_unlisted(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.ingestor().checkpoint()
    world.tell("task_started", task="default/train-0", node="n1")
    world.bus._log(EVENTS).drop(2)
    reader = InMemoryMetricReader()
    loop = world.loop(reader)
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


def test_a_hole_in_the_fleets_own_count_asks_for_a_list_once(world: World, ingestor: Ingestor) -> None:
    for sequence in (b"1", b"2", b"2", b"5", b"9"):
        world.say(world.outgoing("task_started", {"task": "default/train-0", "node": "n0"}), sequence=sequence)
    drained(ingestor)
    assert world.asked() == ["entries 3 to 4 of the fleet never came"]


def test_a_stream_that_begins_behind_a_checkpoint_asks_for_a_list(world: World, ingestor: Ingestor) -> None:
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


def test_a_list_that_is_owed_is_asked_for_again_after_a_restart(world: World, ingestor: Ingestor) -> None:
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


def test_a_list_does_not_make_up_for_what_is_lost_after_it(world: World, ingestor: Ingestor) -> None:
    world.say(world.outgoing("queue_upserted", {"name": "q1"}), sequence=b"1")
    world.list_fleet(list_id="between")
    world.say(world.outgoing("queue_upserted", {"name": "q3"}), sequence=b"3")
    drained(ingestor)
    assert ingestor.state.holes == 1
    world.now += LIST_WITHIN_S
    ingestor.poll()
    assert len(world.asked()) == 2


def test_a_list_whose_rest_never_comes_is_asked_for_again(world: World, ingestor: Ingestor) -> None:
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


def test_a_list_does_not_make_up_for_what_is_lost_between_its_parts(world: World, ingestor: Ingestor) -> None:
    first, *rest = cut(CLUSTER, "torn", 200)
    assert rest
    world.say(Outgoing("fleet_listed", "fleet", 99, first), sequence=b"1")
    world.say(world.outgoing("queue_upserted", {"name": "q"}), sequence=b"3")
    for at, part in enumerate(rest):
        world.say(Outgoing("fleet_listed", "fleet", 99, part), sequence=str(4 + at).encode())
    drained(ingestor)
    assert ingestor.folding.list_revision == 99
    assert ingestor.state.holes == 1


def numbered(world: World, sequence: int, kind: str, body: dict[str, Any], revision: int) -> None:
    """An entry with the fleet's own number and a revision of its own choice."""
    world.say(world.outgoing(kind, body, revision), sequence=str(sequence).encode())


def listed(world: World, sequence: int, revision: int, list_id: str, **other: Any) -> None:
    (whole,) = cut({**CLUSTER, **other}, list_id, 1 << 19)
    world.say(Outgoing("fleet_listed", "fleet", revision, whole), sequence=str(sequence).encode())


@pytest.mark.parametrize("first", [0, 1])
def test_a_count_of_entries_that_begins_anew_asks_for_a_list_and_goes_on(first: int) -> None:
    world = World()
    listed(world, 1, 100, "first")
    ingestor = world.ingestor()
    for at in range(2, 5):
        numbered(world, at, "task_started", {"task": "default/train-0", "node": "n0"}, 100 + at)
    numbered(world, first, "task_started", {"task": "default/train-1", "node": "n1"}, 200)
    drained(ingestor)
    assert world.asked() == [f"the fleet counts its entries anew: {first} came after 4"]
    assert task(ingestor, "train-1")["node"] == "n1"  # revisions decide what is old
    listed(world, first + 1, 201, "second")
    drained(ingestor)
    assert (ingestor.state.holes, ingestor.state.sequence, len(world.asked())) == (0, first + 1, 1)
    numbered(world, first + 3, "queue_upserted", {"name": "q"}, 202)
    drained(ingestor)
    assert world.asked()[1:] == [f"entries {first + 2} to {first + 2} of the fleet never came"]
    assert world.letters() == []


@pytest.mark.parametrize("restarts", [False, True])
def test_revisions_that_begin_anew_are_refused_and_do_not_pass_for_old_news(restarts: bool) -> None:
    world = World()
    listed(world, 1, 100, "first")
    ingestor = world.ingestor()
    for at, (kind, body) in enumerate(EVERY_KIND, 2):
        numbered(world, at, kind, body, 100 + at)
    listed(world, 1, 1, "second", podgroups=[])
    if restarts:
        drained(ingestor).checkpoint()
        ingestor = world.ingestor("again")
    for at, (kind, body) in enumerate(EVERY_KIND, 2):
        numbered(world, at, kind, body, at)
    numbered(world, len(EVERY_KIND) + 2, "queue_upserted", {"name": "new"}, 9)
    drained(ingestor)
    found = [f"revision: expected more than {100 + at}, its newest, found {at}" for at in range(2, len(EVERY_KIND) + 2)]
    assert world.letters() == ["revision: expected more than 100, its newest, found 1", *found]
    assert "new" in ingestor.state.names.queues
    listed(world, len(EVERY_KIND) + 3, 101, "third", podgroups=[])
    for at, revision, letters in ((4, 106, 2), (6, 107, 3)):  # the podgroup is gone, the newest other news had 106
        numbered(world, len(EVERY_KIND) + at, "priority_class_upserted", {"name": "high", "value": 3}, 1)
        listed(world, len(EVERY_KIND) + at + 1, revision, f"list {at}", podgroups=[])
        drained(ingestor)
        assert len(world.letters()) == len(found) + letters
    numbered(world, len(EVERY_KIND) + 8, "priority_class_upserted", {"name": "high", "value": 3}, 1)
    drained(ingestor)
    assert ingestor.state.holes == 0
    assert len(world.letters()) == len(found) + 3


def test_an_entry_that_is_sent_again_begins_no_count(world: World, ingestor: Ingestor) -> None:
    for sequence in (1, 1, 2, 3, 4, 3, 2, 4, 5):
        numbered(world, sequence, "queue_upserted", {"name": f"q{sequence}"}, 100 + sequence)
    drained(ingestor)
    assert (world.asked(), world.letters()) == ([], [])


def test_lists_that_are_counted_anew_are_refused_and_another_is_asked_for() -> None:
    world = World()
    world.list_fleet(list_id="first")
    world.say(world.outgoing("task_started", {"task": "default/train-0", "node": "n0"}, 50))
    ingestor = world.ingestor()
    world.revision = 0  # its connector begins anew, and numbers no entries
    world.list_fleet({**CLUSTER, "podgroups": []}, list_id="second")
    drained(ingestor)
    assert world.asked() == ["the fleet counts its lists anew: revision 1 came after 1"]
    world.list_fleet(list_id="third")  # above the list before, and not above all else
    old = world.outgoing("task_terminating", {"task": "default/train-0"})
    world.say(old)
    drained(ingestor)
    assert ingestor.folding.list_revision == 2
    refused = [f"revision: expected more than {newest}, its newest, found {at}" for newest, at in ((1, 1), (50, 3))]
    assert world.letters() == refused
    world.revision = 50
    world.list_fleet(list_id="fourth")
    world.say(old)
    drained(ingestor)
    assert (len(world.asked()), world.letters(), ingestor.state.holes) == (1, refused, 0)


@pytest.mark.parametrize("restarts", [False, True])
def test_a_list_that_comes_twice_begins_no_count(restarts: bool) -> None:
    world = World()
    for list_id in ("first", "second"):
        world.list_fleet(list_id=list_id, part_bytes=200)
    ingestor = world.ingestor()
    if restarts:
        ingestor.checkpoint()
        ingestor = world.ingestor("again")
    world.revision -= 1
    world.list_fleet(list_id="second", part_bytes=200)
    drained(ingestor)
    assert (world.asked(), world.letters()) == ([], [])


def test_a_list_of_other_content_under_the_same_name_and_revision_begins_a_count(
    world: World, ingestor: Ingestor
) -> None:
    world.revision = 0
    world.list_fleet({**CLUSTER, "podgroups": []})
    drained(ingestor)
    assert world.asked() == ["the fleet counts its lists anew: revision 1 came after 1"]


def test_an_older_list_in_an_entry_that_is_sent_again_begins_no_count() -> None:
    world = World()
    for at in (1, 2, 1, 3, 2):
        listed(world, at + 1, at, f"list {at}")
    ingestor = world.ingestor()
    assert (world.asked(), world.letters(), ingestor.folding.list_revision) == ([], [], 3)


def test_a_hole_after_an_entry_with_the_number_0_asks_for_a_list() -> None:
    world = World()
    listed(world, 0, 1, "first")
    ingestor = world.ingestor()
    numbered(world, 2, "queue_upserted", {"name": "q"}, 3)
    drained(ingestor)
    assert world.asked() == ["entries 1 to 1 of the fleet never came"]


@pytest.mark.parametrize("first", [0, 1])
def test_a_count_that_begins_anew_after_its_first_entry_is_known_by_the_list(first: int) -> None:
    world = World()
    listed(world, first, 1, "before the restart")
    ingestor = world.ingestor()
    listed(world, first, 1, "after it")
    drained(ingestor)
    assert world.asked() == ["the fleet counts its lists anew: revision 1 came after 1"]
    assert world.letters() == ["revision: expected more than 1, its newest, found 1"]
