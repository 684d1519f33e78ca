"""Tasks that ask for nothing start by themselves, but not before the gangs that they start with."""

from dataclasses import replace
from typing import Any

import pytest

from pipeline.actions.backfill import backfill
from pipeline.actions.progress import HoldingBack, Progress, StateSoFar
from tests.support.asking import DEFAULT
from tests.support.builders import Gang, Task, cluster
from tests.support.editing import with_tasks
from tests.support.small_clusters import named, played, podgroup, racks, world


def bindings(profile: str, *podgroups: dict[str, Any]) -> list[list[str]]:
    """The tasks that start, by cycle, on a node with four cores."""
    done = played(world({"n": {"cpu": 4, "memory": "64Gi"}}, {"q": {}}, podgroups, profile=profile), 2)
    return [named(cycle["bindings"]) for cycle in done]


def gang(name: str, cores: int | None, *, minimum: int, tasks: int) -> dict[str, Any]:
    together = ["default/free", "default/work"]
    return podgroup(name, [{"cpu": cores} if cores else {}] * tasks, min_available=minimum, gang_group=together)


@pytest.mark.parametrize("profile", ["koordinator", "volcano"])
def test_a_task_without_requests_waits_for_the_rest_of_its_gang_group(profile: str) -> None:
    free = gang("free", None, minimum=1, tasks=1)
    assert bindings(profile, free, gang("work", 1, minimum=3, tasks=2)) == [[], []]
    assert sorted(bindings(profile, free, gang("work", 1, minimum=2, tasks=2))[0]) == ["free-0", "work-0", "work-1"]


def test_what_is_held_back_does_not_start_by_backfill() -> None:
    state = with_tasks(cluster([{"gpu": 1}], [Gang([Task()], 1), Gang([Task()], 1)]), [0, 1], best_effort=True)
    progress = Progress(StateSoFar(state), replace(DEFAULT, best_effort_counts=True), 0.0)
    held = replace(progress, held_back=HoldingBack(podgroups=frozenset({0})))
    assert [backfill(one).starting.tolist() for one in (progress, held)] == [[0, 1], [1]]


@pytest.mark.parametrize("why", [{"node_selector": {"zone": "elsewhere"}}, {"scheduling_gated": True}])
@pytest.mark.parametrize(
    ("profile", "started"), [("default", []), ("kai", []), ("koordinator", []), ("volcano", ["g-1"])]
)
def test_only_in_volcano_a_gang_starts_without_its_task_that_asks_for_nothing_and_has_no_node(
    profile: str, started: list[str], why: dict[str, Any]
) -> None:
    group = podgroup("g", [{}, {"cpu": 1}], min_available=2)
    group["tasks"][0] |= why
    done = played(world({"n": {"cpu": 4}}, {"q": {"deserved": {"cpu": 4}}}, [group], profile=profile), 2)
    assert [name for cycle in done for name in named(cycle["bindings"])] == started


def test_tasks_of_a_podgroup_with_a_level_stay_in_one_domain_and_others_go_anywhere() -> None:
    racks = {"n0": ("a", 2), "n1": ("b", 1), "n2": ("b", 1)}
    said = {"together": {"topology": {"required": "rack"}, "priority": 1}, "anywhere": {}}
    groups = [podgroup(name, [{}] * 3, min_available=0, **more) for name, more in said.items()]
    made = world({name: {"cpu": 4, "pods": pods} for name, (_, pods) in racks.items()}, {"q": {}}, groups)
    made |= {"policy": {"actions": ["backfill"]}, "topology": {"levels": ["rack"], "labels": {"rack": "rack"}}}
    for node in made["nodes"]:
        node["labels"] = {"rack": racks[node["name"]][0]}
    (cycle,) = played(made)
    racks_of = {name: [racks[one["node"]][0] for one in cycle["bindings"] if name in one["task"]] for name in said}
    assert len(racks_of["together"]) == len(racks_of["anywhere"]) == 2
    assert len(set(racks_of["together"])) == 1


def test_a_task_waits_where_the_domain_of_its_subgroup_is_full() -> None:
    """Four nodes, two in a rack, take a task each."""
    parts = [{"name": "part", "topology": {"required": "rack"}}, {"name": "rest"}]
    group = podgroup("g", [{}] * 4, min_available=0, subgroups=parts)
    for task, part in zip(group["tasks"], ["part", "rest"] * 2, strict=True):
        task["subgroup"] = part
    fleet = {f"n{at}": {"cpu": 4, "pods": 1} for at in range(4)}
    made = world(fleet, {"q": {}}, [group], profile="volcano", actions=["backfill"])
    (cycle,) = played(made | {"topology": racks(fleet, each=2)})
    assert named(cycle["bindings"]) == ["g-0", "g-1", "g-3"]


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
    made = {name: {"priority": of} for name, of in zip("ab", queues, strict=True)}
    (cycle,) = played(world({"n": {"cpu": 4, "pods": 4}}, made, groups, profile=profile, actions=["backfill"]))
    return sorted(named(cycle["bindings"]))
