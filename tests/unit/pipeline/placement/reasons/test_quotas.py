"""What the queues of podgroups that start together lack."""

from typing import Any

from pipeline.decision.obstacle import Cause
from tests.support.simulating import simulate
from tests.support.small_clusters import podgroup, world

GANG_GROUP = ["default/want", "default/with"]


def obstacles(second: dict[str, Any], *running: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """What keeps ``want`` of queue a waiting by action; it starts with a podgroup of the ``second`` queue b."""
    asks = [podgroup(name, [{"cpu": 4}], queue=queue, priority=5, gang_group=GANG_GROUP)
            for name, queue in (("want", "a"), ("with", "b"))]  # fmt: skip
    queues, nodes = {"a": {"deserved": {"cpu": 16}}, "b": second}, {"n0": {"cpu": 8}, "n1": {"cpu": 8}}
    document = world(nodes, queues, [*running, *asks], profile="koordinator")
    found = simulate(document, explain=True)
    assert found["cycles"][0]["bindings"] == []
    return {one["action"]: one["obstacles"] for one in found["explain"]["podgroups"]["default/want"]["attempts"]}


def test_a_closed_queue_of_one_that_starts_with_the_preemptor_is_told() -> None:
    closed = {"cause": Cause.CLOSED.value, "queue": "b", "what": "Closed"}
    assert set(map(str, obstacles({"state": "Closed"}).values())) == {str([closed])}


def test_a_full_queue_of_one_that_starts_with_the_preemptor_is_told_with_what_its_own_part_asks_for() -> None:
    tasks = [{"name": "old", "request": {"cpu": 6}, "status": "Running", "node": "n0"}]
    old = {"name": "old", "queue": "b", "priority": 9, "tasks": tasks}
    found = obstacles({"capability": {"cpu": 8}}, old)["preempt"]
    assert found[0] == {
        "cause": Cause.CEILING.value, "queue": "b", "plugin": "elasticquota", "what": "cpu", "wanted": 4.0,
        "found": 2.0, "passes": True,
    }  # fmt: skip
