"""Tasks that ask for nothing start by themselves, but not before the gangs that they start with."""

from typing import Any

from actors.cli.simulate import simulate


def bindings(*podgroups: dict[str, Any]) -> list[list[str]]:
    """The tasks that start, by cycle, on a node with four cores under the profile `koordinator`."""
    found = simulate(
        {
            "version": 1, "now": 1e6, "policy": {"profile": "koordinator"}, "queues": [{"name": "q"}],
            "nodes": [{"name": "n", "allocatable": {"cpu": 4, "memory": "64Gi", "pods": 64}}],
            "podgroups": [{"queue": "q", **one} for one in podgroups],
        },
        cycles=2,
    )  # fmt: skip
    assert found["error"] is None
    return [[one["task"].split("/")[1] for one in cycle["bindings"]] for cycle in found["cycles"]]


def gang(name: str, cores: int | None, *, minimum: int, tasks: int) -> dict[str, Any]:
    return {
        "name": name, "min_available": minimum, "gang_group": ["default/free", "default/work"],
        "tasks": [{"name": f"{name}-{at}", "request": {"cpu": cores} if cores else {}} for at in range(tasks)],
    }  # fmt: skip


def test_a_task_without_requests_waits_for_the_rest_of_its_gang_group() -> None:
    free = gang("free", None, minimum=1, tasks=1)
    assert bindings(free, gang("work", 1, minimum=3, tasks=2)) == [[], []]
    assert sorted(bindings(free, gang("work", 1, minimum=2, tasks=2))[0]) == ["free-0", "work-0", "work-1"]
