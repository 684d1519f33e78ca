"""Events and decisions are folded in one order, the same live and replayed."""

import pytest

from actors.ingestion.ingestor import Ingestor
from pipeline.cluster.tables import TERMINATING
from tests.support.told_world import World, drained, state_of, task


def test_an_event_that_overtook_a_decision_is_folded_before_it(world: World, ingestor: Ingestor) -> None:
    world.now += 1
    world.tell("task_started", task="default/train-0", node="n0")
    world.now += 1
    world.decide("p", evictions=[{"task": "default/train-0", "incarnation": 0}])
    drained(ingestor)
    assert task(ingestor, "train-0")["status"] == TERMINATING


@pytest.mark.parametrize("jump_s", [-50.0, 0.0, 50.0])
def test_the_order_is_what_happened_whatever_the_brokers_clock_says(world: World, jump_s: float) -> None:
    world.decide("early")  # so that the ids of decisions go on from here if the clock goes back
    ingestor = world.ingestor("lived")
    world.now += 20
    world.tell("task_started", task="default/train-0", node="n0")
    world.now += jump_s
    world.decide("p", evictions=[{"task": "default/train-0", "incarnation": 0}])
    drained(ingestor)
    world.tell("task_started", task="default/train-1", node="n1")
    world.decide("q", evictions=[{"task": "default/train-1", "incarnation": 0}])
    drained(ingestor)
    assert task(ingestor, "train-0")["status"] == task(ingestor, "train-1")["status"] == TERMINATING
    assert state_of(ingestor) == state_of(world.ingestor("replayed"))
