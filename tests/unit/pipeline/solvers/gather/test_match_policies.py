"""Match policies: what counts when a gang asks whether it may start."""

from typing import Any

import pytest

from tests.support.gathering import TWO_BY_TWO, Outcome, cluster_file, running, waiting

GATHERED = {"topology": {"preferred": "block"}}
ANYWHERE: dict[str, Any] = {}


def grown(runs: list[str], waits: int, minimum: int, **more: Any) -> dict[str, Any]:
    """A gang that runs on some nodes while further tasks of it wait."""
    group = running("job", runs, 1, **more) | {"min_available": minimum, "priority": 1000}
    group["tasks"] += [{"name": f"job-{len(runs) + at}", "request": {"cpu": 1}} for at in range(waits)]
    return group


def filled(but: int) -> dict[str, Any]:
    """A podgroup of the same priority on all nodes but the first few."""
    return running("x", [f"n{at}" for at in range(but + 1, 9)], 1, priority=1000, min_available=1)


@pytest.mark.parametrize("wish", [GATHERED, ANYWHERE])
def test_once_satisfied_lets_one_task_in_where_the_minimum_is_lost(wish: dict[str, Any]) -> None:
    gang = grown(["n1"], 2, 3, **wish)
    found = Outcome(cluster_file(TWO_BY_TWO, 1, [gang, filled(2)]))
    assert found.bound == {"job-1": "n2"}


@pytest.mark.parametrize("wish", [GATHERED, ANYWHERE])
def test_once_satisfied_still_starts_a_gang_whole_the_first_time(wish: dict[str, Any]) -> None:
    found = Outcome(cluster_file(TWO_BY_TWO, 1, [waiting("job", [1] * 3, **wish), filled(2)]))
    assert found.bound == {}


@pytest.mark.parametrize("wish", [GATHERED, ANYWHERE])
def test_a_gang_that_was_satisfied_once_starts_with_fewer_tasks_than_its_minimum(wish: dict[str, Any]) -> None:
    gang = waiting("job", [1], started=900.0, **wish) | {"min_available": 3}
    assert Outcome(cluster_file(TWO_BY_TWO, 1, [gang])).bound.keys() == {"job-0"}
    assert Outcome(cluster_file(TWO_BY_TWO, 1, [gang | {"match_policy": "waiting-and-running"}])).bound == {}


@pytest.mark.parametrize("wish", [GATHERED, ANYWHERE])
def test_waiting_and_running_wants_the_minimum_of_both_together(wish: dict[str, Any]) -> None:
    gang = grown(["n1"], 2, 3, match_policy="waiting-and-running", **wish)
    assert Outcome(cluster_file(TWO_BY_TWO, 1, [gang, filled(2)])).bound == {}
    assert Outcome(cluster_file(TWO_BY_TWO, 1, [gang, filled(3)])).bound == {"job-1": "n2", "job-2": "n3"}


@pytest.mark.parametrize("wish", [GATHERED, ANYWHERE])
def test_only_waiting_wants_the_minimum_anew_whatever_runs(wish: dict[str, Any]) -> None:
    late = grown(["n1", "n2", "n3"], 1, 3, match_policy="only-waiting", **wish)
    for minimum in (3, 2**31 - 1):
        assert Outcome(cluster_file(TWO_BY_TWO, 1, [late | {"min_available": minimum}])).bound == {}
    again = grown(["n1", "n2", "n3"], 3, 3, match_policy="only-waiting", **wish)
    assert Outcome(cluster_file(TWO_BY_TWO, 1, [again])).bound.keys() == {"job-3", "job-4", "job-5"}
    short = Outcome(cluster_file(TWO_BY_TWO, 1, [again, filled(5)]))
    assert short.bound == {}


def test_only_waiting_makes_room_for_its_whole_minimum_or_none() -> None:
    low = running("low", ["n2", "n3", "n4", "n5", "n6", "n7", "n8"], 1, priority=1, min_available=1)
    two = grown(["n1"], 2, 3, match_policy="only-waiting", **GATHERED)
    assert Outcome(cluster_file(TWO_BY_TWO, 1, [low, two])).evicted == []
    three = grown(["n1"], 3, 3, match_policy="only-waiting", **GATHERED)
    assert len(Outcome(cluster_file(TWO_BY_TWO, 1, [low, three])).evicted) == 3


def test_a_gang_that_was_satisfied_once_makes_room_up_to_its_minimum() -> None:
    low = running("low", ["n2", "n3", "n4", "n5", "n6", "n7", "n8"], 1, priority=1, min_available=1)
    found = Outcome(cluster_file(TWO_BY_TWO, 1, [low, grown(["n1"], 3, 3, **GATHERED)]))
    assert len(found.evicted) == 2


def test_a_promise_to_one_task_of_a_gang_that_ran_before_is_redeemed_alone() -> None:
    gang = grown([], 3, 3, started=900.0, **GATHERED)
    gang["tasks"][1]["nominated_node"] = "n1"
    found = Outcome(cluster_file(TWO_BY_TWO, 1, [gang, filled(1)]))
    assert found.bound == {"job-1": "n1"}


def test_what_one_member_of_a_gang_group_satisfied_is_satisfied_for_all() -> None:
    both = {"gang_group": ["default/a", "other/b"]}
    first = running("a", ["n1"], 1, **both)
    second = waiting("b", [1], namespace="other", **both) | {"min_available": 2}
    found = Outcome(cluster_file(TWO_BY_TWO, 1, [first, second]))
    assert found.bound.keys() == {"b-0"}


@pytest.mark.parametrize("wish", [GATHERED, ANYWHERE])
def test_under_only_waiting_no_task_is_promised_a_place_that_it_could_not_take_by_itself(wish: dict[str, Any]) -> None:
    """Two places are free, one comes free: two tasks start, and the third never would."""
    ending = running("ending", ["n3"], 1, priority=1000)
    ending["tasks"][0] |= {"status": "Terminating", "gone_when_evicted": True}
    job = waiting("job", [1] * 3, min_available=2, match_policy="only-waiting", **wish)
    found = Outcome(cluster_file(TWO_BY_TWO, 1, [ending, filled(3), job]), 3)
    assert (len(found.bound), found.nominated) == (2, {})


@pytest.mark.parametrize("wish", [GATHERED, ANYWHERE])
def test_under_only_waiting_promises_are_redeemed_together(wish: dict[str, Any]) -> None:
    ending = running("ending", ["n3"], 1, priority=1000)
    ending["tasks"][0] |= {"status": "Terminating", "gone_when_evicted": True}
    job = waiting("job", [1] * 3, min_available=2, match_policy="only-waiting", **wish)
    for task, node in zip(job["tasks"], ("n1", "n2", "n3"), strict=True):
        task["nominated_node"] = node
    case = cluster_file(TWO_BY_TWO, 1, [ending, filled(3), job])
    assert Outcome(case).bound == {}
    assert len(Outcome(case, 2).bound) == 3


@pytest.mark.parametrize("wish", [GATHERED, ANYWHERE])
def test_under_only_waiting_what_was_promised_before_starts_with_the_others_and_is_not_left_behind(
    wish: dict[str, Any],
) -> None:
    """By itself the promised task would hold its room without end."""
    gang = grown(["n1"], 4, 3, match_policy="only-waiting", **wish)
    gang["tasks"][1]["nominated_node"] = "n2"
    found = Outcome(cluster_file(TWO_BY_TWO, 1, [gang]), 2)
    assert (found.bound.keys(), found.nominated) == ({"job-1", "job-2", "job-3", "job-4"}, {})


def in_group(name: str, runs: list[str], waits: int, minimum: int, **more: Any) -> dict[str, Any]:
    """A member of the gang group of a and b, which was whole before; some of it runs, one task a node."""
    group = running(name, runs, 1, gang_group=["default/a", "default/b"], **more)
    group |= {"min_available": minimum, "priority": 1000}
    group["tasks"] += [{"name": f"{name}-{len(runs) + at}", "request": {"cpu": 1}} for at in range(waits)]
    return group


@pytest.mark.parametrize("wish", [GATHERED, ANYWHERE])
@pytest.mark.parametrize("runs", [[], ["n1"]])
def test_a_member_that_has_lost_tasks_keeps_none_of_the_others_waiting_once_its_gang_group_was_satisfied(
    runs: list[str], wish: dict[str, Any]
) -> None:
    lost = in_group("a", runs, 0, 3, **wish)
    grown = in_group("b", ["n3", "n4"], 2, 2, **wish)
    assert Outcome(cluster_file(TWO_BY_TWO, 1, [lost, grown])).bound.keys() == {"b-2", "b-3"}
    low = running("low", ["n1", "n2", "n5", "n6", "n7", "n8"][len(runs) :], 1, min_available=1)
    below = in_group("b", ["n3", "n4"], 2, 4, **wish)
    assert len(Outcome(cluster_file(TWO_BY_TWO, 1, [lost, below, low])).evicted) == 2


def test_room_is_made_for_what_is_left_of_a_gang_that_was_satisfied_once() -> None:
    low = running("low", ["n2", "n3", "n4", "n5", "n6", "n7", "n8"], 1, min_available=1)
    found = Outcome(cluster_file(TWO_BY_TWO, 1, [low, grown(["n1"], 1, 4)]))
    assert (len(found.evicted), found.nominated.keys()) == (1, {"job-1"})
    both = grown(["n1"], 1, 4, match_policy="waiting-and-running")
    assert Outcome(cluster_file(TWO_BY_TWO, 1, [low, both])).evicted == []


def test_under_only_waiting_a_member_that_runs_keeps_the_other_waiting() -> None:
    """What runs does not count: each member of the gang group asks for its minimum anew."""
    anew = {"match_policy": "only-waiting"}
    second = in_group("b", [], 2, 2, **anew)
    runs = in_group("a", ["n1", "n2"], 0, 2, **anew)
    assert Outcome(cluster_file(TWO_BY_TWO, 1, [runs, second])).bound == {}
    grows = in_group("a", ["n1", "n2"], 2, 2, **anew)
    assert Outcome(cluster_file(TWO_BY_TWO, 1, [grows, second])).bound.keys() == {"a-2", "a-3", "b-0", "b-1"}
