"""Which tasks of a gang are gathered: a task that has no place does not keep the others from theirs."""

from typing import Any

import pytest

from tests.support.gathering import TWO_BY_TWO, Outcome, cluster_file, running, waiting


@pytest.mark.parametrize("odd", [{"node_selector": {"zone": "none"}}, {"request": {"cpu": 9}}])
@pytest.mark.parametrize("wish", [{}, {"topology": {"required": "spine"}}])
@pytest.mark.parametrize("full", [False, True])
def test_a_task_that_no_node_takes_leaves_the_minimum_to_the_others(
    odd: dict[str, Any], wish: dict[str, Any], full: bool
) -> None:
    """Also where it is the first in rank, and where room has to be made."""
    low = [running(f"low{at}", [f"n{at}"], 2) for at in range(1, 9)] if full else []
    job = waiting("job", [2, 2, 2], min_available=2, **wish)
    job["tasks"][0] |= odd
    found = Outcome(cluster_file(TWO_BY_TWO, 2, [*low, job]), 2)
    assert found.bound.keys() == {"job-1", "job-2"}
    assert len(found.evicted) == (2 if full else 0)


@pytest.mark.parametrize("wish", [{}, {"topology": {"preferred": "spine"}}, {"topology": {"required": "block"}}])
def test_a_task_that_has_no_room_now_does_not_keep_those_waiting_that_start_by_themselves(wish: dict[str, Any]) -> None:
    """A worker is restored although the larger task of the first rank is not; so is a task beyond the minimum."""
    others = [running("other", ["n1"], 1, priority=2000), running("full", ["n2"], 3, priority=2000)]
    lost = waiting("job", [3, 1, 1], min_available=3, started=1.0, **wish)
    lost["tasks"][2] |= {"status": "Running", "node": "n1"}
    assert Outcome(cluster_file({"s": {"b": ["n1", "n2"]}}, 3, [*others, lost])).bound == {"job-1": "n1"}
    elastic = waiting("job", [1, 3, 1], min_available=1, **wish)
    found = Outcome(cluster_file({"s": {"b": ["n1", "n2"]}}, 3, [*others, elastic]), 2)
    assert found.bound == {"job-0": "n1", "job-2": "n1"}


@pytest.mark.parametrize("wish", [{}, {"topology": {"preferred": "block"}}, {"topology": {"required": "spine"}}])
@pytest.mark.parametrize("minimum", [1, 2])
def test_others_make_up_the_minimum_where_the_first_in_rank_has_no_room_now(wish: dict[str, Any], minimum: int) -> None:
    others = running("other", ["n1", "n2"], 1, priority=2000)
    job = waiting("job", [3, 1, 1], min_available=minimum, **wish)
    found = Outcome(cluster_file({"s": {"b": ["n1", "n2"]}}, 3, [others, job]))
    assert found.bound == {"job-1": "n1", "job-2": "n1"}


@pytest.mark.parametrize("wish", [{}, {"topology": {"preferred": "block"}}, {"topology": {"required": "spine"}}])
def test_room_is_made_for_others_where_the_first_in_rank_would_have_none_whatever_leaves(wish: dict[str, Any]) -> None:
    stays = running("stays", ["n1", "n2"], 1, priority=2000)
    low = [running(f"low{at}", [f"n{at}"], 2) for at in (1, 2)]
    job = waiting("job", [3, 1, 1], min_available=2, **wish)
    found = Outcome(cluster_file({"s": {"b": ["n1", "n2"]}}, 3, [stays, *low, job]), 2)
    assert len(found.evicted) == 1
    assert found.bound.keys() == {"job-1", "job-2"}


@pytest.mark.parametrize("wish", [{}, {"topology": {"preferred": "block"}}, {"topology": {"required": "spine"}}])
@pytest.mark.parametrize("low", [[], [running("low", ["n1"], 3)]])
def test_another_task_of_a_subgroup_makes_up_its_minimum_where_the_first_leaves_no_place_for_the_other_subgroup(
    wish: dict[str, Any], low: list[dict[str, Any]]
) -> None:
    parts = [{"name": name, "min_available": 1} for name in ("s0", "s1")]
    job = waiting("job", [3, 3, 1], min_available=2, subgroups=parts, min_subgroups=2, **wish)
    for task, part in zip(job["tasks"], ("s0", "s1", "s0"), strict=True):
        task["subgroup"] = part
    found = Outcome(cluster_file({"s": {"b": ["n1", "n2"]}}, {"n1": 3, "n2": 1}, [*low, job]), 2)
    assert (len(found.evicted), found.bound) == (len(low), {"job-1": "n1", "job-2": "n2"})


@pytest.mark.parametrize("wish", [{}, {"topology": {"preferred": "block"}}, {"topology": {"required": "spine"}}])
@pytest.mark.parametrize("preemptible", [True, False])
def test_a_task_beyond_its_quota_does_not_keep_those_waiting_that_start_by_themselves(
    wish: dict[str, Any], preemptible: bool
) -> None:
    bound = {"deserved": {"cpu": 3}} if not preemptible else {"capability": {"cpu": 3}}
    job = waiting("job", [1, 4, 2], min_available=1, preemptible=preemptible, **wish)
    queues = [{"name": "default", **bound}]
    found = Outcome(cluster_file({"s": {"b": ["n1", "n2"]}}, 4, [job], queues=queues), 2)
    assert found.bound.keys() == {"job-0", "job-2"}


@pytest.mark.parametrize("wish", [{}, {"topology": {"preferred": "block"}}, {"topology": {"required": "block"}}])
def test_no_task_goes_where_only_the_last_of_many_tasks_make_up_a_minimum_without(wish: dict[str, Any]) -> None:
    """Two of six tasks of different sizes are enough, and only the two smallest fit on the node that is empty."""
    low, job = running("low", ["n2"], 60), waiting("job", [60, 59, 58, 57, 56, 4], min_available=2, **wish)
    found = Outcome(cluster_file({"s": {"b": ["n1", "n2"]}}, 60, [low, job]))
    assert (found.evicted, found.bound) == ([], {"job-4": "n1", "job-5": "n1"})
