"""Which jobs may make room at all, and when they have to wait."""

import pytest

from tests.support.gathering import Outcome, cluster_file, running, waiting

PAIR = {"s1": {"b1": ["n1", "n2"]}}


def low() -> list[dict[str, object]]:
    return [running("lp1", ["n1"], 4), running("lp2", ["n2"], 4)]


def test_the_policy_of_any_member_speaks_for_the_job() -> None:
    job = waiting("hp", [4, 4])
    assert Outcome(cluster_file(PAIR, 4, [*low(), job])).evicted == ["lp1-0", "lp2-0"]
    job["tasks"][1]["preemption_policy"] = "Never"
    assert Outcome(cluster_file(PAIR, 4, [*low(), job])).evicted == []


def test_the_policy_of_any_podgroup_speaks_for_the_gang_group_whatever_its_tasks_say() -> None:
    groups = [waiting(name, [4], gang_group=["default/a", "default/b"]) for name in "ab"]
    groups[1]["tasks"][0]["preemption_policy"] = "PreemptLowerPriority"
    assert Outcome(cluster_file(PAIR, 4, [*low(), *groups])).evicted == ["lp1-0", "lp2-0"]
    groups[1]["preemption_policy"] = "Never"
    assert Outcome(cluster_file(PAIR, 4, [*low(), *groups])).evicted == []


def test_a_job_waits_for_victims_that_are_still_ending_on_a_promised_node() -> None:
    job, victims = waiting("hp", [4, 4]), low()
    job["tasks"][0]["nominated_node"] = "n1"
    victims[0]["tasks"][0]["status"] = "Terminating"  # type: ignore[index]
    found = Outcome(cluster_file(PAIR, 4, [*victims, job]))
    assert found.evicted == []
    assert found.nominated == {"hp-0": "n1"}


@pytest.mark.parametrize("priority", [1000, 5000])
def test_what_ends_elsewhere_or_is_as_important_or_more_is_not_waited_for(priority: int) -> None:
    job, victims = waiting("hp", [4, 4]), [*low(), running("top", ["n3"], 4, priority=priority)]
    job["tasks"][0]["nominated_node"] = "n3"
    victims[2]["tasks"][0]["status"] = "Terminating"  # type: ignore[index]
    found = Outcome(cluster_file({"s1": {"b1": ["n1", "n2", "n3"]}}, 4, [*victims, job]))
    assert found.evicted == ["lp1-0"]
    assert found.nominated == {"hp-0": "n3", "hp-1": "n1"}


def test_a_gang_group_makes_room_for_all_its_podgroups_or_none() -> None:
    both = {"gang_group": ["default/a", "other/b"]}
    groups = [waiting("a", [4], **both), waiting("b", [4], namespace="other", **both)]
    assert Outcome(cluster_file(PAIR, 4, [*low(), *groups])).evicted == ["lp1-0", "lp2-0"]
    groups[1]["tasks"].append({"name": "b-1", "request": {"cpu": 4}})
    groups[1]["min_available"] = 2
    assert Outcome(cluster_file(PAIR, 4, [*low(), *groups])).evicted == []


def test_equal_priority_is_never_taken() -> None:
    equals = [running("e1", ["n1"], 4, priority=7), running("e2", ["n2"], 4, priority=7)]
    assert Outcome(cluster_file(PAIR, 4, [*equals, waiting("hp", [4], priority=7)])).evicted == []


def test_only_the_minimum_makes_room() -> None:
    found = Outcome(cluster_file(PAIR, 4, [*low(), waiting("hp", [4, 4], min_available=1)]))
    assert found.evicted == ["lp1-0"]
    assert found.nominated == {"hp-0": "n1"}


def test_room_that_is_made_is_used_once_the_victims_have_ended() -> None:
    found = Outcome(cluster_file(PAIR, 4, [*low(), waiting("hp", [4, 4])]), cycles=3)
    assert (found.evicted, found.bound) == (["lp1-0", "lp2-0"], {"hp-0": "n1", "hp-1": "n2"})


def test_a_task_whose_own_priority_is_not_below_the_jobs_stays_whatever_its_podgroups() -> None:
    for own, evicted in ((5000, []), (1000, []), (999, ["low-0"])):
        victim = running("low", ["n1", "n2"], 4, min_available=1)
        victim["tasks"][0]["priority"], victim["tasks"][1]["priority"] = own, 5000
        assert Outcome(cluster_file(PAIR, 4, [victim, waiting("hp", [4])])).evicted == evicted


def test_the_one_that_is_less_important_goes_in_its_place() -> None:
    victim = running("low", ["n1", "n2"], 4, min_available=1)
    victim["tasks"][1]["priority"] = 5000
    job = waiting("hp", [4], topology={"required": "block"})
    assert Outcome(cluster_file(PAIR, 4, [victim, job])).evicted == ["low-0"]


def test_what_a_more_important_job_would_take_again_does_not_start() -> None:
    low, high, mid = running("low", ["n1"], 1), waiting("high", [1, 1], priority=9), waiting("mid", [1], priority=5)
    found = Outcome(cluster_file(PAIR, 1, [low, high, mid]))
    assert (found.evicted, found.nominated, found.bound) == (["low-0"], {"high-0": "n1", "high-1": "n2"}, {})
