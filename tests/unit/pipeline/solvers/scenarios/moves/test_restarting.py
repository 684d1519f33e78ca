"""Nothing is moved that would not start again, and nothing stays beside a preemptor that repels it."""

from copy import deepcopy
from typing import Any

import pytest

from actors.cli.simulate import simulate

ONE = {"cpu": 1}


def world(**queue: Any) -> dict[str, Any]:
    """A task of one core has to move to the other node, so that one of two cores fits beside another such task."""
    runs = {"status": "Running", "node": "big"}
    return {
        "version": 1, "now": 1e4, "policy": {"profile": "kai", "actions": ["allocate", "consolidation"]},
        "nodes": [{"name": "big", "allocatable": {"cpu": 4}}, {"name": "small", "allocatable": {"cpu": 1}}],
        "queues": [{"name": "q"}, {"name": "other", **queue}],
        "podgroups": [
            {"name": "moves", "queue": "other", "tasks": [{"name": "moves", "request": ONE, **runs}]},
            {"name": "wide", "queue": "q", "priority": 3, "tasks": [
                {"name": "wide-0", "request": {"cpu": 2}, **runs}, {"name": "wide-1", "request": {"cpu": 2}}]},
        ],
    }  # fmt: skip


def moved(document: dict[str, Any]) -> dict[str, str]:
    """By name where evicted tasks run three cycles later; those that do not are missing."""
    done = simulate(deepcopy(document), 4)
    assert done["error"] is None
    evicted = [one["task"] for cycle in done["cycles"] for one in cycle["evictions"]]
    starts = {one["task"]: one["node"] for cycle in done["cycles"] for one in cycle["bindings"]}
    return {name: starts.get(name, "nowhere") for name in evicted}


def with_victim(**more: Any) -> dict[str, Any]:
    document = world()
    document["podgroups"][0] |= more
    return document


def test_a_task_that_would_start_again_is_moved() -> None:
    assert moved(world()) == {"default/moves": "small"}
    assert moved(world(capability={"cpu": 1})) == {"default/moves": "small"}


@pytest.mark.parametrize("queue", [{"state": "Closed"}, {"state": "Closing"}, {"capability": {"cpu": "500m"}}])
def test_a_task_that_its_queue_would_not_take_again_is_not_moved(queue: dict[str, Any]) -> None:
    assert moved(world(**queue)) == {}


def test_a_task_of_an_inner_queue_is_not_moved() -> None:
    document = world()
    document["queues"].append({"name": "leaf", "parent": "other"})
    assert moved(document) == {}


def test_a_gated_task_is_not_moved() -> None:
    document = world()
    document["podgroups"][0]["tasks"][0]["scheduling_gated"] = True
    assert moved(document) == {}


@pytest.mark.parametrize(("runs", "expected"), [(False, {}), (True, {"default/moves": "small"})])
def test_a_podgroup_moves_only_if_the_others_of_its_gang_group_run(runs: bool, expected: dict[str, str]) -> None:
    document = with_victim(gang_group=["default/moves", "default/waits"])
    place = {"status": "Running", "node": "big"} if runs else {}
    waits = {"name": "waits", "request": {} if runs else {"gpu": 1}, **place}
    document["podgroups"].append({"name": "waits", "queue": "other", "tasks": [waits]})
    assert moved(document) == expected


def test_a_podgroup_that_starts_only_by_what_waits_is_not_moved() -> None:
    rest = [{"name": "rest", "request": {}, "status": "Running", "node": "small"}]
    tasks = world()["podgroups"][0]["tasks"]
    assert moved(with_victim(match_policy="only-waiting", min_available=2, tasks=tasks + rest)) == {}


def test_a_running_task_that_the_preemptor_repels_goes_though_there_is_room_for_both() -> None:
    repels = [{"topology_key": "kubernetes.io/hostname", "match_labels": {"app": "x"}}]
    runs = {"name": "runs", "request": ONE, "labels": {"app": "x"}, "status": "Running", "node": "n"}
    document = {
        "version": 1, "now": 1e4, "policy": {"profile": "kai"}, "queues": [{"name": "q"}],
        "nodes": [{"name": "n", "allocatable": {"cpu": 2}}],
        "podgroups": [
            {"name": "runs", "queue": "q", "tasks": [runs]},
            {"name": "apart", "queue": "q", "priority": 5, "tasks": [
                {"name": "apart", "request": ONE, "pod_anti_affinity": repels}]},
        ],
    }  # fmt: skip
    cycle = simulate(document)["cycles"][0]
    assert [one["task"] for one in cycle["evictions"]] == ["default/runs"]
    assert [one["task"] for one in cycle["nominations"]] == ["default/apart"]


@pytest.mark.parametrize("asks", [4, 6, 7])
def test_a_running_task_that_the_preemptor_repels_moves_to_another_node(asks: int) -> None:
    """Its own node may be the fullest that takes it, and is none of those that it may go to."""
    repels = [{"topology_key": "kubernetes.io/hostname", "match_labels": {"app": "x"}}]
    runs = {"name": "runs", "request": {"gpu": 2}, "labels": {"app": "x"}, "status": "Running", "node": "n0"}
    apart = {
        "name": "apart", "request": {"gpu": asks}, "pod_anti_affinity": repels,
        "node_selector": {"kubernetes.io/hostname": "n0"},
    }  # fmt: skip
    document = {
        "version": 1, "now": 1e4, "policy": {"profile": "kai"}, "queues": [{"name": "q"}, {"name": "other"}],
        "nodes": [{"name": name, "allocatable": {"gpu": 8}} for name in ("n0", "n1")],
        "podgroups": [
            {"name": "runs", "queue": "other", "tasks": [runs]}, {"name": "apart", "queue": "q", "tasks": [apart]},
        ],
    }  # fmt: skip
    assert moved(document) == {"default/runs": "n1"}


@pytest.mark.parametrize(("at_once", "expected"), [(0, {}), (1, {"default/moves": "small"})])
def test_a_moved_task_counts_among_those_that_may_end_at_one_time(at_once: int, expected: dict[str, str]) -> None:
    document = world()
    document["policy"]["plugins"] = {
        "evictionbudget": {"enabled": {"*": True}, "arguments": {"at_once": at_once}}
    }  # fmt: skip
    assert moved(document) == expected


def test_a_podgroup_that_never_evicts_has_nothing_moved() -> None:
    document = world()
    document["podgroups"][1]["preemption_policy"] = "Never"
    assert moved(document) == {}
