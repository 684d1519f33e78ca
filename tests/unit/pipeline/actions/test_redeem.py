"""A promise is redeemed only where it would be made again, and is given up as soon as it cannot be kept."""

from copy import deepcopy
from typing import Any

import pytest

from tests.support import small_clusters
from tests.support.small_clusters import named, played, podgroup, racks

ONE = {"cpu": 1}
REPELS = {"pod_anti_affinity": [{"topology_key": "kubernetes.io/hostname", "match_labels": {"app": "x"}}]}


def node(name: str, cpu: int = 4, gpu: int = 0, **more: Any) -> dict[str, Any]:
    return {"name": name, "allocatable": {"cpu": cpu, "gpu": gpu, "pods": 10}, **more}


def waiting(*nominated: str, task: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """A gang of tasks of one core, each promised a node."""
    said = {"priority": 10, "min_available": len(nominated), "created": 1.0, **more}
    made = podgroup("hi", [ONE] * len(nominated), **said)
    for one, at in zip(made["tasks"], nominated, strict=True):
        one |= {"nominated_node": at, **(task or {})}
    return made


def world(nodes: list[dict[str, Any]], *podgroups: dict[str, Any], **more: Any) -> dict[str, Any]:
    queues = {"q": more.pop("queue", {})}
    return small_clusters.world({}, queues, podgroups, actions=["allocate", "preempt"]) | {"nodes": nodes, **more}


def bindings(cluster: dict[str, Any], cycles: int = 1) -> dict[str, str]:
    """Where tasks start within some cycles."""
    return {made["task"]: made["node"] for one in played(deepcopy(cluster), cycles) for made in one["bindings"]}


def runs(name: str, on: str, cpu: int = 1, **more: Any) -> dict[str, Any]:
    return podgroup(name, [{"cpu": cpu}], on, more.pop("task", None), priority=10, created=0.0, **more)


def test_a_promise_that_still_holds_is_redeemed_where_it_was_made() -> None:
    assert bindings(world([node("n0"), node("n1")], waiting("n1"))) == {"default/hi-0": "n1"}


@pytest.mark.parametrize(
    "change",
    [
        {"unschedulable": True},
        {"taints": [{"key": "x", "value": "", "effect": "NoSchedule"}]},
        {"labels": {"zone": "b"}},
    ],
)
def test_a_node_that_takes_the_task_no_longer_is_left_for_another(change: dict[str, Any]) -> None:
    nodes = [node("n0", labels={"zone": "a"}), node("n1", **{"labels": {"zone": "a"}, **change})]
    assert bindings(world(nodes, waiting("n1", task={"node_selector": {"zone": "a"}}))) == {"default/hi-0": "n0"}


def test_a_promise_beside_a_task_that_repels_it_is_moved() -> None:
    cluster = world(
        [node("n0"), node("n1")], waiting("n0", task=REPELS), runs("w", "n0", task={"labels": {"app": "x"}})
    )
    assert bindings(cluster) == {"default/hi-0": "n1"}


@pytest.mark.parametrize("promised", [True, False])
@pytest.mark.parametrize("whose", ["newcomer", "ending"])
def test_a_task_starts_beside_one_that_repels_it_only_once_that_has_ended(promised: bool, whose: str) -> None:
    labelled = {"labels": {"app": "x"}}
    newcomer, ending = (REPELS, labelled) if whose == "newcomer" else (labelled, REPELS)
    hi = waiting("n0", task={**newcomer, **({} if promised else {"nominated_node": None})})
    ends = runs("w", "n0", task={"status": "Terminating", "gone_when_evicted": True, **ending})
    cluster = world([node("n0")], hi, ends)
    assert bindings(cluster) == {}
    assert bindings(cluster, cycles=2) == {"default/hi-0": "n0"}
    assert bindings(world([node("n0"), node("n1")], hi, ends)) == ({} if promised else {"default/hi-0": "n1"})


def test_a_task_that_must_wait_for_another_to_end_leaves_the_room_that_is_there_to_others() -> None:
    hi = waiting("n0", "n0", min_available=1)
    hi["tasks"][0].update(REPELS)
    ends = runs("w", "n0", task={"status": "Terminating", "labels": {"app": "x"}})
    assert bindings(world([node("n0", 2)], hi, ends)) == {"default/hi-1": "n0"}


def test_room_that_was_taken_for_good_is_not_waited_for() -> None:
    cluster = world([node("n0", 1), node("n1", 1)], waiting("n0"), runs("w", "n0"))
    assert bindings(cluster) == {"default/hi-0": "n1"}


def test_of_two_promises_for_one_place_the_more_important_one_is_kept() -> None:
    lesser = {**waiting("n0"), "name": "lo", "priority": 1}
    lesser["tasks"] = [{**lesser["tasks"][0], "name": "lo-0"}]
    cluster = world([node("n0", 1), node("n1", 1)], lesser, waiting("n0"))
    assert bindings(cluster) == {"default/hi-0": "n0", "default/lo-0": "n1"}


def test_the_promises_that_can_be_kept_are_kept() -> None:
    nodes = [node("n0", 1), node("n1", 1), node("n2", 1, unschedulable=True), node("n3", 1)]
    assert bindings(world(nodes, waiting("n1", "n2"))) == {"default/hi-0": "n1", "default/hi-1": "n0"}


RACKS = racks([f"n{at}" for at in range(4)], each=2)


def test_a_gang_whose_promises_lie_in_two_racks_is_placed_anew_in_one() -> None:
    nodes = [node(f"n{at}", 1) for at in range(4)]
    gang = waiting("n1", "n2", topology={"required": "rack"})
    assert set(bindings(world(nodes, gang, topology=RACKS)).values()) in ({"n0", "n1"}, {"n2", "n3"})


def test_a_torn_gang_that_fits_no_rack_does_not_start_and_is_promised_nothing() -> None:
    nodes = [node("n0", 1, unschedulable=True), node("n1", 1), node("n2", 1), node("n3", 1, unschedulable=True)]
    done = played(world(nodes, waiting("n1", "n2", topology={"required": "rack"}), topology=RACKS), 2)
    assert [one["bindings"] for one in done] == [[], []]
    assert done[-1]["nominations"] == []


@pytest.mark.parametrize("queue", [{"state": "Closed"}, {"capability": {"cpu": 1}}])
def test_a_queue_that_may_not_take_the_task_any_more_ends_the_promise(queue: dict[str, Any]) -> None:
    done = played(world([node("n0"), node("n1")], waiting("n0"), runs("w", "n1"), queue=queue), 2)
    assert [one["bindings"] for one in done] == [[], []]
    assert done[-1]["nominations"] == []


def test_a_surplus_promise_that_breaks_does_not_hold_the_others_up() -> None:
    gang = waiting("n0", "n1", min_available=1)
    assert bindings(world([node("n0", 1), node("n1", 1, unschedulable=True)], gang)) == {"default/hi-0": "n0"}


@pytest.mark.parametrize("actions", [["allocate"], ["allocate", "preempt"]])
def test_a_promise_that_leads_nowhere_makes_room_for_others(actions: list[str]) -> None:
    """The gang needs two nodes and there is one: what it is promised on it is given to the task that fits."""
    small = {**waiting("n1"), "name": "lo", "priority": 1}
    small["tasks"] = [{"name": "lo-0", "request": ONE}]
    cluster = world([node("n1", 1), node("n2", 1, unschedulable=True)], waiting("n1", "n2"), small)
    cluster["policy"]["actions"] = actions
    assert bindings(cluster, 1) == {}
    assert bindings(cluster, 2) == {"default/lo-0": "n1"}


@pytest.mark.parametrize("actions", [["allocate"], ["allocate", "preempt"]])
def test_what_is_promised_to_one_of_two_that_start_together_is_given_up_where_the_other_has_no_place(
    actions: list[str],
) -> None:
    together = {"gang_group": ["default/hi", "default/mate"]}
    mate, low = podgroup("mate", [ONE], priority=9, **together), podgroup("lo", [ONE], priority=1)
    cluster = world([node("n1", 1)], waiting("n1", **together), mate, low)
    cluster["policy"]["actions"] = actions
    assert bindings(cluster, 1) == {}
    assert bindings(cluster, 2) == {"default/lo-0": "n1"}


@pytest.mark.parametrize("turned", [False, True])
def test_of_two_promises_of_a_podgroup_the_first_in_its_order_is_kept_whatever_the_order_in_the_file(
    turned: bool,
) -> None:
    low = waiting("n1", "n1", task={"request": {"cpu": 3}}, min_available=1)
    low["tasks"] = low["tasks"][::-1] if turned else low["tasks"]
    assert bindings(world([node("n1")], low), 2) == {"default/hi-0": "n1"}


def test_a_gang_that_is_broken_by_a_later_action_keeps_no_promise_made_before() -> None:
    """One of its tasks is ending, one runs, and one may start where the first was; reclaim takes the runner."""
    gang = runs("gang", "n1", cpu=2, min_available=2, queue="other")
    gang["tasks"] += [
        {"name": "gang-1", "request": {"cpu": 2}, "status": "Terminating", "node": "n1"},
        {"name": "gang-2", "request": {"cpu": 2}},
    ]
    due = podgroup("due", [{"gpu": 1}, *[{"cpu": 1, "gpu": 1}] * 3], min_available=4)
    nodes, policy = [node("n0", cpu=1, gpu=1), node("n1", gpu=3)], {"profile": "volcano"}
    cluster = world(nodes, gang, due, policy=policy, queue={"deserved": {"cpu": 8}})
    cluster["queues"].append({"name": "other"})
    (cycle,) = played(cluster)
    assert named(cycle["evictions"]) == ["gang-0"]
    assert named(cycle["nominations"]) == [f"due-{at}" for at in range(4)]
