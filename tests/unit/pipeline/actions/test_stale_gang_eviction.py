"""What is left of a gang is cleared once it has run below its minimum for its grace, as a whole or not at all."""

from typing import Any

import pytest

from actors.cli.simulate import open_case
from pipeline.cycle import next_due
from tests.support import small_clusters
from tests.support.clusters import compiled
from tests.support.simulating import simulate
from tests.support.small_clusters import named, played

NOW = 1000.0
ACTIONS = ["allocate", "stalegangeviction"]


def task(name: str, status: str = "Running", **more: Any) -> dict[str, Any]:
    place = {"node": "n0"} if status in ("Running", "Bound", "Terminating") else {}
    return {"name": name, "status": status, "request": {"cpu": 1}, **place, **more}


def gang(*statuses: str, **more: Any) -> dict[str, Any]:
    """Tasks of one core with these statuses; the minimum is two, and it has been below that for a hundred seconds."""
    tasks = [task(f"g-{at}", status) for at, status in enumerate(statuses)]
    said = {"min_available": 2, "phase": "Running", "stale_since": 900.0}
    return {"name": "g", "queue": "q", "tasks": tasks, **said, **more}


def world(*podgroups: dict[str, Any], cpu: int = 8, **more: Any) -> dict[str, Any]:
    policy = {"actions": ACTIONS, **more.pop("policy", {})}
    return small_clusters.world({"n0": {"cpu": cpu}}, {"q": {}}, podgroups, now=NOW, **policy) | more


def cleared(*podgroups: dict[str, Any], cycles: int = 1, **more: Any) -> list[str]:
    made = [one for decided in played(world(*podgroups, **more), cycles) for one in decided["evictions"]]
    assert {(one["action"], one["preemptor"]) for one in made} <= {("stalegangeviction", None)}
    return sorted(named(made))


@pytest.mark.parametrize("profile", ["default", "volcano", "kai", "koordinator"])
def test_what_is_left_of_a_gang_is_evicted_as_a_whole(profile: str) -> None:
    more = gang("Running", "Running", "Failed", min_available=3, match_policy="waiting-and-running")
    assert cleared(more, policy={"profile": profile}) == ["g-0", "g-1"]


def test_a_gang_that_has_its_minimum_stays_whatever_it_once_was() -> None:
    assert cleared(gang("Running", "Running", "Failed")) == []


@pytest.mark.parametrize(("grace", "gone"), [(60, True), (100, True), (101, False), (-1, False), (0, True)])
def test_the_grace_is_the_podgroups_own(grace: float, gone: bool) -> None:
    assert bool(cleared(gang("Running", "Failed", stale_grace_seconds=grace))) is gone


@pytest.mark.parametrize(("grace", "gone"), [(100, True), (101, False), (-1, False), (0, True)])
def test_else_the_grace_is_the_policys(grace: float, gone: bool) -> None:
    assert bool(cleared(gang("Running", "Failed"), policy={"stale_grace_seconds": grace})) is gone


def test_the_grace_of_a_policy_that_does_not_say_is_a_minute() -> None:
    assert cleared(gang("Running", "Failed", stale_since=NOW - 59)) == []
    assert cleared(gang("Running", "Failed", stale_since=NOW - 60)) == ["g-0"]


def test_the_grace_of_one_gang_ends_no_others() -> None:
    other = gang("Running", "Failed", name="h", stale_since=NOW - 59)
    for one in other["tasks"]:
        one["name"] = one["name"].replace("g", "h")
    assert cleared(gang("Running", "Failed"), other) == ["g-0"]


def test_a_gang_found_below_its_minimum_is_stale_from_then_on() -> None:
    unknown = gang("Running", "Failed")
    del unknown["stale_since"]
    assert cleared(unknown) == []
    assert cleared(unknown, policy={"stale_grace_seconds": 0}) == ["g-0"]
    assert compiled(world(unknown))[0].podgroups.stale_since.tolist() == [NOW]


def test_what_has_succeeded_counts_and_what_completes_is_left_alone() -> None:
    assert cleared(gang("Succeeded", "Running", "Running", min_available=3)) == []
    assert cleared(gang("Succeeded", "Succeeded", "Running", min_available=3)) == []
    assert cleared(gang("Succeeded", "Failed", "Running", min_available=3)) == ["g-2"]


def test_a_role_below_its_minimum_makes_a_gang_stale() -> None:
    roles = {"driver": {"min": 1}, "worker": {"min": 1}}
    tasks = [task("d", "Failed", role="driver"), task("w-0", role="worker"), task("w-1", role="worker")]
    assert cleared(gang(roles=roles, tasks=tasks)) == ["w-0", "w-1"]
    elastic = {**roles, "worker": {"min": 2}}
    assert cleared(gang(roles=elastic, tasks=tasks)) == []  # its minimum is below that of its roles: they do not bind


def part(name: str, *statuses: str, least: int = 1) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    tasks = [task(f"{name}-{at}", status, subgroup=name) for at, status in enumerate(statuses)]
    return {"name": name, "min_available": least}, tasks


def parted(*parts: tuple[dict[str, Any], list[dict[str, Any]]], **more: Any) -> dict[str, Any]:
    return gang(subgroups=[one for one, _ in parts], tasks=[one for _, tasks in parts for one in tasks], **more)


def test_a_subgroup_below_its_minimum_makes_a_gang_stale() -> None:
    whole, broken = part("a", "Running", "Running", least=2), part("b", "Failed")
    assert cleared(parted(whole, broken)) == ["a-0", "a-1"]


def test_a_gang_that_has_as_many_whole_subgroups_as_it_needs_is_not_stale() -> None:
    whole, broken = part("a", "Running", "Running", least=2), part("b", "Running", "Failed", least=2)
    assert cleared(parted(whole, broken, min_subgroups=1)) == []
    assert cleared(parted(whole, broken, min_subgroups=2)) == ["a-0", "a-1", "b-0"]


def test_minima_of_subgroups_count_on_every_level() -> None:
    leaves = [part("a", "Running"), part("b", "Failed"), part("c", "Running"), part("d", "Failed")]
    tasks = [one for _, some in leaves for one in some]

    def tree(least: int, on_top: int) -> dict[str, Any]:
        made = [one for one, _ in leaves]
        inner = [
            {"name": "left", "min_subgroups": least, "children": made[:2]},
            {"name": "right", "min_subgroups": least, "children": made[2:]},
        ]
        return gang(subgroups=inner, min_subgroups=on_top, tasks=tasks)

    assert cleared(tree(1, 2)) == []
    assert cleared(tree(2, 1)) == ["a-0", "c-0"]


def test_what_may_not_be_preempted_is_cleared_and_what_the_cluster_needs_is_not() -> None:
    assert cleared(gang("Running", "Failed", preemptible=False)) == ["g-0"]
    assert cleared(gang("Running", "Failed", priority_class="system-node-critical")) == []


def test_a_gang_with_a_task_that_may_not_go_is_left_as_it_is() -> None:
    budget = {"name": "b", "match_labels": {"app": "x"}, "disruptions_allowed": 1}
    tasks = [task("g-0", labels={"app": "x"}), task("g-1", labels={"app": "x"}), task("g-2", "Failed")]
    assert cleared(gang(min_available=3, tasks=tasks), disruption_budgets=[budget]) == []
    assert cleared(gang(min_available=3, tasks=tasks)) == ["g-0", "g-1"]


def test_budgets_are_used_up_by_those_that_have_been_stale_for_longest() -> None:
    budget = {"name": "b", "match_labels": {"app": "x"}, "disruptions_allowed": 1}
    some = [
        {**gang("Failed", stale_since=since), "name": name}
        for name, since in (("late", 930.0), ("early", 910.0), ("later", 920.0))
    ]
    for one in some:
        one["tasks"] = [task(one["name"], labels={"app": "x"}), task(f"{one['name']}-1", "Failed")]
    assert cleared(*some, disruption_budgets=[budget]) == ["early"]


def test_a_gang_that_is_about_to_be_whole_again_is_not_cleared() -> None:
    assert cleared(gang("Running", "Pending")) == []  # there is room: it is placed in the same cycle
    assert cleared(gang("Running", "Pending"), cpu=1) == ["g-0"]
    promised = gang(tasks=[task("g-0"), task("g-1", "Pending", nominated_node="n0")])
    ending = {"name": "e", "queue": "q", "tasks": [task("e-0", "Terminating")]}
    assert cleared(promised, ending, cpu=2) == []


def test_once_cleared_a_gang_waits_as_a_whole_and_nothing_more_happens() -> None:
    said = simulate(world(gang("Running", "Pending"), cpu=1), 4)
    assert [len(one["evictions"]) for one in said["cycles"]] == [1, 0, 0, 0]
    assert {one["status"] for one in said["final"].values()} == {"Pending"}


def test_a_policy_that_does_not_list_the_action_clears_nothing() -> None:
    assert cleared(gang("Running", "Failed"), policy={"actions": ["allocate", "preempt"]}) == []


def test_a_window_of_evictions_holds_it_back_until_it_moves_on() -> None:
    def paced(used: int, at: float = 950.0) -> dict[str, Any]:
        budget = {"evictionbudget": {"arguments": {"in_window": 3, "window_s": 60}}}
        return {"policy": {"plugins": budget}, "recent_evictions": [{"queue": "q", "at": at, "count": used}]}

    more = gang("Running", "Running", "Failed", min_available=3)
    assert cleared(more, **paced(1)) == ["g-0", "g-1"]
    assert cleared(more, **paced(2)) == []
    assert cleared(more, **paced(2, at=940.0)) == ["g-0", "g-1"]
    case = open_case(world(more, **paced(2)))
    assert next_due(case.snapshot, case.policy, NOW) == 1010.0
    case = open_case(world(more, **paced(1)))
    assert next_due(case.snapshot, case.policy, NOW) is None


def test_a_gang_whose_tasks_may_start_one_by_one_is_not_cleared() -> None:
    """Its tasks would be started and cleared in turn without end."""
    left = gang("Running", "Failed", match_policy="once-satisfied", started=1.0)
    assert cleared(left, cycles=4) == []
    assert cleared(left | {"match_policy": "waiting-and-running"}) == ["g-0"]
