"""Events and decisions are folded in one order, the same live and replayed."""

import pytest

from actors.ingestion.ingestor import Ingestor
from pipeline.cluster.tables import TERMINATING
from tests.support.told_world import World, drained, state_of, task


@pytest.fixture
def world() -> World:
    made = World()
    made.list_fleet()
    return made


def test_an_event_that_overtook_a_decision_is_folded_before_it(world: World) -> None:
    ingestor = world.ingestor()
    world.now += 1
    world.tell("task_started", task="default/train-0", node="n0")
    world.now += 1
    world.decide("p", evictions=[{"task": "default/train-0", "incarnation": 0}])
    drained(ingestor)
    assert task(ingestor, "train-0")["status"] == TERMINATING


def test_an_event_of_a_decisions_own_millisecond_is_waited_for_and_folded_before_it(world: World) -> None:
    late = ["task_started"]

    def settle() -> None:
        while late:
            world.tell(late.pop(), task="default/train-0", node="n0")

    ingestor = Ingestor(world.bus, consumer="lived", now_s=lambda: world.now, let_settle=settle)
    ingestor.start()
    world.decide("p", evictions=[{"task": "default/train-0", "incarnation": 0}])
    assert ingestor.poll()
    assert late == []
    assert task(ingestor, "train-0")["status"] == TERMINATING
    assert state_of(ingestor) == state_of(world.ingestor("replayed"))
