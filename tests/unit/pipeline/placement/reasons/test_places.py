"""What nodes lack, whichever victims go."""

from typing import Any

import pytest

from actors.cli.simulated_words import in_words
from pipeline.cluster.vocabulary import Constraint
from pipeline.decision.explanation import Reason
from pipeline.decision.obstacle import Cause
from pipeline.placement.reasons import places
from tests.support.simulating import simulate
from tests.support.stuck import RACKS, cluster, full, node, runs, task, want

WIDE = {"cause": Cause.WIDTH.value, "task": "default/want-1", "what": "rack", "wanted": 1.0, "found": 0.0}


def attempts(document: dict[str, Any], profile: str) -> dict[str, dict[str, Any]]:
    """Why ``want`` waits, by action."""
    why = simulate(document, profile=profile, explain=True)["explain"]
    return {one["action"]: one for one in why["podgroups"]["default/want"]["attempts"]}


@pytest.mark.parametrize("profile", ["default", "volcano", "kai", "koordinator"])
def test_a_gang_whose_own_tasks_fill_its_domain_is_told_that_the_domain_takes_no_more(profile: str) -> None:
    tasks = [task("want-0", 8, "n0"), task("want-1", 8)]
    document = cluster(want(2, tasks=tasks, topology={"required": "rack"}), topology=RACKS)
    for one in attempts(document, profile).values():
        assert WIDE in one["obstacles"] or one["reason"] == Reason.QUOTA.value


def test_a_gang_that_no_moves_help_is_told_what_its_nodes_lack_though_enough_is_free_in_all() -> None:
    document = cluster(want(2, topology={"required": "rack"}), topology=RACKS)
    (only,) = attempts(document, "kai")["consolidation"]["obstacles"]
    assert (only["cause"], only["wanted"], only["found"]) == (Cause.WIDTH.value, 2.0, 1.0)


def test_tasks_that_fit_two_racks_and_no_single_one_are_told_that_their_level_is_too_narrow() -> None:
    tasks = [task("want-0", 6), task("want-1", 4)]
    document = cluster(
        runs("high", "n0", priority=99), want(2, tasks=tasks, topology={"required": "rack"}), topology=RACKS
    )
    (mixed,) = attempts(document, "default")["preempt"]["obstacles"]
    assert (mixed["cause"], mixed["what"], mixed["wanted"], mixed["found"]) == (Cause.MIXED.value, "rack", 2.0, 1.0)
    words = in_words(simulate(document, profile="default", explain=True))
    assert "only 1 of the 2 tasks find places together in one rack" in words
    assert "require a wider level, or lower the minimum" in words


def test_running_tasks_are_told_where_another_task_may_make_up_the_minimum() -> None:
    tasks = [task("want-0", 8, node_selector={"zone": "x"}), task("want-1", 8)]
    document = cluster(*full(priority=9), want(2, tasks=tasks, min_available=1))
    causes = [one["cause"] for one in attempts(document, "default")["preempt"]["obstacles"]]
    assert {Cause.NODES.value, Cause.PRIORITY.value} <= {*causes}


def test_taints_that_differ_are_all_named() -> None:
    nodes = [node(f"n{at}", taints=[{"key": key, "value": "m", "effect": "NoSchedule"}]) for at, key in enumerate("de")]
    obstacles = attempts(cluster(want(1), nodes=nodes), "default")["preempt"]["obstacles"]
    assert [one["what"] for one in obstacles if one["cause"] == Cause.TAINTED] == ["d=m:NoSchedule or e=m:NoSchedule"]


def test_a_gang_for_which_nothing_is_moved_because_it_stays_itself_is_not_said_to_have_no_right_to_preempt() -> None:
    queues = [{"name": "a", "deserved": {"nvidia.com/gpu": 16}}]
    low = runs("low", "n0", gpus=4, priority=99)
    document = cluster(low, want(1, preemptible=False), queues=queues, nodes=[node("n0")])
    assert attempts(document, "kai")["consolidation"]["reason"] == Reason.LASTS.value


def test_a_task_that_may_not_preempt_is_named_once_where_room_is_made_task_by_task() -> None:
    document = cluster(*(runs(f"low{at}", f"n{at}", min_available=0) for at in range(2)), want(1))
    document["podgroups"][2]["preemption_policy"] = "Never"
    policy = {"profile": "volcano", "actions": ["preempt"]}
    why = simulate(document | {"policy": policy}, explain=True)["explain"]
    (only,) = why["podgroups"]["default/want"]["attempts"]
    assert only["reason"] == Reason.NEVER.value
    assert {"cause": Cause.NEVER.value, "task": "default/want-0"} in only["obstacles"]


def test_why_a_task_waits_is_found_without_a_look_at_the_selectors_of_thousands_of_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tasks, made = [task(f"low-{at}", 0, "n0", node_selector={"x": f"{at}"}) for at in range(40)], list[Constraint]()

    def spied(record: Any, **values: Any) -> Any:
        made.extend([record] if isinstance(record, Constraint) else [])
        return plain(record, **values)

    plain = places.replace
    monkeypatch.setattr(places, "replace", spied)
    low = runs("low", "n0", tasks=tasks, min_available=0)
    obstacles = attempts(cluster(low, want(1, tasks=[task("want-0", 1, node_selector={"x": "y"})])), "default")
    assert {one["cause"] for one in obstacles["preempt"]["obstacles"]} >= {Cause.NODES.value, Cause.UNSELECTED.value}
    assert 0 < len(made) <= len(obstacles)
