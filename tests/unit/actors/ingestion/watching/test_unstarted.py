"""What a connector does not start, or starts elsewhere, is counted and named."""

from typing import Any

import pytest
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from actors.cli.live.tables import gangs
from actors.configuration.settings import TelemetrySettings
from actors.ingestion.ingestor import Ingestor
from actors.ingestion.watching.state_figures import LATE_S, Unstarted
from actors.observability.telemetry import start
from tests.support.measured import recorded
from tests.support.told_world import World, drained, task


class Watched:
    """An ingestor, what is seen of it, and the figures."""

    def __init__(self, world: World) -> None:
        self.ingestor: Ingestor = world.ingestor()
        self._reader, self._now = InMemoryMetricReader(), 50_000.0
        self._unstarted = Unstarted(start(TelemetrySettings(), "test", reader=self._reader).figures)

    def after(self, seconds: float) -> dict[str, Any]:
        """The figures that many seconds later."""
        self._now += seconds
        self._unstarted.look(drained(self.ingestor).state, self._now)
        found = recorded(self._reader)
        return {name: found[f"clearway.tasks.{name}"][""] for name in ("bound", "bound.age", "elsewhere")}


def bind(world: World, *at: int) -> None:
    """A decision starts these tasks of the gang, each on the node of its number."""
    world.decide("p", bindings=[{"task": f"default/train-{one}", "node": f"n{one}", "incarnation": 0} for one in at])


def test_a_gang_of_which_only_a_part_is_started_is_counted_aged_and_named_once(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    watched = Watched(world)
    assert watched.after(0.0) == {"bound": 0, "bound.age": 0.0, "elsewhere": 0}
    bind(world, 0, 1, 2)
    assert watched.after(2.0) == {"bound": 3, "bound.age": 0.0, "elsewhere": 0}
    world.list_fleet(list_id="again")  # rows are numbered anew, and a bound task of the same life stays so
    world.tell("task_started", task="default/train-1", node="n1", incarnation=0)
    assert watched.after(LATE_S - 2.0) == {"bound": 2, "bound.age": LATE_S - 2.0, "elsewhere": 0}
    assert caplog.text == ""
    assert watched.after(4.0) == {"bound": 2, "bound.age": LATE_S + 2.0, "elsewhere": 0}
    watched.after(60.0)
    assert caplog.text.count("and the fleet has not said that it runs") == 1
    assert "default/train-0 on n0, default/train-2 on n2" in caplog.text
    row = next(one for one in gangs(watched.ingestor.state, {}) if one["name"] == "default/train")
    assert (row["ready"], row["bound"], row["pending"]) == (3, 2, 0)


def test_a_task_in_another_life_has_just_been_bound(world: World) -> None:
    watched = Watched(world)
    bind(world, 0)
    watched.after(0.0)
    world.tell("task_ended", task="default/train-0", outcome="Failed", incarnation=0, replaced=True)
    world.decide("q", bindings=[{"task": "default/train-0", "node": "n2", "incarnation": 1}])
    assert watched.after(100.0)["bound.age"] == 0.0
    assert watched.after(5.0)["bound.age"] == 5.0


def test_tasks_that_start_elsewhere_are_counted_and_named_and_their_room_is_where_they_are(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    watched = Watched(world)
    bind(world, 0, 1)
    world.decide("n", nominations=[{"task": "default/train-2", "node": "n2"}])
    drained(watched.ingestor)
    for at, node in ((0, "n3"), (1, "n1"), (2, "n1")):
        said = world.tell("task_started", task=f"default/train-{at}", node=node, incarnation=0)
        world.say(said)  # it comes twice
    assert watched.after(0.0)["elsewhere"] == 2
    assert "2 tasks started elsewhere than was decided, such as default/train-0 on n3, not on n0" in caplog.text
    assert task(watched.ingestor, "train-0")["node"] == "n3"
    assert watched.ingestor.snapshot.room.idle[0, 0] == watched.ingestor.snapshot.nodes.allocatable[0, 0]


def test_a_start_of_an_earlier_or_a_later_life_is_no_start_elsewhere(world: World) -> None:
    watched = Watched(world)
    world.tell("task_ended", task="default/train-0", outcome="Failed", incarnation=0, replaced=True)
    world.decide("p", bindings=[{"task": "default/train-0", "node": "n0", "incarnation": 1}])
    world.tell("task_started", task="default/train-0", node="n3", incarnation=0)
    assert watched.after(0.0)["elsewhere"] == 0
    world.tell("task_started", task="default/train-0", node="n3", incarnation=2)
    assert watched.after(0.0)["elsewhere"] == 0
    assert task(watched.ingestor, "train-0")["node"] == "n3"
