"""No room is made for work in a queue that has queues below it: it could never start there."""

from typing import Any

import pytest

from actors.cli.simulate import simulate


def task(name: str, **more: Any) -> list[dict[str, Any]]:
    return [{"name": name, "request": {"cpu": 4}, **more}]


@pytest.mark.parametrize("profile", ["default", "koordinator", "kai"])
@pytest.mark.parametrize("queue", ["inner", "leaf"])
def test_a_podgroup_in_an_inner_queue_evicts_nothing(profile: str, queue: str) -> None:
    running = task("low", status="Running", node="n")
    found = simulate(
        {
            "version": 1, "now": 1e6, "policy": {"profile": profile},
            "nodes": [{"name": "n", "allocatable": {"cpu": 4, "memory": "8Gi", "pods": 10}}],
            "queues": [
                {"name": "inner", "deserved": {"cpu": 4}}, {"name": "leaf", "parent": "inner", "deserved": {"cpu": 4}},
            ],
            "podgroups": [
                {"name": "low", "queue": queue, "tasks": running},
                {"name": "high", "queue": queue, "priority": 10, "tasks": task("high")},
            ],
        }
    )  # fmt: skip
    evicted = [one["task"] for one in found["cycles"][0]["evictions"]]
    assert evicted == ([] if queue == "inner" else ["default/low"])
