"""A live state as a cluster file is one that can be read again."""

import pytest

from actors.cluster_file.plain_data import ClusterFileRefused
from actors.cluster_file.reader import read_cluster
from actors.columns.compile import compile_cluster
from actors.ingestion.exported import cluster_document
from actors.ingestion.ingestor import Ingestor
from pipeline.cluster.tables import TERMINATING
from tests.support.carded import carded, node
from tests.support.simulating import simulate
from tests.support.told_world import CLUSTER, WRITTEN_OUT, World, drained, task


def test_a_node_that_left_is_not_named_in_the_topology_of_the_file() -> None:
    world = World()
    world.list_fleet(WRITTEN_OUT)
    ingestor = world.ingestor()
    world.tell("node_removed", node="n0")
    exported = read_cluster(cluster_document(drained(ingestor).state, world.now))
    assert exported.topology is not None
    assert [one.nodes for one in exported.topology.domains or ()] == [("n1",), ("n2", "n3")]


def test_a_role_that_only_a_task_names_is_kept_beside_those_that_the_podgroup_states(
    world: World, ingestor: Ingestor
) -> None:
    world.tell("task_upserted", podgroup="default/train", task={"name": "helper", "role": "helper"})
    drained(ingestor)
    world.tell("task_upserted", podgroup="default/train", task={"name": "late", "role": "worker"})
    drained(ingestor)
    world.tell("podgroup_upserted", name="train", queue="dev", roles={"worker": {"min": 1}})
    exported = read_cluster(cluster_document(drained(ingestor).state, world.now))
    (train,) = [one for one in exported.podgroups if one.name == "train"]
    assert [(name, role.min) for name, role in train.roles.items()] == [("helper", 0), ("worker", 1)]  # as rows stand
    assert {task.name: task.role for task in train.tasks if task.name in ("helper", "late", "train-0")} == {
        "helper": "helper", "late": "worker", "train-0": "worker",
    }  # fmt: skip


def test_a_task_that_has_ended_is_told_without_its_node_once_that_has_left(world: World, ingestor: Ingestor) -> None:
    world.tell("task_ended", task="default/web-0", outcome="Succeeded")
    world.tell("node_removed", node="n3")
    exported = read_cluster(cluster_document(drained(ingestor).state, world.now))
    ended = [(task.status, task.node) for group in exported.podgroups for task in group.tasks if task.name == "web-0"]
    assert ended == [("Succeeded", None)]


@pytest.mark.parametrize("left", [False, True])
def test_a_gang_group_names_a_podgroup_that_is_not_there_and_still_waits_for_it(left: bool) -> None:
    world = World()
    there = [{"name": "late", "queue": "ml", "tasks": [{"name": "late", "request": {"cpu": 1}}]}] if left else []
    world.list_fleet({**CLUSTER, "podgroups": there})
    ingestor = world.ingestor()
    both = ["default/early", "default/late"]
    world.tell("podgroup_upserted", name="early", queue="ml", gang_group=both, tasks=[{"name": "early"}])
    if left:
        world.tell("podgroup_removed", podgroup="default/late")
    exported = cluster_document(drained(ingestor).state, world.now)
    assert read_cluster(exported).podgroups[0].gang_group == tuple(both)
    assert simulate(exported, 3, "koordinator")["final"]["default/early"]["status"] == "Pending"
    with pytest.raises(ClusterFileRefused, match=r"gang_group\[1\]: expected the name of a podgroup"):
        read_cluster({**exported, "live": False})


def test_a_card_that_shrank_below_what_its_tasks_hold_is_exported_as_it_is() -> None:
    world = World()
    world.list_fleet(carded([("a", "4Gi", "gpu-0", 0), ("b", "4Gi", "gpu-0", 0)]))
    ingestor = world.ingestor()
    world.tell("node_upserted", **{**node(), "cards": [{"name": f"gpu-{at}", "capacity": "6Gi"} for at in range(2)]})
    exported = cluster_document(drained(ingestor).state, world.now)
    assert read_cluster(exported).nodes[0].cards[0].capacity == "6Gi"
    with pytest.raises(ClusterFileRefused, match="expected at most"):
        read_cluster({**exported, "live": False})


def test_a_task_that_moves_is_exported_with_the_node_that_it_was_promised(world: World, ingestor: Ingestor) -> None:
    web = {"task": "default/web-0"}
    world.decide("p", evictions=[{**web, "incarnation": 0}], nominations=[{**web, "node": "n0"}])
    exported = cluster_document(drained(ingestor).state, world.now)
    snapshot, names = compile_cluster(read_cluster(exported))
    row = names.tasks.index("default/web-0")
    assert (snapshot.tasks.status[row], names.nodes[snapshot.tasks.nominated[row]]) == (TERMINATING, "n0")
    assert simulate(exported, 1, "kai")["final"]["default/web-0"]["nominated_node"] == "n0"


def test_a_card_that_a_task_holds_while_it_ends_is_no_promise() -> None:
    world = World()
    world.list_fleet(carded([("a", "4Gi", "gpu-0", 0)]))
    ingestor = world.ingestor()
    world.decide("p", evictions=[{"task": "default/a", "incarnation": 0}])
    (group,) = read_cluster(cluster_document(drained(ingestor).state, world.now)).podgroups
    assert [(one.status, one.card, one.nominated_node) for one in group.tasks] == [("Terminating", "gpu-0", None)]


@pytest.mark.parametrize("kind", ["podgroup_upserted", "task_upserted"])
def test_an_event_does_not_say_that_a_task_moves_and_a_list_does(world: World, ingestor: Ingestor, kind: str) -> None:
    ending = {"name": "m", "status": "Terminating", "node": "n1", "nominated_node": "n2"}
    tasks = {"name": "m", "queue": "ml", "tasks": [ending]}
    if kind == "podgroup_upserted":
        world.tell(kind, **tasks)
    else:
        world.tell(kind, podgroup="default/web", task=ending)
    drained(ingestor)
    assert world.letters() == ["body: nominated_node: expected none while Terminating, found 'n2'"]
    world.list_fleet({**CLUSTER, "podgroups": [tasks]}, "another")
    moving = task(drained(ingestor), "m")
    assert (moving["status"], moving["nominated"]) == (TERMINATING, "n2")
