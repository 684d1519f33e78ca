"""What follows from the tables goes with them from one snapshot to the next."""

import numpy as np

from pipeline.cluster.counted.task_index import index_of
from tests.support.told_world import World, drained


def test_a_podgroup_without_tasks_that_is_described_again_has_its_place_in_the_index_of_tasks() -> None:
    world = World()
    world.list_fleet()
    ingestor = world.ingestor()
    for queue in ("ml", "dev"):
        world.tell("podgroup_upserted", name="empty", queue=queue)
        snapshot = drained(ingestor).snapshot
        right = index_of(snapshot.tasks, len(snapshot.nodes), len(snapshot.podgroups)).by_podgroup
        assert np.array_equal(snapshot.index.by_podgroup.start, right.start)
        assert len(snapshot.tasks_of(ingestor.state.names.row("podgroups", "default/empty"))) == 0
