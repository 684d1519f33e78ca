"""One podgroup in place of others of its priority, where another queue loses them."""

from typing import Any

import pytest

from actors.cli.simulate import simulate

GPU = "nvidia.com/gpu"


def podgroup(name: str, queue: str, *tasks: tuple[int, str | None], priority: int = 10) -> dict[str, Any]:
    """Each task with its devices and its node; None: it waits."""
    return {
        "name": name, "queue": queue, "priority": priority, "min_available": len(tasks),
        "tasks": [
            {"name": f"{name}-{at}", "request": {GPU: gpus}, **({"status": "Running", "node": node} if node else {})}
            for at, (gpus, node) in enumerate(tasks)
        ],
    }  # fmt: skip


def test_a_podgroup_that_the_law_refuses_beside_the_others_takes_no_place() -> None:
    """Two podgroups of the queue ``v0`` would hold less than these two, but the second is what ``v0`` deserves."""
    found = simulate(
        {
            "version": 1,
            "now": 100,
            "nodes": [{"name": f"n{at}", "allocatable": {GPU: 4, "pods": 100}} for at in range(3)],
            "queues": [{"name": name, "deserved": {GPU: due}} for name, due in (("q", 12), ("v0", 5), ("v1", 1))],
            "podgroups": [
                podgroup("g0", "v1", (3, "n0")), podgroup("g1", "v0", (2, "n1"), (3, "n2")),
                podgroup("g3", "v1", (1, "n1")), podgroup("g4", "v1", (1, "n0"), (1, "n1")),
                podgroup("g5", "v0", (1, "n2")), podgroup("p", "q", (2, None), (2, None), (2, None), priority=90),
            ],
            "policy": {"profile": "kai", "actions": ["reclaim"]},
        }
    )  # fmt: skip
    victims = [entry["task"].rpartition("/")[2] for entry in found["cycles"][0]["evictions"]]
    assert sorted(victims) == ["g0-0", "g1-0", "g1-1"]


@pytest.mark.parametrize(("hours", "expected"), [(0, ["big-0"]), (1, [f"s{at}-0" for at in range(8)])])
def test_in_reclaim_one_podgroup_goes_in_place_of_many_less_important_ones(hours: int, expected: list[str]) -> None:
    """No set breaks less priority by priority than the eight; one more important one is enough, if it ran no longer."""
    small = [podgroup(f"s{at}", "over", (1, "n0"), priority=0) for at in range(8)]
    big = podgroup("big", "over", (9, "n0"), priority=1) | {"started": 1e5 - 3600 * hours}
    found = simulate(
        {
            "version": 1, "now": 1e5,
            "nodes": [{"name": "n0", "allocatable": {GPU: 17, "pods": 100}}],
            "queues": [{"name": "over", "deserved": {GPU: 0}}, {"name": "due", "deserved": {GPU: 8}}],
            "podgroups": [*small, big, podgroup("p", "due", (8, None))],
            "policy": {"profile": "kai", "actions": ["reclaim"]},
        }
    )  # fmt: skip
    assert [entry["task"].removeprefix("default/") for entry in found["cycles"][0]["evictions"]] == expected
