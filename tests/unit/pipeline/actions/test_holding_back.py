"""A cycle starts nothing that it would take again; under profile `kai` what is left is dealt out in order."""

from typing import Any

import pytest

from actors.cli.simulate import simulate


def job(name: str, sizes: list[int], priority: int, *, least: int = 1, on: str | None = None) -> dict[str, Any]:
    tasks: list[dict[str, Any]] = [{"name": f"{name}-{at}", "request": {"gpu": size}} for at, size in enumerate(sizes)]
    for task in tasks if on else ():
        task |= {"status": "Running", "node": on}
    return {
        "name": name, "queue": "q", "priority": priority, "min_available": least, "tasks": tasks,
        "phase": "Running" if on else "Inqueue", **({"started": 1.0} if on else {}),
    }  # fmt: skip


def cycles(gpus: int, *jobs: dict[str, Any], count: int = 3, profile: str = "kai") -> list[dict[str, list[str]]]:
    """By cycle the names of the tasks that were evicted, promised a node, and bound."""
    result = simulate(
        {
            "version": 1, "now": 1e6, "policy": {"profile": profile},
            "nodes": [{"name": "n", "allocatable": {"cpu": 64, "memory": "64Gi", "gpu": gpus, "pods": 64}}],
            "queues": [{"name": "q", "deserved": {"cpu": "unlimited", "memory": "unlimited", "gpu": gpus}}],
            "podgroups": list(jobs),
        },
        cycles=count,
    )  # fmt: skip
    assert result["error"] is None
    keys = ("evictions", "nominations", "bindings")
    return [{key: sorted(one["task"].split("/")[1] for one in made[key]) for key in keys} for made in result["cycles"]]


@pytest.mark.parametrize("profile", ["kai", "default"])
def test_what_a_later_action_would_take_does_not_start(profile: str) -> None:
    """Two devices are free, enough for one gang; the more important one would take them with the others."""
    first, second, third = cycles(4, job("run", [1, 1], 50, least=2, on="n"), job("low", [1, 1], 50, least=2),
                                  job("high", [4], 100), profile=profile)  # fmt: skip
    assert first == {"evictions": ["run-0", "run-1"], "nominations": ["high-0"], "bindings": []}
    assert second == {"evictions": [], "nominations": [], "bindings": ["high-0"]}
    assert third == {"evictions": [], "nominations": [], "bindings": []}


@pytest.mark.parametrize("profile", ["kai", "default"])
def test_what_starts_and_is_not_wanted_by_others_starts(profile: str) -> None:
    """The more important gang can never have room, so the other one is not held back for it."""
    first, second, _ = cycles(4, job("run", [1, 1], 50, least=2, on="n"), job("low", [1, 1], 50, least=2),
                              job("high", [5], 100), profile=profile)  # fmt: skip
    assert first == {"evictions": [], "nominations": [], "bindings": ["low-0", "low-1"]}
    assert second == {"evictions": [], "nominations": [], "bindings": []}


def test_an_elastic_podgroup_grows_in_its_turn() -> None:
    """It takes a task's room for its minimum, and another one's for each task more, in the same cycle."""
    low = [job(f"low{at}", [1], 50, on="n") for at in range(3)]
    first, second, _ = cycles(3, *low, job("high", [1, 1], 75))
    assert (len(first["evictions"]), first["nominations"]) == (2, ["high-0", "high-1"])
    assert second["bindings"] == ["high-0", "high-1"]


def test_what_an_eviction_leaves_over_is_dealt_out_by_the_next_allocate_in_order() -> None:
    """One victim frees two devices, the minimum takes one; the other is for its second task, not for `low`."""
    first, second, third = cycles(2, job("run", [2], 50, on="n"), job("high", [1, 1], 75), job("low", [1], 60))
    assert first == {"evictions": ["run-0"], "nominations": ["high-0"], "bindings": []}
    assert second["bindings"] == ["high-0", "high-1"]
    assert third == {"evictions": [], "nominations": [], "bindings": []}


def test_a_task_without_requests_that_is_held_back_is_not_started_by_backfill() -> None:
    """It would take the only pod of the node that the gang needs. Started anew by backfill, it kept the cycle going."""
    pods = {"pods": 1}
    found = simulate(
        {
            "version": 1,
            "now": 1_700_000_000.0,
            "policy": {"profile": "default"},
            "nodes": [
                {"name": "a", "allocatable": {"cpu": 6, "memory": "64Gi", **pods}},
                {"name": "b", "allocatable": {"cpu": 4, "memory": "64Gi", **pods}},
            ],
            "queues": [{"name": "due", "deserved": {"cpu": 6}}, {"name": "other"}],
            "podgroups": [
                {"name": "free", "queue": "other", "priority": 9, "tasks": [{"name": "free", "request": {}}]},
                {
                    "name": "runs", "queue": "other",
                    "tasks": [{"name": "runs", "request": {"cpu": 1}, "node": "a", "status": "Running"}],
                },
                {
                    "name": "gang", "queue": "due", "min_available": 2, "priority": 5,
                    "tasks": [{"name": "gang", "request": {"cpu": 3}, "count": 2}],
                },
            ],
        }
    )  # fmt: skip
    (cycle,) = found["cycles"]
    assert [one["task"] for one in cycle["evictions"]] == ["default/runs"]
    assert [one["node"] for one in cycle["nominations"]] == ["a", "b"]
    assert cycle["bindings"] == []


def decided(profile: str, document: dict[str, Any]) -> tuple[list[tuple[str, str]], list[str]]:
    """What one cycle evicts, by which action, and what it promises room."""
    (cycle,) = simulate({"version": 1, "now": 1e6, "policy": {"profile": profile}, **document})["cycles"]
    return [(one["task"], one["action"]) for one in cycle["evictions"]], [one["task"] for one in cycle["nominations"]]


def task(name: str, gpu: int, node: str | None = None, **more: Any) -> dict[str, Any]:
    on = {} if node is None else {"status": "Running", "node": node}
    return {"name": name, "request": {"gpu": gpu, **more}, **on}


def test_reclaim_evicts_nothing_for_a_podgroup_whose_room_preempt_takes() -> None:
    """Reclaim cannot serve `high`: its second task needs node b, where no other queue runs.

    It would evict `other` for `low`; then preempt would take that room for `high`, and a task of b with it.
    """
    document = {
        "nodes": [{"name": "a", "allocatable": {"gpu": 3}}, {"name": "b", "allocatable": {"cpu": 1, "gpu": 3}}],
        "queues": [{"name": "due", "deserved": {"gpu": 6}}, {"name": "over"}],
        "podgroups": [
            {"name": "other", "queue": "over", "tasks": [task("other", 1, "a")]},
            {"name": "wide", "queue": "due", "tasks": [task("wide", 2, "b")]},
            {"name": "runs", "queue": "due", "tasks": [task("runs-0", 1, "a"), task("runs-1", 1, "b")]},
            {"name": "low", "queue": "due", "tasks": [task("low", 2)]},
            {
                "name": "high", "queue": "due", "priority": 1, "min_available": 2,
                "tasks": [task("high-0", 1), task("high-1", 1, cpu=1)],
            },
        ],
    }  # fmt: skip
    assert decided("default", document) == (
        [("default/runs-1", "preempt")],
        ["default/high-0", "default/high-1"],
    )


def test_preempt_takes_at_once_the_room_that_a_later_reclaim_makes_for_a_less_important_podgroup() -> None:
    """Under `koordinator` preempt comes first. No quota is left for `high` beside `runs`, so reclaim cannot serve it.

    `low` would start where `other` ran, and go in the next cycle.
    """
    nodes = [{"name": name, "allocatable": {"cpu": 4, "pods": 9}} for name in "ab"]
    document = {
        "nodes": nodes,
        "queues": [{"name": "due", "deserved": {"cpu": 8}}, {"name": "over", "deserved": {"cpu": 0}}],
        "podgroups": [
            {"name": "other", "queue": "over", "tasks": [_cpus("other", 2, "a")]},
            {"name": "runs", "queue": "due", "tasks": [_cpus("runs", 2, "b")]},
            {"name": "low", "queue": "due", "tasks": [_cpus("low", 4)]},
            {
                "name": "high", "queue": "due", "priority": 1, "min_available": 2,
                "tasks": [_cpus("high-0", 4), _cpus("high-1", 4)],
            },
        ],
    }  # fmt: skip
    assert decided("koordinator", document) == (
        [("default/other", "reclaim"), ("default/runs", "preempt")],
        ["default/high-0", "default/high-1"],
    )
    made = {"version": 1, "now": 1e6, "policy": {"profile": "koordinator"}, **document}
    assert [one for cycle in simulate(made, 4)["cycles"][1:] for one in cycle["evictions"]] == []


def _cpus(name: str, cpu: int, node: str | None = None) -> dict[str, Any]:
    return {"name": name, "request": {"cpu": cpu}, **({} if node is None else {"status": "Running", "node": node})}


def test_nothing_is_moved_for_a_gang_that_preempt_breaks() -> None:
    """Consolidation would move a task so that `pair` is complete; preempt takes the other half of it for `high`."""
    document = {
        "nodes": [{"name": "a", "allocatable": {"cpu": 2, "gpu": 3}}, {"name": "b", "allocatable": {"gpu": 4}}],
        "queues": [{"name": "q"}],
        "podgroups": [
            {"name": "pair", "queue": "q", "min_available": 2, "tasks": [task("pair-0", 2), task("pair-1", 2, "a")]},
            {"name": "ones", "queue": "q", "tasks": [task(f"ones-{at}", 1, "b") for at in range(3)]},
            {"name": "high", "queue": "q", "priority": 1, "tasks": [task("high", 2, cpu=1)]},
        ],
    }
    assert decided("kai", document) == ([("default/pair-1", "preempt")], ["default/high"])


@pytest.mark.parametrize("profile", ["default", "kai", "koordinator"])
def test_a_podgroup_is_held_back_with_those_that_start_only_with_it(profile: str) -> None:
    """`high` would take the start of `low` alone; `side` lies on another node, and its turn would start `low` again."""
    document = {
        "nodes": [{"name": "a", "allocatable": {"gpu": 4}}, {"name": "b", "allocatable": {"cpu": 1, "gpu": 1}}],
        "queues": [{"name": "q", "deserved": {"gpu": 5, "cpu": 1}}],
        "podgroups": [
            {"name": "runs", "queue": "q", "tasks": [task("runs", 2, "a")]},
            {"name": "low", "queue": "q", "gang_group": ["default/low", "default/side"], "tasks": [task("low", 2)]},
            {
                "name": "side", "queue": "q", "gang_group": ["default/low", "default/side"],
                "tasks": [task("side", 1, cpu=1)],
            },
            {"name": "high", "queue": "q", "priority": 1, "tasks": [task("high", 4)]},
        ],
    }  # fmt: skip
    cycle, after = simulate({"version": 1, "now": 1e6, "policy": {"profile": profile}, **document}, 2)["cycles"]
    assert [one["task"] for one in cycle["evictions"]] == ["default/runs"]
    assert [one["task"] for one in cycle["nominations"]] == ["default/high"]
    assert cycle["bindings"] == []
    assert after["evictions"] == []


def test_a_task_that_only_moves_is_not_what_room_was_made_for() -> None:
    """What was to be held back in one queue is, though another queue's preempt takes a task that is moved.

    `low` would start beside `runs` and be taken for `high`. Apart from that, `moves` makes way for `due`, and `more`
    takes the place that it was moved to.
    """
    hosts = ("n0", "n1", "n3")

    def at(host: str, said: dict[str, Any]) -> dict[str, Any]:
        return said | {"node_selector": {"kubernetes.io/hostname": host}}

    said = [
        ("runs", "s", 50, at("n3", task("runs", 4, "n3"))), ("low", "s", 50, at("n3", task("low", 4))),
        ("high", "s", 90, at("n3", task("high", 8))), ("moves", "r", 50, task("moves", 2, "n0")),
        ("other", "r", 50, at("n1", task("other", 4, "n1"))), ("due", "q", 50, at("n0", task("due", 8))),
        ("more", "r", 90, at("n1", task("more", 8))),
    ]  # fmt: skip
    document = {
        "nodes": [{"name": name, "allocatable": {"gpu": 8}} for name in hosts],
        "queues": [{"name": "root"}, *({"name": name, "parent": "root", "deserved": {"gpu": 8}} for name in "qrs")],
        "podgroups": [
            {"name": name, "queue": queue, "priority": priority, "tasks": [one]} for name, queue, priority, one in said
        ],
    }
    cycle = simulate({"version": 1, "now": 1e6, "policy": {"profile": "kai"}, **document})["cycles"][0]
    evicted = [one["task"] for one in cycle["evictions"]]
    assert "default/runs" in evicted
    assert "default/low" not in evicted
    assert "default/high" in [one["task"] for one in cycle["nominations"]]
    assert cycle["bindings"] == []
