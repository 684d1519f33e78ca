"""Numbers of states are never used twice, whoever begins anew and with how little."""

from __future__ import annotations

from tests.support.told_world import World, drained


def test_an_ingestor_that_begins_with_nothing_gives_no_number_again(world: World) -> None:
    first = drained(world.ingestor("first"))
    for at in range(5):
        world.tell("task_started", task="default/train-0", node="n1", at=7.0 + at)
    world.tell("node_removed", node="n0")
    before = drained(first).snapshot
    world.now += 1.0
    world.bus._log("events").drop(100)  # nothing is left of what it had read
    second = world.ingestor("second")
    world.list_fleet(list_id="again")
    after = drained(second).snapshot
    assert after.epoch > before.epoch
    assert after.revision > before.revision


def test_the_numbers_of_a_list_follow_from_the_stream(world: World) -> None:
    states = [drained(world.ingestor(name)).snapshot for name in ("first", "second")]
    assert states[0].epoch == states[1].epoch
    assert states[0].revision == states[1].revision
