"""A gang that cannot start is told why, in every profile: what stands in the way, and nothing that is not so."""

import re
from functools import cache
from typing import Any

import pytest

from actors.cli.simulated_words import in_words
from pipeline.decision.obstacle import Cause
from tests.support.simulating import simulate
from tests.support.stuck import NOW, cluster, node, runs, stuck, task, want

PROFILES = ("default", "volcano", "kai", "koordinator")
#: Per cluster what must be told, with the fields that must be told with it.
EXPECTED: dict[str, tuple[Cause, dict[str, Any]]] = {
    "queue closed": (Cause.CLOSED, {"queue": "a", "what": "Closed"}),
    "ceiling": (Cause.CEILING, {"queue": "a", "what": "nvidia.com/gpu", "wanted": 16.0, "found": 8.0}),
    "own share": (Cause.QUEUE, {"queue": "a", "what": "nvidia.com/gpu", "wanted": 16.0, "found": 8.0}),
    "their share": (Cause.QUOTA, {"queue": "b", "found": 2.0}),
    "not reclaimable": (Cause.UNRECLAIMABLE, {"found": 2.0}),
    "budget": (Cause.BUDGET, {"budget": "default/keep", "plugin": "pdb"}),
    "taint": (Cause.TAINTED, {"what": "d=m:NoSchedule", "found": 2.0}),
    "cordon": (Cause.CORDONED, {"task": "default/want-0", "found": 1.0}),
    "no node": (Cause.NO_NODE, {}),
    "selector": (Cause.NODES, {"task": "default/want-0"}),
    "apart from each other": (Cause.REPELLED, {"task": "default/want-0"}),
    "apart from others": (Cause.REPELLED, {"task": "default/want-0", "found": 2.0}),
    "rack": (Cause.WIDTH, {"what": "rack", "wanted": 2.0, "found": 1.0}),
    "no rack": (Cause.LEVEL, {"podgroup": "default/want", "what": "rack"}),
    "subgroup": (Cause.TORN, {"podgroup": "default/want", "what": "rack", "wanted": 2.0}),
    "role": (Cause.SIZE, {"task": "default/want-0", "what": "nvidia.com/gpu", "wanted": 16.0, "found": 8.0}),
    "priority": (Cause.PRIORITY, {"found": 2.0}),
    "not preemptible": (Cause.UNPREEMPTIBLE, {"found": 2.0}),
    "critical": (Cause.CRITICAL, {"plugin": "conformance", "found": 2.0}),
    "minimum runtime": (Cause.YOUNG, {"plugin": "minruntime", "found": 2.0, "until": NOW + 3590}),
    "cool-down": (Cause.COOLING, {"plugin": "cdp", "found": 2.0, "until": NOW + 590}),
    "too large": (Cause.SIZE, {"task": "default/want-0", "wanted": 9.0, "found": 8.0}),
    "too many": (Cause.CLUSTER, {"wanted": 3.0, "found": 2.0}),
    "never together": (Cause.MIXED, {"task": "default/want-2", "wanted": 3.0, "found": 2.0}),
    "beyond the cluster": (Cause.TOTAL, {"what": "nvidia.com/gpu", "wanted": 21.0, "found": 16.0}),
    "never beyond the minimum": (Cause.NEVER, {"task": "default/want-1"}),
    "gated": (Cause.GATED, {"podgroup": "default/want", "found": 2.0}),
    "too few": (Cause.TASKS, {"podgroup": "default/want", "wanted": 3.0, "found": 1.0}),
    "too few of a role": (Cause.ROLE, {"podgroup": "default/want", "wanted": 2.0, "found": 1.0}),
    "not admitted": (Cause.ADMISSION, {"podgroup": "default/want", "queue": "a"}),
    "window": (Cause.WINDOW, {"queue": "a", "wanted": 2.0, "found": 2.0, "until": NOW + 51, "what": "60 s"}),
    "never": (Cause.NEVER, {"task": "default/want-0"}),
    "never, and a ceiling": (Cause.CEILING, {"queue": "a", "wanted": 16.0, "found": 8.0}),
    "law, and a cordon": (Cause.CORDONED, {"task": "default/want-0", "found": 1.0}),
    "delay, and cordons": (Cause.CORDONED, {"found": 2.0}),
    "a part that can be spared": (Cause.SHAPES, {"task": "default/want-0", "wanted": 2.0, "found": 2.0}),
    "too few of a subgroup": (Cause.SUBGROUP, {"task": "default/want-2", "wanted": 2.0, "found": 1.0}),
    "delay": (Cause.DELAY, {"podgroup": "default/want"}),
    "no breaking": (Cause.BREAKS, {"found": 2.0}),
}
#: Where a profile's policy lets the podgroup start all the same.
STARTS = {
    ("apart from others", "kai"), ("budget", "volcano"), ("budget", "kai"),
    ("law, and a cordon", "volcano"), ("law, and a cordon", "kai"), ("critical", "kai"),
    ("minimum runtime", "volcano"), ("minimum runtime", "koordinator"), ("no breaking", "kai"),
    ("no breaking", "koordinator"), ("not admitted", "kai"), ("not admitted", "koordinator"),
    ("never beyond the minimum", "default"), ("never beyond the minimum", "volcano"),
    ("never beyond the minimum", "kai"),
}  # fmt: skip
CASES = [(name, profile) for name in EXPECTED for profile in PROFILES if (name, profile) not in STARTS]


@cache
def told(name: str, profile: str) -> dict[str, Any]:
    """What a simulation of one cycle says."""
    document = stuck()[name]
    policy = {"profile": profile} | document.get("policy", {})
    result = simulate(document | {"policy": policy}, explain=True)
    assert result["error"] is None, result["error"]
    return result


def obstacles(result: dict[str, Any]) -> list[dict[str, Any]]:
    """All that stands in the way of ``want``."""
    waits = result["explain"]["podgroups"]["default/want"]
    return [*waits.get("obstacles", ()), *(one for attempt in waits["attempts"] for one in attempt["obstacles"])]


@pytest.mark.parametrize(("name", "profile"), CASES)
def test_a_gang_that_cannot_start_is_told_what_stands_in_the_way(name: str, profile: str) -> None:
    cause, fields = EXPECTED[name]
    result = told(name, profile)
    assert not result["cycles"][0]["evictions"]
    found = [one for one in obstacles(result) if one["cause"] == cause.value]
    assert found, obstacles(result)
    assert any(fields.items() <= one.items() for one in found), found


@pytest.mark.parametrize(("name", "profile"), sorted(STARTS))
def test_a_policy_that_does_not_protect_them_takes_them(name: str, profile: str) -> None:
    first = told(name, profile)["cycles"][0]
    assert {one["task"] for one in (*first["nominations"], *first["bindings"])} >= {"default/want-0"}


@pytest.mark.parametrize(("name", "profile"), CASES)
def test_numbers_of_what_stands_in_the_way_do_not_contradict_each_other(name: str, profile: str) -> None:
    short = {
        Cause.TASKS, Cause.ROLE, Cause.SUBGROUP, Cause.CEILING, Cause.SIZE, Cause.CLUSTER, Cause.TOTAL, Cause.MIXED,
        Cause.WIDTH, Cause.FREE, Cause.BUDGET,
    }  # fmt: skip
    for one in obstacles(told(name, profile)):
        if Cause(one["cause"]) in short:
            assert one.get("wanted", 0) > one.get("found", 0), one
    for attempt in told(name, profile)["explain"]["podgroups"]["default/want"]["attempts"]:
        assert attempt["minimum"] > 0, attempt


@pytest.mark.parametrize(("name", "profile"), CASES)
def test_everything_that_stands_in_the_way_is_said_as_a_sentence(name: str, profile: str) -> None:
    text = in_words(told(name, profile))
    assert "default/want is Unschedulable" in text
    assert "{" not in text
    assert not re.search(r"\S  |, ,", text)
    assert not re.search(r"(?<!of )\b1 (running )?(tasks|nodes|victims)", text)


def test_a_podgroup_is_said_to_lack_what_its_subgroups_lack_at_least() -> None:
    waits = told("too few of a subgroup", "default")["explain"]["podgroups"]["default/want"]
    assert (waits["minimum"], waits["schedulable"], waits["unready"], len(waits["obstacles"])) == (1, 0, 2, 1)
    assert "the minima of its roles or subgroups lack 2" in in_words(told("too few of a subgroup", "default"))


def test_that_no_plugin_says_what_queues_are_entitled_to_is_told() -> None:
    """Here with gang alone, which lets all tasks go."""
    document = stuck()["their share"]
    tier = [{"name": "gang", "enabled": {"*": True}}, {"name": "priority", "enabled": {"*": True}}]
    policy = {"profile": "volcano", "actions": ["gangreclaim"], "tiers": [tier]}
    result = simulate(document | {"policy": policy}, explain=True)
    assert [one for one in obstacles(result) if one["cause"] == Cause.UNENTITLED.value and one["found"] == 2.0]
    assert "no plugin says what queues are entitled to" in in_words(result)


def test_what_a_budget_protects_is_not_laid_to_a_queue() -> None:
    assert Cause.QUOTA.value not in [one["cause"] for one in obstacles(told("budget", "default"))]


def test_the_ceiling_of_the_cluster_is_not_laid_to_the_queue() -> None:
    for name in ("priority", "too many", "own share"):
        assert Cause.CEILING.value not in [one["cause"] for one in obstacles(told(name, "default"))]


@pytest.mark.parametrize("profile", PROFILES)
def test_a_decision_names_its_victims_and_what_the_other_podgroup_would_have_cost(profile: str) -> None:
    document = stuck()["priority"]
    for podgroup in document["podgroups"][:2]:
        podgroup["priority"] = 1
    result = simulate(document | {"policy": {"profile": profile}}, explain=True)
    (made,) = (one for one in result["explain"]["decisions"] if one["evicts"])
    (victim,), (other,) = made["victims"], made["spared"]
    assert {victim["podgroup"], other["podgroup"]} == {"default/low0", "default/low1"}
    assert (victim["tasks"], other["tasks"], other["price"]["victims"]) == (1, 1, 1)


def test_of_a_podgroup_that_breaks_no_victim_is_said_to_be_surplus() -> None:
    document = cluster(runs("low", "n0", "n0", gpus=4), want(3, 2), nodes=[node("n0")])
    result = simulate(document | {"policy": {"profile": "default"}}, explain=True)
    (made,) = (one for one in result["explain"]["decisions"] if one["evicts"])
    assert [(one["podgroup"], one["safe"], one["tasks"]) for one in made["victims"]] == [("default/low", False, 2)]
    assert "  victim default/low: 2 tasks broken whole, priority 1" in in_words(result)


def test_a_decision_made_task_by_task_names_them_too() -> None:
    document = stuck()["priority"]
    for podgroup in document["podgroups"][:2]:
        podgroup["priority"], podgroup["min_available"] = 1, 0
    policy = {"profile": "volcano", "actions": ["preempt"]}
    (made,) = simulate(document | {"policy": policy}, explain=True)["explain"]["decisions"]
    assert len(made["victims"]) == len(made["spared"]) == 1


@pytest.mark.parametrize("profile", PROFILES)
def test_what_was_just_evicted_is_not_asked_for_more_tasks(profile: str) -> None:
    document = cluster(runs("low", "n0", min_available=2), want(1), nodes=[node("n0")])
    document["podgroups"][0]["tasks"].append(task("low-1", 8))
    result = simulate(document | {"policy": {"profile": profile}}, explain=True)
    waits = result["explain"]["podgroups"]["default/low"]
    assert waits["ending"] == 1
    assert "create more" not in in_words(result)
    assert "its minimum of 1 lacks 1, for which room is promised" in in_words(result)


@pytest.mark.parametrize(
    ("delay", "until"), [(60, "1970-01-12 13:47:40+00:00"), (1e300, "a time beyond the year 9999")]
)
def test_a_delay_is_told_with_the_date_of_its_end_however_long_it_is(delay: float, until: str) -> None:
    document = stuck()["delay"] | {"now": 1_000_000}
    document["podgroups"][-1] |= {"created": 1_000_000, "preemption_delay": delay}
    lines = "".join(in_words(simulate(document, explain=True)))
    assert f"must not evict before {until}, in {delay:g} s: wait" in lines
