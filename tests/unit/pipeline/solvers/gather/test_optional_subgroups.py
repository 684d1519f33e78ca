"""Subgroups beyond those that a gang needs: each starts with its minimum or not at all."""

from typing import Any

import pytest

from tests.support.gathering import Outcome, cluster_file

WISHES = [{}, {"preferred": "block"}, {"required": "spine"}]


def gang(minima: dict[str, int], **more: Any) -> dict[str, Any]:
    """A gang with subgroups of tasks of one core, as many tasks as their minima, of which one is enough."""
    tasks = [
        {"name": f"{name}-{at}", "subgroup": name, "request": {"cpu": 1}}
        for name, least in minima.items()
        for at in range(least)
    ]
    subgroups = [{"name": name, "min_available": least} for name, least in minima.items()]
    return {"name": "gang", "queue": "default", "priority": 9, "phase": "Inqueue", "min_available": 1,
            "min_subgroups": 1, "subgroups": subgroups, "tasks": tasks, **more}  # fmt: skip


@pytest.mark.parametrize("topology", WISHES)
@pytest.mark.parametrize("policy", ["once-satisfied", "waiting-and-running"])
def test_a_subgroup_that_the_gang_can_spare_does_not_start_below_its_minimum(
    topology: dict[str, str], policy: str
) -> None:
    job = gang({"a": 2, "b": 3}, topology=topology, match_policy=policy)
    found = Outcome(cluster_file({"s": {"b": ["n1", "n2"]}}, 2, [job]), 3)
    assert found.bound.keys() == {"a-0", "a-1"}


@pytest.mark.parametrize("topology", WISHES)
def test_one_that_has_no_room_does_not_keep_the_next_one_waiting(topology: dict[str, str]) -> None:
    job = gang({"a": 2, "b": 3, "c": 2}, topology=topology)
    found = Outcome(cluster_file({"s": {"b": ["n1", "n2"]}}, 2, [job]), 3)
    assert found.bound.keys() == {"a-0", "a-1", "c-0", "c-1"}


@pytest.mark.parametrize("topology", WISHES)
def test_all_start_where_there_is_room_for_all(topology: dict[str, str]) -> None:
    job = gang({"a": 2, "b": 3}, topology=topology)
    found = Outcome(cluster_file({"s": {"b": ["n1", "n2"]}}, 3, [job]), 2)
    assert len(found.bound) == 5
