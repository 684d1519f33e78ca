"""A queue that is full: less important work goes wherever it runs, if a gang has room in its domain."""

from typing import Any

from tests.support.gathering import Outcome, cluster_file, running, waiting

BLOCKS = {"s1": {"b1": ["n1"], "b2": ["n2", "n3"]}}
BLOCK = {"topology": {"required": "block"}}


def full(cores: int, podgroups: list[dict[str, Any]], cpus: Any = 4) -> Outcome:
    """What comes of podgroups in a queue that may hold so many cores."""
    queues = [{"name": "default", "deserved": {"cpu": cores}, "capability": {"cpu": cores}}]
    return Outcome(cluster_file(BLOCKS, cpus, podgroups, queues=queues), cycles=2)


def test_work_in_another_block_goes_where_only_quota_is_lacked() -> None:
    found = full(8, [running("low", ["n1"], 4), waiting("hp", [4, 4], **BLOCK)])
    assert (found.evicted, found.bound) == (["low-0"], {"hp-0": "n2", "hp-1": "n3"})


def test_the_least_important_goes_though_one_in_the_block_would_do() -> None:
    low = [running("far", ["n1"], 2, priority=1), running("near", ["n2"], 2, priority=5)]
    found = full(8, [*low, waiting("hp", [2, 2, 2], **BLOCK)])
    assert (found.evicted, set(found.bound)) == (["far-0"], {"hp-0", "hp-1", "hp-2"})


def test_work_elsewhere_stays_where_what_makes_room_frees_quota_enough() -> None:
    low = [running("far", ["n1"], 4), running("near", ["n2"], 4)]
    found = full(8, [*low, waiting("hp", [2, 2, 2], **BLOCK)], {"n1": 4, "n2": 4, "n3": 2})
    assert found.evicted == ["far-0", "near-0"]
    found = full(10, [*low, waiting("hp", [2, 2, 2], **BLOCK)], {"n1": 4, "n2": 4, "n3": 2})
    assert found.evicted == ["near-0"]


def test_no_work_goes_for_a_gang_that_would_be_over_the_maximum_alone_or_has_no_room() -> None:
    low = running("low", ["n1"], 4)
    assert full(7, [low, waiting("hp", [4, 4], **BLOCK)]).evicted == []
    assert full(12, [low, waiting("hp", [4, 4, 4], **BLOCK)]).evicted == []


def test_a_gang_elsewhere_loses_as_few_tasks_as_free_the_quota() -> None:
    loose = running("loose", ["n1", "n1"], 2, min_available=1)
    found = full(10, [loose, waiting("hp", [4, 4], **BLOCK)])
    assert (found.evicted, set(found.bound)) == (["loose-1"], {"hp-0", "hp-1"})


def test_protected_and_more_important_work_elsewhere_stays() -> None:
    for more in ({"preemptible": False}, {"priority": 1000}):
        assert full(8, [running("low", ["n1"], 4, **more), waiting("hp", [4, 4], **BLOCK)]).evicted == []
