"""Which candidates stay where the tasks of a gang differ, so that slots do not decide; and where none is sought."""

import pytest

from actors.cli.simulate import open_case
from pipeline.decision.attempt import Attempt
from pipeline.decision.explanation import Reason
from pipeline.decision.plan import NoPlan, Plan
from pipeline.policy import Purpose
from pipeline.propose import propose
from tests.support.brute_force import attempt_of, crowded
from tests.support.gathering import Outcome, cluster_file, running, waiting
from tests.support.lending_clusters import LendingCluster
from tests.support.small_clusters import named, played, podgroup, world


def test_a_candidate_stays_although_the_one_before_it_has_to_go() -> None:
    """If both nodes were empty, four cores would go to the first and two to the second, and no task could stay."""
    gang = podgroup("gang", [{"cpu": 4}, {"cpu": 2}], priority=1, min_available=2)
    asks = (("small", 2, "n0"), ("large", 4, "n1"))
    groups = [podgroup(name, [{"cpu": cpu}], node, min_available=0) for name, cpu, node in asks]
    (cycle,) = played(world({"n0": {"cpu": 4}, "n1": {"cpu": 4}}, {"q": {}}, [*groups, gang], profile="koordinator"))
    assert named(cycle["evictions"]) == ["large-0"]
    assert len(cycle["nominations"]) == 2


@pytest.mark.parametrize("sizes", [(3, 1), (1, 3)])
def test_of_a_gang_that_breaks_a_task_stays_that_is_not_in_the_way(sizes: tuple[int, int]) -> None:
    """The gang asks for four cores and three, and four are free; units were tried whole, so the small task went too."""
    pair = podgroup("pair", [{"cpu": cores} for cores in sizes], "n", min_available=2)
    gang = podgroup("gang", [{"cpu": 4}, {"cpu": 3}], priority=1, min_available=2)
    (cycle,) = played(world({"n": {"cpu": 8}}, {"q": {}}, [pair, gang], profile="koordinator"))
    assert named(cycle["evictions"]) == [f"pair-{sizes.index(3)}"]


@pytest.mark.parametrize("sizes", [[4, 4, 2, 2], [4, 3, 3]])
def test_no_victims_are_sought_where_the_tasks_together_are_too_much_for_every_domain(sizes: list[int]) -> None:
    """Two nodes have five cores each: ten are too few in sum, or each takes one task of three or more."""
    low = [running(f"low{at}", [f"n{at}"], 5, min_available=1) for at in range(1, 5)]
    tree = {"s": {"b1": ["n1", "n2"], "b2": ["n3", "n4"]}}
    job = waiting("job", sizes, topology={"required": "block"})
    case = open_case(cluster_file(tree, 5, [*low, job]))
    found = propose(Attempt(case.snapshot, case.policy, Purpose.PREEMPT, (4,), None, case.now, "preempt"))
    assert isinstance(found, NoPlan)
    assert (found.explanation.reason, found.explanation.tried) == (Reason.BOUND, ())


def test_a_second_job_does_not_break_in_place_of_surplus_as_important_as_what_breaks_anyway() -> None:
    """Two nodes cost a job of priority 2, the third node one of priority 1 or surplus of priority 2."""
    must, small = running("must", ["n1", "n2"], 4, priority=2), running("small", ["n3"], 4)
    spare = running("spare", ["n4", "n5"], 4, priority=2, min_available=1)
    tree = {"s": {"b": ["n1", "n2", "n3", "n4"]}, "t": {"c": ["n5"]}}
    job = waiting("job", [4, 4, 4], topology={"required": "spine"})
    assert Outcome(cluster_file(tree, 4, [must, small, spare, job])).evicted == ["must-0", "must-1", "spare-0"]


def test_one_job_breaks_in_place_of_two_where_the_priority_is_spent_anyway() -> None:
    must, one, other = (running(f"{at}", [f"n{at}"], 4, priority=2 if at == 1 else 1) for at in (1, 2, 3))
    pair = running("pair", ["n4", "n5"], 4, priority=2)
    tree = {"s": {"b": ["n1", "n2", "n3", "n4", "n5"]}}
    job = waiting("job", [4, 4, 4], topology={"required": "spine"})
    found = Outcome(cluster_file(tree, 4, [must, one, other, pair, job]))
    assert sorted({task[:-2] for task in found.evicted}) in (["2", "pair"], ["3", "pair"])


def test_of_tasks_that_are_not_alike_each_victim_is_asked_whether_it_may_stay_beside_all_others() -> None:
    """Only the second task is repelled. The most leading victims that may return leave one of each podgroup behind."""
    repels = [{"topology_key": "kubernetes.io/hostname", "match_labels": {"app": "x"}}]
    pair = podgroup("pair", [{"gpu": 1}] * 2, of_each={"labels": {"app": "y"}}, priority=5, min_available=2)
    pair["tasks"][1]["pod_anti_affinity"] = repels
    single = podgroup("single", [{"gpu": 1}], "n1", priority=2, min_available=1)
    three = podgroup("three", [{"gpu": 2}, {"gpu": 1}, {"gpu": 1}], ["n2", "n3", "n3"], priority=3, min_available=3)
    for task in three["tasks"][:2]:
        task["labels"] = {"app": "x"}
    other = podgroup("other", [{"gpu": 2}, {"gpu": 1}, {"gpu": 1}], ["n0", "n1", "n2"], priority=9, min_available=3)
    nodes = {"n0": {"gpu": 2}, "n1": {"gpu": 2}, "n2": {"gpu": 3}, "n3": {"gpu": 2}}
    (cycle,) = played(world(nodes, {"q": {}}, [single, three, other, pair], profile="koordinator"))
    assert named(cycle["evictions"]) == ["three-1", "three-2"]


def test_of_three_shapes_the_rest_of_a_gang_that_breaks_anyway_goes_and_not_another_podgroup() -> None:
    """By slots one task of `two` is enough, but then two of the three tasks that wait have no room."""
    tasks = podgroup("gang", [{"gpu": 2}, {"gpu": 3}, {"gpu": 1}], priority=5, min_available=3)
    groups = [
        podgroup("low", [{"gpu": 2}], "n3", priority=1, min_available=1),
        podgroup("mid", [{"gpu": 1}], "n2", priority=2, min_available=1),
        podgroup("three", [{"gpu": 1}] * 3, ["n3", "n2", "n4"], priority=3, min_available=3),
        podgroup("two", [{"gpu": 3}, {"gpu": 1}], ["n4", "n0"], priority=3, min_available=2),
    ]
    nodes = {"n0": {"gpu": 1}, "n2": {"gpu": 2}, "n3": {"gpu": 3}, "n4": {"gpu": 4}}
    (cycle,) = played(world(nodes, {"q": {}}, [*groups, tasks], profile="koordinator"))
    assert named(cycle["evictions"]) == ["low-0", "two-0", "two-1"]


def test_another_order_of_return_counts_where_the_first_turns_out_to_cost_more_than_its_slots_said() -> None:
    """By the first order four tasks go."""
    found = propose(attempt_of(crowded(255, Purpose.PREEMPT, "koordinator"), Purpose.PREEMPT))
    assert isinstance(found, Plan)
    assert len(found.statement.evictions) == 3


@pytest.mark.parametrize(
    ("seed", "goes"), [(811190, ["v0-0"]), (920459, ["v1-0", "v2-0"]), (921269, ["v0-0", "v1-0", "v1-1", "v3-1"])]
)
def test_of_a_gang_that_breaks_tasks_stay_that_bring_few_slots(seed: int, goes: list[str]) -> None:
    """Otherwise the first in order stays, and several go in its place."""
    assert Outcome(LendingCluster(seed, "preempt").document()).evicted == goes


@pytest.mark.parametrize(("seed", "goes"), [(811864, ["v0-1", "v1-0"]), (811282, ["v1-1"]), (921455, ["v1-2"])])
def test_of_an_elastic_podgroup_that_task_is_surplus_which_brings_more_slots(seed: int, goes: list[str]) -> None:
    assert Outcome(LendingCluster(seed, "preempt").document()).evicted == goes


@pytest.mark.parametrize(("seed", "goes"), [(920595, ["v0-0", "v2-0"]), (922172, ["v0-0", "v2-1", "v2-2"])])
def test_of_podgroups_as_important_the_one_goes_whose_checkpoint_is_newer(seed: int, goes: list[str]) -> None:
    """It holds as much, or more, and loses less."""
    assert Outcome(LendingCluster(seed, "preempt").document()).evicted == goes
