"""Preempt takes no room that another queue would reclaim at once, so two queues do not evict each other for ever."""

from typing import Any

from tests.support import small_clusters
from tests.support.small_clusters import REST, played, told, world

QUIET = 6


def job(name: str, queue: str, many: int, size: int, priority: int, on: list[str] | None = None) -> dict[str, Any]:
    return small_clusters.job(name, [size] * many, priority, on, queue=queue, min_available=many)


def simulated(*jobs: dict[str, Any], deserved: int = 12) -> list[dict[str, list[str]]]:
    """What cycles decide on two nodes of eight devices and two queues, which together deserve more than there is."""
    nodes = {name: {"cpu": 64, "memory": "64Gi", "gpu": 8} for name in ("n0", "n1")}
    queues = {name: {"deserved": {**REST, "gpu": deserved}} for name in "ab"}
    return [told(cycle) for cycle in played(world(nodes, queues, jobs, profile="kai"), 2 + QUIET)]


def names(podgroup: str, many: int) -> list[str]:
    return [f"{podgroup}-{at}" for at in range(many)]


def test_a_gang_does_not_take_over_a_promise_that_its_queue_won_for_a_smaller_one() -> None:
    """With all of `b-high` its queue would be above its share, and `a-low` would take the room back, and so on."""
    first, second, *later = simulated(
        job("a-low", "a", 2, 4, 0), job("a-high", "a", 4, 4, 9, ["n0", "n0", "n1", "n1"]),
        job("b-low", "b", 3, 4, 0), job("b-high", "b", 4, 4, 9),
    )  # fmt: skip
    assert (first["evictions"], first["nominations"]) == (names("a-high", 4), names("b-low", 3))
    assert second == {"evictions": [], "nominations": [], "bindings": names("b-low", 3)}
    assert not any(part for made in later for part in made.values())


def test_a_gang_does_not_evict_for_room_that_another_queue_would_reclaim() -> None:
    made = simulated(
        job("a-low", "a", 2, 4, 0), job("b-low", "b", 3, 4, 0, ["n0", "n0", "n1"]), job("b-high", "b", 4, 4, 9)
    )
    assert not any(part for one in made for part in one.values())


def test_a_gang_evicts_in_its_queue_where_no_other_queue_could_use_the_room() -> None:
    """The queue is above its share with all of `b-high` as well, but no node is large enough for `a-wide`."""
    first, second, *_ = simulated(
        job("a-wide", "a", 1, 9, 0), job("b-low", "b", 3, 4, 0, ["n0", "n0", "n1"]), job("b-high", "b", 4, 4, 9)
    )
    assert (first["evictions"], first["nominations"]) == (names("b-low", 3), names("b-high", 4))
    assert second["bindings"] == names("b-high", 4)


def test_a_gang_evicts_in_its_queue_within_its_share_though_other_queues_wait() -> None:
    first, second, *_ = simulated(
        job("a-low", "a", 2, 4, 0), job("b-low", "b", 3, 4, 0, ["n0", "n0", "n1"]), job("b-high", "b", 3, 4, 9)
    )
    assert (first["evictions"], first["nominations"]) == (names("b-low", 3), names("b-high", 3))
    assert second["bindings"] == names("b-high", 3)


def test_a_victim_that_ends_and_starts_over_counts_among_those_that_would_reclaim() -> None:
    ending = job("a-low", "a", 2, 4, 0, ["n0", "n0"])
    for task in ending["tasks"]:
        task["status"] = "Terminating"
    first, second, *_ = simulated(ending, job("b-low", "b", 2, 4, 0, ["n1", "n1"]), job("b-high", "b", 4, 4, 9))
    assert not any(first.values())
    assert second["bindings"] == names("a-low", 2)
