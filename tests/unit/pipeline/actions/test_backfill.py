"""Tasks that ask for nothing start by themselves, but not before the gangs that they start with."""

from dataclasses import replace
from typing import Any

import pytest

from actors.cli.simulate import simulate
from pipeline.actions.backfill import backfill
from pipeline.actions.progress import Progress, StateSoFar
from tests.support.asking import DEFAULT
from tests.support.builders import Gang, Task, cluster
from tests.support.task_centric import with_tasks


def bindings(profile: str, *podgroups: dict[str, Any]) -> list[list[str]]:
    """The tasks that start, by cycle, on a node with four cores."""
    found = simulate(
        {
            "version": 1, "now": 1e6, "policy": {"profile": profile}, "queues": [{"name": "q"}],
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


@pytest.mark.parametrize("profile", ["koordinator", "volcano"])
def test_a_task_without_requests_waits_for_the_rest_of_its_gang_group(profile: str) -> None:
    free = gang("free", None, minimum=1, tasks=1)
    assert bindings(profile, free, gang("work", 1, minimum=3, tasks=2)) == [[], []]
    assert sorted(bindings(profile, free, gang("work", 1, minimum=2, tasks=2))[0]) == ["free-0", "work-0", "work-1"]


def test_what_is_held_back_does_not_start_by_backfill() -> None:
    state = with_tasks(cluster([{"gpu": 1}], [Gang([Task()], 1), Gang([Task()], 1)]), [0, 1], best_effort=True)
    progress = Progress(StateSoFar(state), replace(DEFAULT, best_effort_counts=True), 0.0)
    held = replace(progress, held=frozenset({0}))
    assert [backfill(one).starting.tolist() for one in (progress, held)] == [[0, 1], [1]]


@pytest.mark.parametrize("why", [{"node_selector": {"zone": "elsewhere"}}, {"scheduling_gated": True}])
@pytest.mark.parametrize(
    ("profile", "started"), [("default", []), ("kai", []), ("koordinator", []), ("volcano", ["g-1"])]
)
def test_only_in_volcano_a_gang_starts_without_its_task_that_asks_for_nothing_and_has_no_node(
    profile: str, started: list[str], why: dict[str, Any]
) -> None:
    tasks = [
        {"name": "g-0", "request": {}, **why},
        {"name": "g-1", "request": {"cpu": 1}},
    ]
    found = simulate(
        {
            "version": 1, "now": 1e6, "policy": {"profile": profile},
            "queues": [{"name": "q", "deserved": {"cpu": 4}}],
            "nodes": [{"name": "n", "allocatable": {"cpu": 4, "pods": 9}}],
            "podgroups": [{"name": "g", "queue": "q", "min_available": 2, "tasks": tasks}],
        },
        cycles=2,
    )  # fmt: skip
    assert [one["task"].split("/")[1] for cycle in found["cycles"] for one in cycle["bindings"]] == started


def test_tasks_of_a_podgroup_with_a_level_stay_in_one_domain_and_others_go_anywhere() -> None:
    racks = [("a", 2), ("b", 1), ("b", 1)]
    nodes = [
        {"name": f"n{at}", "labels": {"rack": rack}, "allocatable": {"cpu": 4, "pods": pods}}
        for at, (rack, pods) in enumerate(racks)
    ]
    groups = [
        {"name": name, "queue": "q", "min_available": 0, "tasks": [{"name": name, "count": 3, "request": {}}], **said}
        for name, said in (("together", {"topology": {"required": "rack"}, "priority": 1}), ("anywhere", {}))
    ]
    found = simulate(
        {
            "version": 1, "now": 1e6, "policy": {"actions": ["backfill"]}, "queues": [{"name": "q"}], "nodes": nodes,
            "topology": {"levels": ["rack"], "labels": {"rack": "rack"}}, "podgroups": groups,
        }
    )  # fmt: skip
    assert found["error"] is None
    rack_of = {f"n{at}": rack for at, (rack, _) in enumerate(racks)}
    racks_of = {
        name: [rack_of[one["node"]] for one in found["cycles"][0]["bindings"] if name in one["task"]]
        for name in ("together", "anywhere")
    }
    assert len(racks_of["together"]) == len(racks_of["anywhere"]) == 2
    assert len(set(racks_of["together"])) == 1


@pytest.mark.parametrize("profile", ["default", "volcano", "koordinator"])
def test_the_first_podgroup_gets_the_last_pods_however_important_the_tasks_of_others_are(profile: str) -> None:
    assert started(profile, podgroups=(1, 2), queues=(0, 0)) == ["a-9", "b-1", "b-2", "b-3"]


@pytest.mark.parametrize("profile", ["default", "volcano"])
def test_the_first_queue_gets_the_last_pods_however_important_the_tasks_of_others_are(profile: str) -> None:
    assert started(profile, podgroups=(0, 0), queues=(1, 2)) == ["a-9", "b-1", "b-2", "b-3"]


def started(profile: str, podgroups: tuple[int, int], queues: tuple[int, int]) -> list[str]:
    """Which of two and three tasks start on a node that takes four; ``podgroups`` and ``queues`` are priorities."""
    groups = [
        {
            "name": name, "queue": name if queues != (0, 0) else "a", "min_available": 0, "priority": priority,
            "tasks": [{"name": f"{name}-{of}", "request": {}, "priority": of} for of in tasks],
        }
        for name, priority, tasks in zip("ab", podgroups, ((8, 9), (1, 2, 3)), strict=True)
    ]  # fmt: skip
    found = simulate(
        {
            "version": 1, "now": 1e6, "policy": {"profile": profile, "actions": ["backfill"]}, "podgroups": groups,
            "queues": [{"name": name, "priority": of} for name, of in zip("ab", queues, strict=True)],
            "nodes": [{"name": "n", "allocatable": {"cpu": 4, "pods": 4}}],
        }
    )  # fmt: skip
    assert found["error"] is None
    return sorted(one["task"].removeprefix("default/") for one in found["cycles"][0]["bindings"])
