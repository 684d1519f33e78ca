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
