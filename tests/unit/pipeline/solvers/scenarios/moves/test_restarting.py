"""Nothing is moved that would not start again, and nothing stays beside a preemptor that repels it."""

from copy import deepcopy
from typing import Any

import pytest

from tests.support import small_clusters
from tests.support.small_clusters import named, played, podgroup

ONE = {"cpu": 1}
REPELS = {"pod_anti_affinity": [{"topology_key": "kubernetes.io/hostname", "match_labels": {"app": "x"}}]}


def world(**queue: Any) -> dict[str, Any]:
    """A task of one core has to move to the other node, so that one of two cores fits beside another such task."""
    groups = [
        podgroup("moves", [ONE], "big", queue="other"), podgroup("wide", [{"cpu": 2}] * 2, ["big", None], priority=3),
    ]  # fmt: skip
    policy = {"profile": "kai", "actions": ["allocate", "consolidation"]}
    return small_clusters.world({"big": {"cpu": 4}, "small": ONE}, {"q": {}, "other": queue}, groups, **policy)


def moved(document: dict[str, Any]) -> dict[str, str]:
    """By name where evicted tasks run three cycles later; those that do not are missing."""
    done = played(deepcopy(document), 4)
    starts = {made["task"].removeprefix("default/"): made["node"] for one in done for made in one["bindings"]}
    return {name: starts.get(name, "nowhere") for one in done for name in named(one["evictions"])}


def with_victim(**more: Any) -> dict[str, Any]:
    document = world()
    document["podgroups"][0] |= more
    return document


def test_a_task_that_would_start_again_is_moved() -> None:
    assert moved(world()) == {"moves-0": "small"}
    assert moved(world(capability={"cpu": 1})) == {"moves-0": "small"}


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


@pytest.mark.parametrize(("runs", "expected"), [(False, {}), (True, {"moves-0": "small"})])
def test_a_podgroup_moves_only_if_the_others_of_its_gang_group_run(runs: bool, expected: dict[str, str]) -> None:
    document = with_victim(gang_group=["default/moves", "default/waits"])
    document["podgroups"].append(podgroup("waits", [{}], "big", queue="other") if runs else
                                 podgroup("waits", [{"gpu": 1}], queue="other"))  # fmt: skip
    assert moved(document) == expected


def test_a_podgroup_that_starts_only_by_what_waits_is_not_moved() -> None:
    tasks = podgroup("moves", [ONE, {}], ["big", "small"])["tasks"]
    assert moved(with_victim(match_policy="only-waiting", min_available=2, tasks=tasks)) == {}


def test_a_running_task_that_the_preemptor_repels_goes_though_there_is_room_for_both() -> None:
    runs = podgroup("runs", [ONE], "n", {"labels": {"app": "x"}})
    apart = podgroup("apart", [ONE], of_each=REPELS, priority=5)
    (cycle,) = played(small_clusters.world({"n": {"cpu": 2}}, {"q": {}}, [runs, apart], profile="kai"))
    assert (named(cycle["evictions"]), named(cycle["nominations"])) == (["runs-0"], ["apart-0"])


@pytest.mark.parametrize("asks", [4, 6, 7])
def test_a_running_task_that_the_preemptor_repels_moves_to_another_node(asks: int) -> None:
    """Its own node may be the fullest that takes it, and is none of those that it may go to."""
    runs = podgroup("runs", [{"gpu": 2}], "n0", {"labels": {"app": "x"}}, queue="other")
    where = {"node_selector": {"kubernetes.io/hostname": "n0"}}
    apart = podgroup("apart", [{"gpu": asks}], of_each=REPELS | where)
    nodes = {name: {"gpu": 8} for name in ("n0", "n1")}
    document = small_clusters.world(nodes, {"q": {}, "other": {}}, [runs, apart], profile="kai")
    assert moved(document) == {"runs-0": "n1"}


@pytest.mark.parametrize(("at_once", "expected"), [(0, {}), (1, {"moves-0": "small"})])
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
