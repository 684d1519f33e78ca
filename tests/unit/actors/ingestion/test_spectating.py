"""Who only looks at a fleet sees its newest state, however long ago the last look was and whatever was lost since."""

import pytest

from actors.configuration.settings import Settings
from actors.ingestion.spectating import NotListed, Onlooker
from pipeline.cluster.tables import RUNNING
from tests.support.told_world import World, drained


def looking(world: World) -> Onlooker:
    return Onlooker(Settings(fleet="memory"), world.bus, now_s=lambda: world.now)


def node_of(onlooker: Onlooker, name: str) -> str | None:
    state = onlooker.state()
    row = state.names.row("tasks", f"default/{name}")
    tasks = state.snapshot.tasks
    return state.names.nodes[tasks.node[row]] if tasks.status[row] == RUNNING else None


def test_who_looks_again_sees_what_was_said_meanwhile(world: World) -> None:
    onlooker = looking(world)
    assert node_of(onlooker, "train-0") is None
    world.tell("task_started", task="default/train-0", node="n1")
    assert node_of(onlooker, "train-0") == "n1"


def test_who_looks_again_after_the_leader_has_trimmed_what_it_had_not_read_sees_the_newest_state(world: World) -> None:
    leader, onlooker = world.ingestor(), looking(world)
    assert node_of(onlooker, "train-0") is None
    for at in range(4):
        world.now += 1
        world.tell("task_started", task=f"default/train-{at % 3}", node=f"n{at % 3}")
        drained(leader).checkpoint()
    assert node_of(onlooker, "train-2") == "n2"


def test_who_looks_again_at_a_broker_that_has_lost_all_sees_nothing_before_the_fleet_lists_anew(world: World) -> None:
    onlooker = looking(world)
    assert node_of(onlooker, "web-0") == "n3"
    world.bus._logs = World().bus._logs
    with pytest.raises(NotListed):
        onlooker.state()
    world.list_fleet()
    assert node_of(onlooker, "web-0") == "n3"
