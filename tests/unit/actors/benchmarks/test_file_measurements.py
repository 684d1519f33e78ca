"""The cluster file that loading and simulating are measured on."""

from actors.benchmarks.file_measurements import fleet_file
from actors.cluster_file.reader import read_cluster
from tests.support.simulating import simulate


def test_the_fleet_is_full_and_its_gang_gets_room_by_evictions() -> None:
    document = fleet_file(200)
    held: dict[str, int] = {}
    for podgroup in document["podgroups"][:-1]:
        for task in podgroup["tasks"]:
            held[task["node"]] = held.get(task["node"], 0) + task["request"]["nvidia.com/gpu"]
    assert held == {node["name"]: 8 for node in document["nodes"]}
    result = simulate(document)
    assert result["error"] is None
    assert len(result["cycles"][0]["nominations"]) == 64
    assert result["cycles"][0]["evictions"] != []


def test_its_nodes_are_of_one_kind_and_the_tasks_of_a_gang_too() -> None:
    cluster = read_cluster(fleet_file(200))
    assert len(cluster.nodes.kinds) == 1
    assert max(len(podgroup.tasks.kinds) for podgroup in cluster.podgroups) <= 3
