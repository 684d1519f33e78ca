"""A start on promised room is not taken again: a podgroup loses the promise in the cycle in which it would start."""

from typing import Any

import pytest

from actors.cli.simulate import open_case
from pipeline.actions.setup import Setup
from pipeline.cycle import cycle
from pipeline.decision.plan import Plan
from pipeline.decision.verdict import Accepted
from pipeline.judge import judge
from tests.support import small_clusters
from tests.support.small_clusters import REST, played, podgroup, told

PROFILES = ("default", "kai", "koordinator")


def job(name: str, sizes: list[int], priority: int, queue: str = "q", **of_each: Any) -> dict[str, Any]:
    """A podgroup that needs all its tasks; ``of_each`` says where they run or were promised a node."""
    said = {"queue": queue, "priority": priority, "min_available": len(sizes)}
    return podgroup(name, [{"gpu": size} for size in sizes], of_each=of_each, **said)


def on(node: str) -> dict[str, str]:
    return {"status": "Running", "node": node}


def promised(node: str) -> dict[str, str]:
    return {"status": "Pending", "nominated_node": node}


def world(profile: str, nodes: dict[str, int], deserved: dict[str, int], *podgroups: dict[str, Any]) -> dict[str, Any]:
    rest = REST if profile == "kai" else {}
    queues = {name: {"deserved": {"gpu": many, **rest}} for name, many in deserved.items()}
    has = {name: {"gpu": many} for name, many in nodes.items()}
    return small_clusters.world(has, queues, podgroups, profile=profile)


def cycles(document: dict[str, Any], count: int = 3) -> list[tuple[list[str], ...]]:
    """By cycle the names of the tasks that were evicted, that hold a promise, and that were bound."""
    return [tuple(told(made).values()) for made in played(document, count)]


@pytest.mark.parametrize("profile", PROFILES)
def test_a_promise_is_given_up_where_a_more_important_podgroup_would_evict_what_starts_on_it(profile: str) -> None:
    """The room of `low` is there in the cycle in which `high` comes; `low` started, and went in the next cycle."""
    gangs = job("runs", [2], 50, **on("n")), job("low", [2], 50, **promised("n")), job("high", [4], 90)
    first, second, third = cycles(world(profile, {"n": 4}, {"q": 4}, *gangs))
    assert first == (["runs-0"], ["high-0"], [])
    assert second == ([], [], ["high-0"])
    assert third == ([], [], [])


@pytest.mark.parametrize("profile", PROFILES)
def test_a_podgroup_whose_promise_cannot_be_kept_starts_nothing_that_would_be_evicted_instead(profile: str) -> None:
    """`low` was placed anew before `high` had its turn, also in the second run of the cycle, and went in the next."""
    low = job("low", [1, 1], 50) | {"min_available": 1}
    low["tasks"][1] |= promised("m")  # which has no room for it
    first, second, third = cycles(world(profile, {"n": 1, "m": 0}, {"q": 4}, low, job("high", [1], 90)))
    assert first == ([], [], ["high-0"])
    assert second == third == ([], [], [])


@pytest.mark.parametrize("above", [None, 4], ids=["no queue above both", "a queue above both that deserves all"])
@pytest.mark.parametrize("profile", PROFILES)
def test_a_promise_is_given_up_where_another_queue_would_reclaim_what_starts_on_it(
    profile: str, above: int | None
) -> None:
    gangs = job("runs", [2], 50, "over", **on("n")), job("low", [2], 50, "over", **promised("n"))
    document = world(profile, {"n": 4}, {"over": 0, "due": 4}, *gangs, job("high", [4], 50, "due"))
    if above is not None:
        queues = [{**queue, "parent": "root"} for queue in document["queues"]]
        document["queues"] = [{"name": "root", "deserved": {"gpu": above}}, *queues]
    first, second, third = cycles(document)
    assert first == (["runs-0"], ["high-0"], [])
    assert second == ([], [], ["high-0"])
    assert third == ([], [], [])


@pytest.mark.parametrize("profile", PROFILES)
def test_a_promise_is_kept_where_the_more_important_podgroup_can_never_have_room(profile: str) -> None:
    gangs = job("runs", [2], 50, **on("n")), job("low", [2], 50, **promised("n")), job("high", [5], 90)
    first, second, _ = cycles(world(profile, {"n": 4}, {"q": 4}, *gangs))
    assert first == ([], [], ["low-0"])
    assert second == ([], [], [])


@pytest.mark.parametrize("profile", PROFILES)
def test_a_podgroup_that_gives_up_its_promise_starts_elsewhere_in_the_same_cycle(profile: str) -> None:
    """Only node n is large enough for `high`; `low` finds room on node k, and `runs` may be moved to node m."""
    gangs = job("runs", [3], 50, **on("n")), job("low", [2], 50, **promised("n")), job("high", [5], 90)
    first, second, third = cycles(world(profile, {"n": 5, "m": 3, "k": 2}, {"q": 10}, *gangs))
    assert first[0] == ["runs-0"]
    assert "high-0" in first[1]
    assert "low-0" in [*first[1], *first[2]]
    assert second[0] == third[0] == []


@pytest.mark.parametrize("profile", PROFILES)
def test_only_the_promises_on_which_it_would_start_are_given_up(profile: str) -> None:
    """`low` needs one task and was promised room for two; that of the other is not there yet, and stays promised."""
    low = job("low", [2, 2], 50, **promised("n"))
    low["min_available"], low["tasks"][1]["nominated_node"] = 1, "m"
    ends = job("ends", [2], 50, status="Terminating", node="m", gone_when_evicted=True)
    gangs = job("runs", [2], 50, **on("n")), low, ends, job("high", [4], 90)
    first, second, third = cycles(world(profile, {"n": 4, "m": 2}, {"q": 6}, *gangs))
    assert first == (["runs-0"], ["high-0", "low-1"], [])
    assert second[0] == third[0] == []
    assert {"high-0", "low-1"} <= {*second[2], *third[2]}


@pytest.mark.parametrize("profile", PROFILES)
def test_the_plans_of_a_cycle_in_which_a_promise_is_given_up_are_accepted_in_order(profile: str) -> None:
    gangs = job("runs", [2], 50, **on("n")), job("low", [2], 50, **promised("n")), job("high", [4], 90)
    case = open_case(world(profile, {"n": 4}, {"q": 4}, *gangs))
    done = cycle(case.snapshot, case.policy, case.now)
    assert isinstance(judge(done.plans[0], case.snapshot, case.policy, case.now), Accepted)


def test_plans_are_told_while_the_cycle_runs_where_no_start_on_promised_room_may_be_taken() -> None:
    """`first` starts where it was promised room; `next`, of its own priority, evicts elsewhere."""
    gangs = job("first", [2], 90, **promised("n")), job("runs", [2], 50, **on("m")), job("next", [2], 90)
    assert len(_told(world("default", {"n": 2, "m": 2}, {"q": 4}, *gangs))) == 2
    gangs = job("first", [2], 60, **promised("n")), *gangs[1:]
    assert _told(world("default", {"n": 2, "m": 2}, {"q": 4}, *gangs)) == []


def _told(document: dict[str, Any]) -> list[Plan]:
    """The plans that are told before the cycle is over."""
    plans: list[Plan] = []
    case = open_case(document)
    done = cycle(case.snapshot, case.policy, case.now, Setup(when_certain=plans.append))
    assert len(done.plans) == 2
    return plans


def test_what_is_taken_again_even_after_all_others_waits_for_the_next_cycle() -> None:
    """`runs` would be moved for `large`; `high` takes that room, and `small`, whose promise goes with it, once more."""
    gangs = job("large", [4], 1), job("runs", [2], 50, **on("n")), job("small", [2], 50, **promised("m"))
    high = job("high", [4], 90) | {"preemptible": False}
    first, second, third = cycles(world("kai", {"n": 4, "m": 4}, {"q": 8}, *gangs, high))
    assert first[0] == second[0] == third[0] == []
    assert {"high-0", "small-0"} <= {*first[2], *second[2]}
