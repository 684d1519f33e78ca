"""Victims outside the gang's domain where its queue lacks quota."""

from tests.support.small_clusters import named, played, podgroup, racks, world

NOW = 1e6


def test_less_of_running_work_goes_although_it_is_more_for_the_smaller_task() -> None:
    """In the gang's rack four cores go for a task of four; elsewhere two cores for a task of one."""
    running = [
        podgroup("first", [{"cpu": 6, "mem": 4}, {"cpu": 2, "mem": 1}], ["n2", "n1"], started=NOW - 3600, priority=1),
        podgroup("second", [{"cpu": 4, "mem": 1}, {"cpu": 2, "mem": 2}], ["n1", "n2"], started=NOW, priority=1),
        podgroup("third", [{"cpu": 4, "mem": 1}], "n0", started=NOW, priority=1),
    ]
    wants = [{"cpu": 4, "mem": 1}, {"cpu": 1, "mem": 1}, {"cpu": 1, "mem": 4}]
    gang = podgroup("gang", wants, priority=100, min_available=2, topology={"required": "rack"})
    nodes = {f"n{at}": {"cpu": 8, "mem": 8} for at in range(3)}
    queues = {"q": {"capability": {"cpu": 19, "mem": 999}}}
    document = world(nodes, queues, [*running, gang], now=NOW, profile="default", actions=["preempt"])
    done = played(document | {"topology": racks(nodes, 2)})[0]
    assert named(done["evictions"]) == ["second-1"]
    assert named(done["nominations"]) == ["gang-1", "gang-2"]
