"""Few bytes cannot ask for much memory: what would make the state too large is refused, each message by itself."""

from __future__ import annotations

import pytest

from actors.cluster_file import bounds
from actors.cluster_file.reader import ClusterFileRefused, read_cluster
from tests.support.told_world import CLUSTER, World, drained, task


@pytest.fixture
def world() -> World:
    made = World()
    made.list_fleet()
    return made


def test_a_task_that_stands_ten_million_times_is_refused_before_it_is_expanded(world: World) -> None:
    ingestor = world.ingestor()
    world.tell("podgroup_upserted", name="huge", queue="dev", tasks=[{"name": "t", "count": 10_000_000}])
    world.tell("task_started", task="default/train-0", node="n1")
    drained(ingestor)
    assert world.letters() == ["body: expected at most 5000000 tasks in all, found 10000004"]
    assert len(ingestor.snapshot.tasks) == 4
    assert task(ingestor, "train-0")["node"] == "n1"


def test_resources_are_refused_once_there_are_too_many_names(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "RESOURCES", 8)
    ingestor = world.ingestor()
    known = len(ingestor.snapshot.vocabulary.resources)
    for at in range(6):
        name = f"example.com/r{at}"
        world.tell("node_upserted", name=f"x{at}", allocatable={"cpu": 1, name: 1})
    drained(ingestor)
    assert len(ingestor.snapshot.vocabulary.resources) == 8
    assert len(world.letters()) == 6 - (8 - known)
    assert world.letters()[0] == "body: expected at most 8 names of resources in all, found 9"


def test_what_is_described_again_is_not_counted_twice(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "TASKS", 5)
    ingestor = world.ingestor()
    (train, _) = CLUSTER["podgroups"]
    for least in (1, 3):
        world.tell("podgroup_upserted", **{**train, "min_available": least})
    world.tell("podgroup_upserted", name="one", queue="dev", tasks=[{"name": "one-0"}])
    world.tell("podgroup_upserted", name="two", queue="dev", tasks=[{"name": "two-0"}])
    drained(ingestor)
    assert world.letters() == ["body: expected at most 5 tasks in all, found 6"]


def test_a_list_and_a_cluster_file_have_the_same_bounds(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    ingestor = world.ingestor()
    before = ingestor.snapshot.epoch
    huge = {"name": "huge", "queue": "dev", "tasks": [{"name": "t", "count": 10_000_000}]}
    cluster = {**CLUSTER, "podgroups": [huge]}
    world.list_fleet(cluster, "again")
    drained(ingestor)
    assert ingestor.snapshot.epoch == before
    (letter,) = world.letters()
    assert letter == "body.cluster: podgroups: expected at most 5000000 tasks in all, found 10000000"
    with pytest.raises(ClusterFileRefused, match="podgroups: expected at most 5000000 tasks in all, found 10000000"):
        read_cluster(cluster)
    monkeypatch.setattr(bounds, "QUEUES", 1)
    with pytest.raises(ClusterFileRefused, match="expected at most 1 queues in all, found 2"):
        read_cluster(CLUSTER)
