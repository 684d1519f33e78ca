"""A podgroup of a gang group that lacks nothing itself is told which other one it waits for, and what that lacks."""

from typing import Any

import pytest

from actors.cli.simulated_words import in_words
from tests.support.gathering import TWO_BY_TWO, cluster_file, running, waiting
from tests.support.simulating import simulate

BOTH = ["default/a", "default/b"]


def told(*podgroups: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The condition of each podgroup that is not scheduled."""
    policy = {"profile": "koordinator", "actions": ["allocate"]}
    document = cluster_file(TWO_BY_TWO, 1, podgroups, policy=policy)
    result = simulate(document, explain=True)
    assert result["error"] is None
    assert "is Unschedulable" in in_words(result)
    return dict(result["explain"]["podgroups"])


def test_the_other_one_is_named_with_how_many_tasks_it_lacks() -> None:
    found = told(waiting("a", [1, 1], gang_group=BOTH), waiting("b", [1], gang_group=BOTH) | {"min_available": 3})
    lacks = {"cause": "too few tasks", "podgroup": "default/b", "wanted": 3.0, "found": 1.0}
    assert (found["default/a"]["reason"], found["default/a"]["obstacles"]) == ("OthersNotReady", [lacks])
    assert (found["default/b"]["reason"], found["default/b"]["obstacles"]) == ("NotEnoughTasks", [lacks])


def test_one_that_has_no_task_yet_is_named_too() -> None:
    found = told(waiting("a", [1], gang_group=BOTH), waiting("b", []) | {"min_available": 2})
    assert [one["podgroup"] for one in found["default/a"]["obstacles"]] == ["default/b"]


def test_gates_of_the_other_one_are_told() -> None:
    gated = waiting("b", [1], gang_group=BOTH)
    gated["tasks"][0]["scheduling_gated"] = True
    found = told(waiting("a", [1], gang_group=BOTH), gated)
    assert [one["cause"] for one in found["default/a"]["obstacles"]] == ["tasks are gated"]


def test_one_that_is_named_does_not_wait_for_those_that_name_it() -> None:
    first = waiting("a", [1], gang_group=BOTH) | {"min_available": 2}
    found = told(first, waiting("b", [9], gang_group=["default/b"]))
    assert found["default/b"]["reason"] == "NotEnoughResources"


def test_where_room_is_what_lacks_the_gang_group_is_told_so() -> None:
    found = told(waiting("a", [1], gang_group=BOTH), waiting("b", [9], gang_group=BOTH))
    assert {one["reason"] for one in found.values()} == {"NotEnoughResources"}


@pytest.mark.parametrize("policy", ["once-satisfied", "waiting-and-running"])
def test_one_that_has_run_and_lost_tasks_is_not_said_to_be_waited_for(policy: str) -> None:
    lost = running("b", ["n1"], 1, gang_group=BOTH, match_policy=policy) | {"min_available": 2}
    found = told(waiting("a", [9], gang_group=BOTH, match_policy=policy), lost)
    assert found["default/a"]["reason"] == "NotEnoughResources"
