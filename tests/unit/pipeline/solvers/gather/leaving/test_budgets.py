"""Which victims go where disruption budgets do not let all of the least important go."""

from typing import Any

import pytest

from tests.support.gathering import Outcome, cluster_file, running, waiting

BLOCKS = {"s1": {"b1": ["n1"], "b2": ["n2"], "b3": ["n3"]}}


def low(name: str, node: str, cpu: int, priority: int, app: str = "x") -> dict[str, Any]:
    """A task that a budget covers."""
    podgroup = running(name, [node], cpu, priority=priority)
    podgroup["tasks"][0]["labels"] = {"app": app}
    return podgroup


def budget(allowed: int, app: str = "x") -> dict[str, Any]:
    return {"name": app, "namespace": "default", "match_labels": {"app": app}, "disruptions_allowed": allowed}


def made(podgroups: list[dict[str, Any]], *budgets: dict[str, Any], cpus: Any = 4) -> Outcome:
    return Outcome(cluster_file(BLOCKS, cpus, podgroups, disruption_budgets=list(budgets)))


@pytest.mark.parametrize("topology", [{}, {"topology": {"required": "block"}}])
def test_what_makes_no_room_does_not_use_a_budget_up(topology: dict[str, Any]) -> None:
    """The less important task comes first and is too small; the budget lets one go."""
    small, enough = low("small", "n1", 1, 1), low("enough", "n1", 3, 5)
    found = made([small, enough, waiting("job", [3], **topology)], budget(1), cpus={"n1": 4, "n2": 1, "n3": 1})
    assert (found.evicted, found.nominated) == (["enough-0"], {"job-0": "n1"})


def test_a_budget_goes_to_the_node_that_one_victim_clears() -> None:
    halves = [low("half1", "n1", 2, 1), low("half2", "n1", 2, 1)]
    found = made([*halves, low("whole", "n2", 4, 5), low("kept", "n3", 4, 9999), waiting("job", [4])], budget(1))
    assert (found.evicted, found.nominated) == (["whole-0"], {"job-0": "n2"})


def test_of_what_budgets_allow_the_least_important_goes() -> None:
    """A task without a budget would do, and so would a less important one that the budget covers."""
    tasks = [low("useless", "n2", 1, 1), low("cheap", "n1", 2, 1), low("dear", "n1", 2, 5, "z")]
    found = made([*tasks, waiting("job", [2])], budget(1), cpus={"n1": 4, "n2": 1, "n3": 1})
    assert found.evicted == ["cheap-0"]


def test_two_budgets_are_kept_at_once() -> None:
    tasks = [low("x1", "n1", 2, 1), low("x2", "n1", 2, 1), low("x3", "n2", 2, 5), low("y3", "n2", 2, 5, "y")]
    found = made([*tasks, waiting("job", [4])], budget(1), budget(1, "y"), cpus={"n1": 4, "n2": 4, "n3": 1})
    assert found.evicted == ["x3-0", "y3-0"]
    found = made([*tasks, waiting("job", [4])], budget(1), budget(0, "y"), cpus={"n1": 4, "n2": 4, "n3": 1})
    assert (found.evicted, found.nominated) == ([], {})


def test_a_part_of_a_gang_goes_where_a_budget_does_not_let_all_of_it_go() -> None:
    pair = running("pair", ["n1", "n2"], 4)
    for task in pair["tasks"]:
        task["labels"] = {"app": "x"}
    for allowed, evicted in ((2, "pair-1"), (1, "pair-1"), (0, "single-0")):
        found = made([pair, low("single", "n3", 4, 5, "z"), waiting("job", [4])], budget(allowed))
        assert found.evicted == [evicted]
