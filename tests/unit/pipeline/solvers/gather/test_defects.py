"""What Koordinator's code gets wrong in job-level preemption and gathering, by the promises of its own manual."""

import pytest

from tests.support.gathering import TWO_BY_TWO, Outcome, cluster_file, running, waiting

PAIR = {"s1": {"b1": ["n1", "n2"]}}
BLOCK, SPINE = {"topology": {"required": "block"}}, {"topology": {"required": "spine"}}


def test_each_member_sees_the_members_placed_before_it() -> None:
    low = [running("lp1", ["n1"], 4), running("lp2", ["n2"], 4)]
    found = Outcome(cluster_file(PAIR, 4, [*low, waiting("hp", [3, 3])]))
    assert found.evicted == ["lp1-0", "lp2-0"]
    assert found.nominated == {"hp-0": "n1", "hp-1": "n2"}


def test_no_task_is_evicted_for_a_job_that_does_not_fit_even_then() -> None:
    low = [running("lp1", ["n1"], 4), running("lp2", ["n2"], 4)]
    found = Outcome(cluster_file(PAIR, 4, [*low, waiting("hp", [3, 3, 3])]))
    assert (found.evicted, found.nominated) == ([], {})


@pytest.mark.parametrize("topology", [BLOCK, {}])
def test_planned_members_are_counted_once_when_victims_return(topology: dict[str, object]) -> None:
    low = [running(f"lp{node}{at}", [node], 16) for node in ("n1", "n2") for at in (0, 1)]
    found = Outcome(cluster_file(PAIR, 32, [*low, waiting("hp", [16, 16, 16], **topology)]))
    assert len(found.evicted) == 3
    assert len(found.nominated) == 3


def test_a_node_with_more_victims_than_needed_keeps_the_others() -> None:
    low = [running(f"lp{at}", ["n1"], 16) for at in range(4)]
    found = Outcome(cluster_file({"s1": {"b1": ["n1"]}}, 64, [*low, waiting("hp", [16, 16], **BLOCK)]))
    assert len(found.evicted) == 2


def test_of_equal_blocks_the_one_with_the_less_important_victim_is_taken() -> None:
    low = [running("dear", ["n1"], 8, priority=500), running("cheap", ["n3"], 8, priority=1)]
    spines = {"s1": {"b1": ["n1"], "b2": ["n3"]}}
    found = Outcome(cluster_file(spines, 8, [*low, waiting("hp", [8], **BLOCK)]))
    assert (found.evicted, found.nominated) == (["cheap-0"], {"hp-0": "n3"})


def test_victims_of_the_lowest_priority_are_not_free_and_are_counted() -> None:
    spines = {"s1": {"b1": ["n1", "n2", "n3"], "b2": ["n4", "n5", "n6"]}}
    low = [running(f"x{node}", [node], 8, priority=0) for node in ("n1", "n2", "n3", "n4")]
    found = Outcome(cluster_file(spines, 8, [*low, waiting("hp", [8, 8, 8], **BLOCK)]))
    assert found.evicted == ["xn4-0"]


def test_a_job_is_a_podgroup_without_any_label() -> None:
    # Twelve cores are held by three jobs on one node and by one job of three tasks on the other: one job is to break.
    spines = {"s1": {"b1": ["n1"], "b2": ["n2"]}}
    jobs = [running(f"job{at}", ["n1"], 4, priority=5) for at in range(3)]
    found = Outcome(cluster_file(spines, 12, [*jobs, running("gang", ["n2"] * 3, 4, priority=5), waiting("hp", [12])]))
    assert found.evicted == ["gang-0", "gang-1", "gang-2"]


def test_a_gang_that_spans_nodes_is_priced_once_and_with_its_members_elsewhere() -> None:
    # To break the wide gang on n1 alone would cost all four of its members; the lone task on n2 holds less.
    low = [running("wide", ["n1", "n3", "n4", "n5"], 8), running("lone", ["n2"], 8)]
    found = Outcome(cluster_file(TWO_BY_TWO, 8, [*low, waiting("hp", [8], topology={"required": "block"}), *_full()]))
    assert found.evicted == ["lone-0"]


def _full() -> list[dict[str, object]]:
    return [running(f"top{node}", [node], 8, priority=5000) for node in ("n6", "n7", "n8")]


def test_less_important_nominations_are_withdrawn_on_every_node_of_the_plan() -> None:
    tasks = [{"name": f"nominee-{at}", "request": {"cpu": 4}, "nominated_node": f"n{at + 1}"} for at in (0, 1)]
    nominee = {**waiting("nominee", [4, 4], priority=10), "tasks": tasks}
    ending, low = running("ending", ["n1"], 8), running("low", ["n2"], 4)
    ending["tasks"][0]["status"] = "Terminating"
    found = Outcome(cluster_file(PAIR, 8, [nominee, ending, low, waiting("hp", [8, 8], **BLOCK)]))
    assert found.evicted == ["low-0"]
    assert found.nominated == {"hp-0": "n1", "hp-1": "n2"}


def test_a_node_that_could_hold_the_whole_job_is_a_candidate() -> None:
    low = [running("lp1", ["n1"], 8), running("lp2", ["n2"], 8), running("lp3", ["n3"], 8)]
    spines = {"s1": {"b1": ["n1", "n2"], "b2": ["n3"]}}
    found = Outcome(cluster_file(spines, {"n1": 8, "n2": 8, "n3": 16}, [*low, waiting("hp", [8, 8], **BLOCK)]))
    assert (found.evicted, found.nominated) == (["lp3-0"], {"hp-0": "n3", "hp-1": "n3"})


@pytest.mark.parametrize("names", [["old", "young"], ["young", "old"]])
def test_of_equal_victims_the_youngest_podgroup_goes_in_whatever_order_they_are_listed(names: list[str]) -> None:
    created = {"old": 10.0, "young": 20.0}
    low = [running(name, ["n1"], 8, created=created[name]) for name in names]
    found = Outcome(cluster_file({"s1": {"b1": ["n1"]}}, 16, [*low, waiting("hp", [8])]))
    assert found.evicted == ["young-0"]


@pytest.mark.parametrize("minimum", [1, 5])
def test_of_one_podgroup_the_last_tasks_go_first(minimum: int) -> None:
    low = running("lp", ["n1"] * 4, 8, min_available=minimum)
    found = Outcome(cluster_file({"s1": {"b1": ["n1"]}}, 32, [low, waiting("hp", [8, 8])]))
    assert found.evicted == ["lp-2", "lp-3"]
