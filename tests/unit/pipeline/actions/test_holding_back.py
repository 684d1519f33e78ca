"""A cycle starts nothing that it would take again; under profile `kai` what is left is dealt out in order."""

from contextlib import AbstractContextManager
from typing import Any

import pytest

from actors.cli.simulate import open_case
from pipeline import propose
from pipeline.actions import progress
from pipeline.actions.setup import Noted, Notes, Setup, Unobserved
from pipeline.cluster.rules.gang_groups import GangGroup
from pipeline.cycle import cycle
from pipeline.decision.attempt import Attempt
from pipeline.decision.explanation import Explanation, Reason
from pipeline.plugins.host import Host
from pipeline.policy import ExtensionPoint
from tests.support.small_clusters import REST, job, named, played, podgroup, task, told, world

#: A gang that runs, and one that would fit beside it on four devices.
FULL = (job("run", [1, 1], 50, "n", min_available=2), job("low", [1, 1], 50, min_available=2))


class Steps(Unobserved):
    """The names of the steps of a cycle."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def step(self, name: str, **attributes: Noted) -> AbstractContextManager[Notes]:
        self.names.append(name)
        return super().step(name, **attributes)


def cycles(gpus: int, *jobs: dict[str, Any], count: int = 3, profile: str = "kai") -> list[dict[str, list[str]]]:
    """What each cycle decides on a node with these devices."""
    nodes, queues = {"n": {"cpu": 64, "memory": "64Gi", "gpu": gpus}}, {"q": {"deserved": {**REST, "gpu": gpus}}}
    return [told(cycle) for cycle in played(world(nodes, queues, jobs, profile=profile), count)]


@pytest.mark.parametrize("profile", ["kai", "default"])
def test_what_a_later_action_would_take_does_not_start(profile: str) -> None:
    """Two devices are free, enough for one gang; the more important one would take them with the others."""
    first, second, third = cycles(4, *FULL, job("high", [4], 100), profile=profile)
    assert first == {"evictions": ["run-0", "run-1"], "nominations": ["high-0"], "bindings": []}
    assert second == {"evictions": [], "nominations": [], "bindings": ["high-0"]}
    assert third == {"evictions": [], "nominations": [], "bindings": []}


@pytest.mark.parametrize("profile", ["kai", "default"])
def test_what_starts_and_is_not_wanted_by_others_starts(profile: str) -> None:
    """The more important gang can never have room, so the other one is not held back for it."""
    first, second, _ = cycles(4, *FULL, job("high", [5], 100), profile=profile)
    assert first == {"evictions": [], "nominations": [], "bindings": ["low-0", "low-1"]}
    assert second == {"evictions": [], "nominations": [], "bindings": []}


def test_an_elastic_podgroup_grows_in_its_turn() -> None:
    """It takes a task's room for its minimum, and another one's for each task more, in the same cycle."""
    low = [job(f"low{at}", [1], 50, "n") for at in range(3)]
    first, second, _ = cycles(3, *low, job("high", [1, 1], 75))
    assert (len(first["evictions"]), first["nominations"]) == (2, ["high-0", "high-1"])
    assert second["bindings"] == ["high-0", "high-1"]


def test_what_an_eviction_leaves_over_is_dealt_out_by_the_next_allocate_in_order() -> None:
    """One victim frees two devices, the minimum takes one; the other is for its second task, not for `low`."""
    first, second, third = cycles(2, job("run", [2], 50, "n"), job("high", [1, 1], 75), job("low", [1], 60))
    assert first == {"evictions": ["run-0"], "nominations": ["high-0"], "bindings": []}
    assert second["bindings"] == ["high-0", "high-1"]
    assert third == {"evictions": [], "nominations": [], "bindings": []}


def test_a_task_without_requests_that_is_held_back_is_not_started_by_backfill() -> None:
    """It would take the only pod of the node that the gang needs. Started anew by backfill, it kept the cycle going."""
    nodes = {name: {"cpu": cpu, "memory": "64Gi", "pods": 1} for name, cpu in (("a", 6), ("b", 4))}
    groups = [
        podgroup("free", [{}], queue="other", priority=9), podgroup("runs", [{"cpu": 1}], "a", queue="other"),
        podgroup("gang", [{"cpu": 3}] * 2, queue="due", min_available=2, priority=5),
    ]  # fmt: skip
    (cycle,) = played(world(nodes, {"due": {"deserved": {"cpu": 6}}, "other": {}}, groups))
    assert named(cycle["evictions"]) == ["runs-0"]
    assert [one["node"] for one in cycle["nominations"]] == ["a", "b"]
    assert cycle["bindings"] == []


def decided(cluster: dict[str, Any]) -> tuple[list[tuple[str, str]], list[str]]:
    """What one cycle evicts, by which action, and what it promises room."""
    (cycle,) = played(cluster)
    actions = [one["action"] for one in cycle["evictions"]]
    return list(zip(named(cycle["evictions"]), actions, strict=True)), named(cycle["nominations"])


def test_reclaim_evicts_nothing_for_a_podgroup_whose_room_preempt_takes() -> None:
    """Reclaim cannot serve `high`: its second task needs node b, where no other queue runs.

    It would evict `other` for `low`; then preempt would take that room for `high`, and a task of b with it.
    """
    groups = [
        podgroup("other", [{"gpu": 1}], "a", queue="over"), podgroup("wide", [{"gpu": 2}], "b", queue="due"),
        podgroup("runs", [{"gpu": 1}] * 2, ["a", "b"], queue="due"), podgroup("low", [{"gpu": 2}], queue="due"),
        podgroup("high", [{"gpu": 1}, {"gpu": 1, "cpu": 1}], queue="due", priority=1, min_available=2),
    ]  # fmt: skip
    nodes, queues = {"a": {"gpu": 3}, "b": {"cpu": 1, "gpu": 3}}, {"due": {"deserved": {"gpu": 6}}, "over": {}}
    assert decided(world(nodes, queues, groups)) == ([("runs-1", "preempt")], ["high-0", "high-1"])


def test_preempt_takes_at_once_the_room_that_a_later_reclaim_makes_for_a_less_important_podgroup() -> None:
    """Under `koordinator` preempt comes first. No quota is left for `high` beside `runs`, so reclaim cannot serve it.

    `low` would start where `other` ran, and go in the next cycle.
    """
    groups = [
        podgroup("other", [{"cpu": 2}], "a", queue="over"), podgroup("runs", [{"cpu": 2}], "b", queue="due"),
        podgroup("low", [{"cpu": 4}], queue="due"),
        podgroup("high", [{"cpu": 4}] * 2, queue="due", priority=1, min_available=2),
    ]  # fmt: skip
    queues = {"due": {"deserved": {"cpu": 8}}, "over": {"deserved": {"cpu": 0}}}
    made = world({name: {"cpu": 4} for name in "ab"}, queues, groups, profile="koordinator")
    assert decided(made) == ([("other-0", "reclaim"), ("runs-0", "preempt")], ["high-0", "high-1"])
    assert [one for cycle in played(made, 4)[1:] for one in cycle["evictions"]] == []


def test_nothing_is_moved_for_a_gang_that_preempt_breaks() -> None:
    """Consolidation would move a task so that `pair` is complete; preempt takes the other half of it for `high`."""
    groups = [
        podgroup("pair", [{"gpu": 2}] * 2, [None, "a"], min_available=2), podgroup("ones", [{"gpu": 1}] * 3, "b"),
        podgroup("high", [{"gpu": 2, "cpu": 1}], priority=1),
    ]  # fmt: skip
    made = world({"a": {"cpu": 2, "gpu": 3}, "b": {"gpu": 4}}, {"q": {}}, groups, profile="kai")
    assert decided(made) == ([("pair-1", "preempt")], ["high-0"])


@pytest.mark.parametrize("profile", ["default", "kai", "koordinator"])
def test_a_podgroup_is_held_back_with_those_that_start_only_with_it(profile: str) -> None:
    """`high` would take the start of `low` alone; `side` lies on another node, and its turn would start `low` again."""
    together = {"gang_group": ["default/low", "default/side"]}
    groups = [
        podgroup("runs", [{"gpu": 2}], "a"), podgroup("low", [{"gpu": 2}], **together),
        podgroup("side", [{"gpu": 1, "cpu": 1}], **together), podgroup("high", [{"gpu": 4}], priority=1),
    ]  # fmt: skip
    nodes, queues = {"a": {"gpu": 4}, "b": {"cpu": 1, "gpu": 1}}, {"q": {"deserved": {"gpu": 5, "cpu": 1}}}
    cycle, after = played(world(nodes, queues, groups, profile=profile), 2)
    assert told(cycle) == {"evictions": ["runs-0"], "nominations": ["high-0"], "bindings": []}
    assert after["evictions"] == []


def test_a_task_that_only_moves_is_not_what_room_was_made_for() -> None:
    """What was to be held back in one queue is, though another queue's preempt takes a task that is moved.

    `low` would start beside `runs` and be taken for `high`. Apart from that, `moves` makes way for `due`, and `more`
    takes the place that it was moved to.
    """
    said = {
        "runs": ("s", 50, 4, "n3", "n3"), "low": ("s", 50, 4, None, "n3"), "high": ("s", 90, 8, None, "n3"),
        "other": ("r", 50, 4, "n1", "n1"), "due": ("q", 50, 8, None, "n0"), "more": ("r", 90, 8, None, "n1"),
    }  # fmt: skip
    groups = [
        {"name": name, "queue": queue, "priority": priority,
         "tasks": [task(name, {"gpu": gpus}, on, node_selector={"kubernetes.io/hostname": host})]}
        for name, (queue, priority, gpus, on, host) in said.items()
    ]  # fmt: skip
    groups.insert(3, {"name": "moves", "queue": "r", "priority": 50, "tasks": [task("moves", {"gpu": 2}, "n0")]})
    queues = {"root": {}, **{name: {"parent": "root", "deserved": {"gpu": 8}} for name in "qrs"}}
    cycle = told(played(world({name: {"gpu": 8} for name in ("n0", "n1", "n3")}, queues, groups, profile="kai"))[0])
    assert "runs" in cycle["evictions"]
    assert "low" not in cycle["evictions"]
    assert "high" in cycle["nominations"]
    assert cycle["bindings"] == []


@pytest.mark.parametrize("profile", ["kai", "default"])
@pytest.mark.parametrize("queue", ["q", "other"])
def test_all_that_wait_behind_a_start_that_is_held_back_are_held_back_together(profile: str, queue: str) -> None:
    """Each would start in place of the one before it, and the cycle began anew for each: minutes in a large fleet."""
    priority = 100 if queue == "q" else 50
    waiting = [job(f"low{at}", [1, 1], 50, min_available=2) for at in range(20)]
    groups = [FULL[0], *waiting, job("high", [4], priority, queue=queue)]
    queues = {"q": {"deserved": {**REST, "gpu": 0}}, "other": {"deserved": {**REST, "gpu": 4}}}
    case = open_case(world({"n": {"cpu": 64, "memory": "64Gi", "gpu": 4}}, queues, groups, profile=profile))
    steps = Steps()
    done = cycle(case.snapshot, case.policy, case.now, Setup(observer=steps))
    assert [(len(made.evictions), len(made.nominated)) for made in done.statements if len(made.evictions)] == [(2, 1)]
    assert [made for made in done.statements if len(made.placed) and not len(made.evictions)] == []
    assert steps.names.count("allocate") <= 6


@pytest.mark.parametrize("profile", ["kai", "default"])
def test_what_stands_in_the_way_is_looked_for_once_the_actions_need_not_begin_anew(
    profile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is found for `huge`, at first beside `low`, which `high` would take; or explained at once, if kept."""
    asked, in_full = list[GangGroup](), propose.with_obstacles

    def noting(attempt: Attempt, host: Host, why: Explanation, point: ExtensionPoint) -> Explanation:
        asked.append(attempt.podgroups)
        return in_full(attempt, host, why, point)

    monkeypatch.setattr(propose, "with_obstacles", noting)
    nodes, queues = {"n": {"cpu": 64, "memory": "64Gi", "gpu": 4}}, {"q": {"deserved": {**REST, "gpu": 4}}}
    groups = [*FULL, job("high", [4], 100), job("huge", [5], 120)]
    case = open_case(world(nodes, queues, groups, profile=profile))
    done = cycle(case.snapshot, case.policy, case.now)
    refused = [why for why in done.explanations if why.reason is not Reason.CHOSEN]
    assert len(asked) == len(refused) > 0
    assert any(one.why.obstacles for one in done.unplaced)
    assert {id(one.why) for one in done.unplaced} <= set(map(id, refused))
    asked.clear()
    monkeypatch.setattr(progress, "_MOST_KEPT", -1)
    again = cycle(case.snapshot, case.policy, case.now)
    assert len(asked) > len(refused)
    assert repr([again.explanations, again.unplaced]) == repr([done.explanations, done.unplaced])
