"""Which victims return where the gang lacks quota that only some of them free."""

from tests.support.gathering import TWO_BY_TWO, Outcome, cluster_file, running, waiting


def test_a_victim_below_the_queue_that_is_full_returns_once_enough_of_that_queue_is_free() -> None:
    """Both children share a full department; another gang that waits without hope lets two tasks go, one is enough."""
    queues = [
        {"name": "dept", "deserved": {"cpu": 8}, "capability": {"cpu": 8}},
        {"name": "mine", "parent": "dept", "deserved": {"cpu": 4}},
        {"name": "sibling", "parent": "dept", "deserved": {"cpu": 4}},
        {"name": "other", "deserved": {"cpu": 8}},
    ]
    taken = [running(f"sibling{at}", [f"n{at}"], 2, queue="sibling") for at in range(1, 5)]
    taken += [running(f"other{at}", [f"n{at}"], 2, queue="other") for at in range(5, 9)]
    hopeless = waiting("hopeless", [2], priority=999, queue="mine")
    hopeless["tasks"][0]["node_selector"] = {"zone": "none"}
    found = Outcome(cluster_file(TWO_BY_TWO, 2, [*taken, waiting("job", [2], queue="mine"), hopeless], queues=queues))
    assert found.evicted == ["sibling1-0"]
    assert found.nominated == {"job-0": "n1"}


def test_the_podgroup_goes_that_alone_frees_what_a_department_beyond_its_maximum_lacks() -> None:
    """The department holds six cores and may hold five: for two more four must go, and a sibling keeps one."""
    queues = [
        {"name": "dept", "deserved": {"cpu": 1}, "capability": {"cpu": 5}},
        {"name": "mine", "parent": "dept", "deserved": {"cpu": 0}},
        {"name": "sibling", "parent": "dept", "deserved": {"cpu": 1}},
        {"name": "other", "deserved": {"cpu": 0}},
    ]
    taken = [running("both", ["n1", "n2"], 2, queue="sibling"), running("single", ["n3"], 2, queue="sibling")]
    waits = [waiting("job", [2], queue="mine"), waiting("wide", [2] * 6, queue="other")]
    found = Outcome(cluster_file({"s": {"b": ["n1", "n2", "n3", "n4"]}}, 2, [*taken, *waits], queues=queues))
    assert found.evicted == ["both-0", "both-1"]
