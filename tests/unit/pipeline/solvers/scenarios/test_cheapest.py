"""One podgroup in place of others of its priority, where another queue loses them."""

from typing import Any

import pytest

from tests.support.small_clusters import named, played, podgroup, world

GPU = "nvidia.com/gpu"


def group(name: str, queue: str, *tasks: tuple[int, str | None], priority: int = 10) -> dict[str, Any]:
    """Each task with its devices and its node; None: it waits."""
    requests = [{GPU: gpus} for gpus, _ in tasks]
    said = {"queue": queue, "priority": priority, "min_available": len(tasks)}
    return podgroup(name, requests, [node for _, node in tasks], **said)


def reclaimed(gpus: dict[str, int], due: dict[str, int], *groups: dict[str, Any]) -> list[str]:
    """What is evicted where the nodes have devices and the queues deserve some."""
    nodes = {name: {GPU: many} for name, many in gpus.items()}
    queues = {name: {"deserved": {GPU: many}} for name, many in due.items()}
    return named(played(world(nodes, queues, groups, now=1e5, profile="kai", actions=["reclaim"]))[0]["evictions"])


def test_a_podgroup_that_the_law_refuses_beside_the_others_takes_no_place() -> None:
    """Two podgroups of the queue ``v0`` would hold less than these two, but the second is what ``v0`` deserves."""
    groups = [
        group("g0", "v1", (3, "n0")), group("g1", "v0", (2, "n1"), (3, "n2")), group("g3", "v1", (1, "n1")),
        group("g4", "v1", (1, "n0"), (1, "n1")), group("g5", "v0", (1, "n2")),
        group("p", "q", (2, None), (2, None), (2, None), priority=90),
    ]  # fmt: skip
    victims = reclaimed({f"n{at}": 4 for at in range(3)}, {"q": 12, "v0": 5, "v1": 1}, *groups)
    assert sorted(victims) == ["g0-0", "g1-0", "g1-1"]


@pytest.mark.parametrize(("hours", "expected"), [(0, ["big-0"]), (1, [f"s{at}-0" for at in range(8)])])
def test_in_reclaim_one_podgroup_goes_in_place_of_many_less_important_ones(hours: int, expected: list[str]) -> None:
    """No set breaks less priority by priority than the eight; one more important one is enough, if it ran no longer."""
    small = [group(f"s{at}", "over", (1, "n0"), priority=0) for at in range(8)]
    big = group("big", "over", (9, "n0"), priority=1) | {"started": 1e5 - 3600 * hours}
    assert reclaimed({"n0": 17}, {"over": 0, "due": 8}, *small, big, group("p", "due", (8, None))) == expected
