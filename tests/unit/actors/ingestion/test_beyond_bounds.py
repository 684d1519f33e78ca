"""Few bytes cannot ask for much memory: what would make the state too large is refused, each message by itself."""

from __future__ import annotations

from typing import Any

import pytest

from actors.cluster_file.plain_data import ClusterFileRefused
from actors.cluster_file.reader import read_cluster
from actors.documents.state_limits import STATE_LIMITS, StateLimits
from actors.ingestion.ingestor import Ingestor
from actors.protocol.full_list import cut
from tests.support.told_world import CLUSTER, World, drained, task

#: What the told fleet holds; four tasks.
_BYTES = 60_000


def test_a_task_that_stands_ten_million_times_is_refused_before_it_is_expanded(
    world: World, ingestor: Ingestor
) -> None:
    world.tell("podgroup_upserted", name="huge", queue="dev", tasks=[{"name": "t", "count": 10_000_000}])
    world.tell("task_started", task="default/train-0", node="n1")
    drained(ingestor)
    assert world.letters() == ["body: expected at most 5000000 tasks in all, found 10000004"]
    assert len(ingestor.snapshot.tasks) == 4
    assert task(ingestor, "train-0")["node"] == "n1"


def test_resources_are_refused_once_there_are_too_many_names(world: World) -> None:
    ingestor = world.ingestor(most=StateLimits(resources=8))
    known = len(ingestor.snapshot.vocabulary.resources)
    for at in range(6):
        name = f"example.com/r{at}"
        world.tell("node_upserted", name=f"x{at}", allocatable={"cpu": 1, name: 1})
    drained(ingestor)
    assert len(ingestor.snapshot.vocabulary.resources) == 8
    assert len(world.letters()) == 6 - (8 - known)
    assert world.letters()[0] == "body: expected at most 8 names of resources in all, found 9"


def test_what_is_described_again_is_not_counted_twice(world: World) -> None:
    ingestor = world.ingestor(most=StateLimits(tasks=5, queues=2))
    (train, _) = CLUSTER["podgroups"]
    for least in (1, 3):
        world.tell("podgroup_upserted", **{**train, "min_available": least})
    world.tell("queue_upserted", name="dev", weight=2.0)
    world.tell("podgroup_upserted", name="one", queue="dev", tasks=[{"name": "one-0"}])
    world.tell("podgroup_upserted", name="two", queue="dev", tasks=[{"name": "two-0"}])
    world.tell("task_upserted", podgroup="default/one", task={"name": "one-0", "request": {"cpu": 1}})
    drained(ingestor)
    assert world.letters() == ["body: expected at most 5 tasks in all, found 6"]


def test_a_topology_with_more_domains_than_there_may_be_is_refused_and_one_that_is_said_again_is_not(
    world: World,
) -> None:
    ingestor = world.ingestor(most=StateLimits(domains=6))
    for many in (5, 3, 5, 7):
        racks = [{"name": f"r{at}", "level": "rack", "nodes": []} for at in range(many)]
        world.tell("topology_changed", topology={"levels": ["rack"], "domains": racks})
    drained(ingestor)
    assert world.letters() == ["body: expected at most 6 domains in all, found 7"]
    assert len(ingestor.snapshot.topology) == 6
    world.tell("topology_changed", topology=None)
    drained(ingestor)
    assert len(world.letters()) == len(ingestor.snapshot.topology) == 1


def test_the_names_of_a_topology_are_counted_and_one_that_is_said_again_takes_no_more(
    world: World, ingestor: Ingestor
) -> None:
    names = [f"{at:0200d}" for at in range(100)]
    racks = {"levels": ["rack"], "domains": [{"name": name, "level": "rack", "nodes": []} for name in names]}
    before = ingestor.state.size.text
    world.tell("topology_changed", topology=racks)
    drained(ingestor)
    held = ingestor.state.size
    assert held.text - before >= sum(map(len, names))
    ingestor.checkpoint()
    full = world.ingestor(most=StateLimits(state_bytes=held.bytes + 1_000))
    assert full.state.size == held
    world.tell("topology_changed", topology=racks)
    drained(full)
    assert world.letters() == []


_CARDS = [{"name": f"c{at}", "capacity": 1} for at in range(2_000)]
_LABELS = {f"k{at}": "v" * 100 for at in range(900)}
_LONG = {"k": "v" * 100_000}


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("node_upserted", {"name": "x", "allocatable": {"cpu": 1}, "cards": _CARDS}),
        ("node_upserted", {"name": "x", "allocatable": {"cpu": 1}, "labels": _LABELS}),
        ("podgroup_upserted", {"name": "x", "queue": "dev", "tasks": [{"name": "x-0", "labels": _LONG}]}),
        ("podgroup_upserted", {"name": "x", "queue": "dev", "tasks": [{"name": "x", "count": 1_000}]}),
        ("budget_upserted", {"name": "x" * 500, "match_labels": _LONG, "disruptions_allowed": 1}),
    ],
    ids=["cards", "labels of a node", "labels of a task", "tasks", "a budget's labels"],
)
def test_what_takes_too_many_bytes_is_refused_and_the_rest_goes_on(
    world: World, kind: str, body: dict[str, Any]
) -> None:
    ingestor = world.ingestor(most=StateLimits(state_bytes=_BYTES))
    world.tell(kind, **body)
    world.tell("task_started", task="default/train-0", node="n1")
    drained(ingestor)
    (letter,) = world.letters()
    assert letter.startswith(f"body: expected at most {_BYTES} bytes of state in all, found ")
    assert task(ingestor, "train-0")["node"] == "n1"


def test_a_node_may_be_described_again_and_again_in_a_state_that_is_full(world: World, ingestor: Ingestor) -> None:
    most = ingestor.state.size.bytes
    full = world.ingestor(most=StateLimits(state_bytes=most + 1_000))
    for cpu in range(1, 20):
        world.tell(
            "node_upserted",
            **{**CLUSTER["nodes"][0], "allocatable": {**CLUSTER["nodes"][0]["allocatable"], "cpu": cpu}},
        )
    drained(full)
    assert world.letters() == []
    assert full.state.size.bytes < most + 1_000


def test_labels_that_change_for_ever_do_not_fill_the_memory(world: World) -> None:
    ingestor = world.ingestor(most=StateLimits(state_bytes=400_000))
    for at in range(60):
        labels = {"build": f"{at:010d}" * 1_000}
        world.tell("podgroup_upserted", name="x", queue="dev", tasks=[{"name": "x-0", "labels": labels}])
    drained(ingestor)
    assert ingestor.state.size.bytes <= 400_000
    assert "bytes of state" in world.letters()[0]


def test_what_is_held_is_the_same_after_a_restart(world: World, ingestor: Ingestor) -> None:
    for at in range(3):
        world.tell(
            "podgroup_upserted", name=f"g{at}", queue="dev", tasks=[{"name": f"g{at}", "labels": {"a": str(at)}}]
        )
    drained(ingestor)
    ingestor.checkpoint()
    assert world.ingestor().state.size == ingestor.state.size


def test_bytes_are_no_less_than_those_of_all_columns(world: World, ingestor: Ingestor) -> None:
    world.tell("podgroup_upserted", name="many", queue="dev", tasks=[{"name": "t", "count": 20_000}])
    drained(ingestor)
    snapshot = ingestor.snapshot
    tables = (snapshot.tasks, snapshot.podgroups, snapshot.nodes, snapshot.queues, snapshot.shapes, snapshot.budgets)
    columns = sum(getattr(table, name).nbytes for table in tables for name in type(table).__dataclass_fields__)
    assert columns < ingestor.state.size.bytes < 10 * columns


def test_a_list_and_a_cluster_file_have_the_same_bounds(world: World, ingestor: Ingestor) -> None:
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
    assert read_cluster(CLUSTER, STATE_LIMITS).queues
    for most, complaint in (
        (StateLimits(queues=1), "expected at most 1 queues in all, found 2"),
        (StateLimits(domains=1), "expected at most 1 domains in all, found 2"),
        (StateLimits(state_bytes=1_000), "expected at most 1000 bytes of state in all"),
    ):
        with pytest.raises(ClusterFileRefused, match=complaint):
            read_cluster(CLUSTER, most)


def test_a_list_without_end_is_given_up_before_its_last_part(world: World) -> None:
    ingestor = world.ingestor(most=StateLimits(state_bytes=800_000))
    labels = {f"k{at}": "v" * 50 for at in range(900)}
    nodes = [{"name": f"x{at}", "allocatable": {"cpu": 1}, "labels": labels} for at in range(10)]
    parts = cut({**CLUSTER, "nodes": [*CLUSTER["nodes"], *nodes]}, "endless", part_bytes=1_000)
    for part in parts[:-1]:
        world.tell("fleet_listed", **part.model_dump())
    drained(ingestor)
    assert world.letters()[0].startswith("body.cluster: expected at most 100000 bytes in all parts, found 1")
