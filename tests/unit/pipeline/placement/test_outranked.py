"""A more important gang may have the room that a less important podgroup of its queue was promised."""

from typing import Any

from actors.cli.simulate import simulate


def task(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "request": {"cpu": 2}, **more}


def group(name: str, priority: int, *tasks: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": name, "queue": "q", "priority": priority, "min_available": len(tasks), "tasks": list(tasks), **more}


def first_cycle(nodes: int, *podgroups: dict[str, Any], **more: Any) -> dict[str, Any]:
    cluster = {
        "version": 1, "now": 1000.0, "policy": {"profile": "default", "actions": ["preempt"]},
        "nodes": [{"name": f"n{at}", "allocatable": {"cpu": 4, "pods": 10}} for at in range(nodes)],
        "queues": [{"name": "q"}, {"name": "other"}], "podgroups": list(podgroups), **more,
    }  # fmt: skip
    done: dict[str, Any] = simulate(cluster, 1)["cycles"][0]
    return done


RUNNING = group("v", 50, task("v-0", status="Running", node="n0"))
PROMISED = group("lo", 1, task("lo-0", nominated_node="n0"))


def told(done: dict[str, Any]) -> tuple[list[str], dict[str, str]]:
    return [one["task"] for one in done["evictions"]], {one["task"]: one["node"] for one in done["nominations"]}


def test_a_promise_goes_before_running_work_does() -> None:
    done = first_cycle(1, RUNNING, PROMISED, group("hi", 100, task("hi-0")))
    assert told(done) == ([], {"default/hi-0": "n0"})


def test_a_promise_stays_where_it_is_in_nobodys_way() -> None:
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
