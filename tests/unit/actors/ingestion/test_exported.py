"""A live state as a cluster file is one that can be read again."""

from actors.cluster_file.reader import read_cluster
from actors.ingestion.exported import cluster_document
from tests.support.told_world import WRITTEN_OUT, World, drained


def test_a_node_that_left_is_not_named_in_the_topology_of_the_file() -> None:
    world = World()
    world.list_fleet(WRITTEN_OUT)
    ingestor = world.ingestor()
    world.tell("node_removed", node="n0")
    exported = read_cluster(cluster_document(drained(ingestor).state, world.now))
    assert exported.topology is not None
    assert [one.nodes for one in exported.topology.domains or ()] == [("n1",), ("n2", "n3")]


def test_a_role_that_only_a_task_names_is_kept_beside_those_that_the_podgroup_states() -> None:
    world = World()
    world.list_fleet()
    ingestor = world.ingestor()
    world.tell("task_upserted", podgroup="default/train", task={"name": "helper", "role": "helper"})
    drained(ingestor)
    world.tell("task_upserted", podgroup="default/train", task={"name": "late", "role": "worker"})
    drained(ingestor)
    world.tell("podgroup_upserted", name="train", queue="dev", roles={"worker": {"min": 1}})
    exported = read_cluster(cluster_document(drained(ingestor).state, world.now))
    (train,) = [one for one in exported.podgroups if one.name == "train"]
    assert {name: role.min for name, role in train.roles.items()} == {"worker": 1, "helper": 0}
    assert {task.name: task.role for task in train.tasks if task.name in ("helper", "late", "train-0")} == {
        "helper": "helper", "late": "worker", "train-0": "worker",
    }  # fmt: skip


def test_a_task_that_has_ended_is_told_without_its_node_once_that_has_left() -> None:
    world = World()
    world.list_fleet()
    ingestor = world.ingestor()
    world.tell("task_ended", task="default/web-0", outcome="Succeeded")
    world.tell("node_removed", node="n3")
    exported = read_cluster(cluster_document(drained(ingestor).state, world.now))
    ended = [(task.status, task.node) for group in exported.podgroups for task in group.tasks if task.name == "web-0"]
    assert ended == [("Succeeded", None)]
