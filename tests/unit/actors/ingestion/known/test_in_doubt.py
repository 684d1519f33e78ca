"""What is refused while entries before it are missing waits for a list, and then is judged by that."""

import pytest

from actors.broker.bus import EVENTS
from actors.ingestion.ingestor import Ingestor
from pipeline.cluster.tables import PENDING
from tests.support.told_world import World, drained, state_of, task


def behind_what_was_trimmed(world: World) -> Ingestor:
    """An ingestor that begins behind the list of the fleet, which it has never read."""
    world.bus._log(EVENTS).drop(1)
    return world.ingestor("shadow")


def test_what_is_wrong_whatever_was_trimmed_is_a_dead_letter_at_once(world: World) -> None:
    world.tell("task_started", task="default/train-0", node="n1")
    world.bus.publish(EVENTS, {"batch": b"\xc1 not msgpack"})
    shadow = behind_what_was_trimmed(world)
    assert world.asked() == ["entries are missing from events"]
    assert ["msgpack" in one for one in world.letters()] == [True]
    world.list_fleet({"version": 1, "podgroups": [{"name": "x", "queue": "none"}]}, "wrong")
    drained(shadow)
    assert "body.cluster: podgroups[0].queue" in world.letters()[1], "a list names nothing that it does not hold"


def test_what_names_things_from_entries_that_were_trimmed_is_no_dead_letter_once_a_list_knows_them(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.tell("task_started", task="default/train-0", node="n1")
    world.decide("p", nominations=[{"task": "default/train-1", "node": "n0"}])
    shadow = behind_what_was_trimmed(world)
    world.tell("task_started", task="default/train-2", node="n2")
    drained(shadow)
    assert "2 refused messages wait for a list: entries before them are missing" in caplog.text
    world.list_fleet(list_id="again")
    world.tell("task_started", task="default/nobody", node="n1")
    assert drained(shadow).state.listed
    assert task(shadow, "train-2")["status"] == PENDING, "the list is newer, and says how the task is"
    assert world.letters() == ["body.task: expected the name of a task that is known, found 'default/nobody'"]


def test_what_names_what_a_list_does_not_know_either_is_a_dead_letter_once_it_has_come(world: World) -> None:
    world.tell("task_started", task="default/nobody", node="n1")
    world.tell("podgroup_upserted", name="lost", queue="no such queue")
    shadow = behind_what_was_trimmed(world)
    world.tell("task_upserted", podgroup="default/none", task={"name": "x"})
    assert drained(shadow).state.listed is False
    assert world.letters() == []
    world.list_fleet(list_id="again")
    before = state_of(drained(shadow))
    assert sorted(one.partition(": expected")[0] for one in world.letters()) == [
        "body.podgroup", "body.task", "body: podgroups[0].queue"
    ]  # fmt: skip
    assert all(one.endswith("; entries before it are missing") for one in world.letters())
    world.ingestor("another")
    assert len(world.letters()) == 3
    assert state_of(shadow) == before


def test_what_says_that_something_is_gone_is_right_where_the_list_does_not_know_it(world: World) -> None:
    world.tell("task_started", task="default/short-0", node="n1")
    world.tell("task_ended", task="default/short-0", outcome="Succeeded")
    for kind in ("podgroup", "node", "queue", "budget"):
        world.tell(f"{kind}_removed", **{kind: "default/short" if kind in ("podgroup", "budget") else "short"})
    world.tell("task_ended", task="default/fresh-0", outcome="Evicted", replaced=True)
    shadow = behind_what_was_trimmed(world)
    world.list_fleet(list_id="again")
    drained(shadow)
    assert [one.partition(";")[0] for one in world.letters()] == [
        "body.task: expected the name of a task that is known, found 'default/fresh-0'"
    ]


def test_no_more_messages_wait_for_a_list_than_fit(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("actors.ingestion.known.in_doubt._KEPT", 2)
    for at in range(4):
        world.tell("task_started", task=f"default/nobody-{at}", node="n1")
    shadow = behind_what_was_trimmed(world)
    assert [one[-len("default/nobody-0'; entries before it are missing") :] for one in world.letters()] == [
        f"default/nobody-{at}'; entries before it are missing" for at in (2, 3)
    ]
    world.list_fleet(list_id="again")
    drained(shadow)
    assert len(world.letters()) == 4
