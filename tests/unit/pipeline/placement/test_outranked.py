"""A more important gang may have the room that a less important podgroup of its queue was promised."""

from typing import Any

import pytest

from tests.support import small_clusters
from tests.support.small_clusters import played, racks, world


def task(name: str, **more: Any) -> dict[str, Any]:
    return small_clusters.task(name, {"cpu": 2}) | more


def group(name: str, priority: int, *tasks: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": name, "queue": "q", "priority": priority, "min_available": len(tasks), "tasks": list(tasks), **more}


def first_cycle(nodes: int, *podgroups: dict[str, Any], profile: str = "default", **more: Any) -> dict[str, Any]:
    has = {f"n{at}": {"cpu": 4} for at in range(nodes)}
    policy = {"profile": profile, "actions": ["preempt"]}
    return played(world(has, {"q": {}, "other": {}}, podgroups, now=1000.0, **policy) | more)[0]


RUNNING = group("v", 50, task("v-0", status="Running", node="n0"))
PROMISED = group("lo", 1, task("lo-0", nominated_node="n0"))


def told(done: dict[str, Any]) -> tuple[list[str], dict[str, str]]:
    return [one["task"] for one in done["evictions"]], {one["task"]: one["node"] for one in done["nominations"]}


@pytest.mark.parametrize("profile", ["default", "kai"])
def test_a_promise_goes_before_running_work_does(profile: str) -> None:
    done = first_cycle(1, RUNNING, PROMISED, group("hi", 100, task("hi-0"), preemptible=True), profile=profile)
    assert told(done) == ([], {"default/hi-0": "n0"})


@pytest.mark.parametrize("profile", ["default", "kai"])
def test_a_promise_that_spares_no_running_work_stands(profile: str) -> None:
    """On its node a gang of two would have to go, which loses as much as the task that fills another node."""
    gang = group("v", 50, task("v-0", status="Running", node="n0"), task("v-1", status="Running", node="n2"))
    other = group("w", 50, task("w-0", request={"cpu": 4}, status="Running", node="n1"))
    lasting = group("x", 200, task("x-0", status="Running", node="n2"))
    hi = group("hi", 100, task("hi-0", request={"cpu": 4}), preemptible=True)
    done = first_cycle(3, gang, other, lasting, PROMISED, hi, profile=profile)
    assert told(done) == (["default/w-0"], {"default/hi-0": "n1", "default/lo-0": "n0"})


@pytest.mark.parametrize("profile", ["default", "kai"])
def test_a_promise_is_not_taken_for_a_bigger_task_at_the_same_loss(profile: str) -> None:
    """The same victim is as much as one task of the gang asks for, and twice what the other does."""
    has, policy = {"n0": {"cpu": 2, "gpu": 1}}, {"profile": profile, "actions": ["preempt"]}
    tasks = task("hi-0", request={"cpu": 2, "gpu": 1}), task("hi-1", request={"cpu": 1})
    hi = group("hi", 100, *tasks, preemptible=True) | {"min_available": 1}
    promised = group("lo", 1, task("lo-0", request={"gpu": 1}, nominated_node="n0"))
    done = played(world(has, {"q": {}}, [RUNNING, promised, hi], now=1000.0, **policy))[0]
    assert told(done) == (["default/v-0"], {"default/hi-1": "n0", "default/lo-0": "n0"})


@pytest.mark.parametrize("profile", ["default", "kai"])
def test_a_promise_is_not_taken_for_another_place_at_the_same_loss(profile: str) -> None:
    others = [group(f"w{at}", 50, task(f"w{at}-0", status="Running", node=f"n{at}")) for at in range(2)]
    hi = group("hi", 100, task("hi-0", request={"cpu": 4}), preemptible=True, topology={"required": "rack"})
    done = first_cycle(2, *others, PROMISED, hi, profile=profile, topology=racks(["n0", "n1"]))
    assert told(done) == (["default/w1-0"], {"default/hi-0": "n1", "default/lo-0": "n0"})


MOVING = group(
    "lo", 1,
    task("lo-0", request={"cpu": 4}, status="Terminating", node="n2", nominated_node="n1"),
    task("lo-1", request={"cpu": 4}, status="Running", node="n0"),
)  # fmt: skip


@pytest.mark.parametrize("profile", ["default", "kai", "koordinator"])
def test_a_podgroup_goes_as_a_whole_with_the_room_on_which_it_was_to_start_again(profile: str) -> None:
    taken = group("x", 200, task("x-0", request={"cpu": 4}, nominated_node="n2"))
    hi = group("hi", 100, *(task(f"hi-{at}", request={"cpu": 4}) for at in range(2)), preemptible=True)
    evicted, promised = told(first_cycle(3, MOVING, taken, hi, profile=profile))
    assert evicted == ["default/lo-1"]
    assert promised == {"default/hi-0": "n0", "default/hi-1": "n1", "default/x-0": "n2"}


@pytest.mark.parametrize("profile", ["default", "kai", "koordinator"])
def test_a_podgroup_does_not_break_for_the_room_on_which_it_was_to_start_again(profile: str) -> None:
    """What still runs of it is in the way of nobody: beside it on its node something more important runs."""
    taken = group("x", 200, task("x-0", request={"cpu": 4}, nominated_node="n2"))
    more = group("y", 200, task("y-0", status="Running", node="n0"))
    rest = group("lo", 1, MOVING["tasks"][0], task("lo-1", status="Running", node="n0"))
    hi = group("hi", 100, task("hi-0", request={"cpu": 4}), preemptible=True)
    done = first_cycle(3, rest, taken, more, hi, profile=profile)
    assert told(done) == ([], {"default/lo-0": "n1", "default/x-0": "n2"})


def test_a_promise_that_no_podgroup_would_take_stays_where_it_is() -> None:
    done = first_cycle(2, RUNNING, PROMISED, group("hi", 100, task("hi-0")))
    assert told(done) == ([], {"default/hi-0": "n1", "default/lo-0": "n0"})


def test_a_promise_that_still_fits_beside_the_plan_is_kept() -> None:
    """Both promises stand aside while the plan is looked for; one of them fits beside it."""
    second = group("lo2", 2, task("lo2-0", nominated_node="n1"))
    other = group("w", 50, task("w-0", status="Running", node="n1"))
    done = first_cycle(2, RUNNING, PROMISED, other, second, group("hi", 100, task("hi-0")))
    evicted, promised = told(done)
    assert evicted == []
    assert len(promised) == 2
    assert "default/hi-0" in promised


def test_a_gang_keeps_all_its_promises_or_none() -> None:
    gang = group("lo", 1, task("lo-0", nominated_node="n0"), task("lo-1", nominated_node="n1"))
    others = [group(f"w{at}", 50, task(f"w{at}-0", status="Running", node=f"n{at}")) for at in range(2)]
    assert told(first_cycle(2, *others, gang, group("hi", 100, task("hi-0"))))[1].keys() == {"default/hi-0"}


def test_promises_of_another_queue_and_of_equal_priority_stand() -> None:
    for standing in ({**PROMISED, "queue": "other"}, {**PROMISED, "priority": 100}):
        done = first_cycle(1, RUNNING, standing, group("hi", 100, task("hi-0")))
        assert told(done) == (["default/v-0"], {"default/hi-0": "n0", "default/lo-0": "n0"})
