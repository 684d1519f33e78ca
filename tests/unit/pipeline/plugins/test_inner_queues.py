"""No room is made for work in a queue that has queues below it: it could never start there."""

import pytest

from tests.support.small_clusters import named, played, podgroup, world

CORES = {"cpu": 4}


@pytest.mark.parametrize("profile", ["default", "koordinator", "kai"])
@pytest.mark.parametrize("queue", ["inner", "leaf"])
def test_a_podgroup_in_an_inner_queue_evicts_nothing(profile: str, queue: str) -> None:
    groups = [podgroup("low", [CORES], "n", queue=queue), podgroup("high", [CORES], queue=queue, priority=10)]
    queues = {"inner": {"deserved": CORES}, "leaf": {"parent": "inner", "deserved": CORES}}
    (cycle,) = played(world({"n": {"memory": "8Gi", **CORES}}, queues, groups, profile=profile))
    assert named(cycle["evictions"]) == ([] if queue == "inner" else ["low-0"])
