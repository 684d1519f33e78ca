"""Multiples of tasks a domain, tasks near which a gang wants to be, and layers that are preferred one by one."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from actors.cli.simulate import open_case
from pipeline.decision.attempt import Attempt
from pipeline.decision.plan import Plan
from pipeline.decision.verdict import Accepted, Stale
from pipeline.judge import judge
from pipeline.policy import Purpose
from pipeline.propose import propose
from tests.support.gathering import TWO_BY_TWO, Outcome, cluster_file, running, waiting


def in_multiples(tasks: int, preferred: str = "block", **multiples: int) -> dict[str, Any]:
    """A gang of one-core tasks that only goes in multiples."""
    return waiting("job", [1] * tasks, topology={"preferred": preferred, "multiples": multiples})


#: The nodes of `TWO_BY_TWO`.
ALL = {node for blocks in TWO_BY_TWO.values() for nodes in blocks.values() for node in nodes}


def by_block(found: Outcome) -> list[int]:
    """How many tasks each block of `TWO_BY_TWO` got, of those that got any, in order of their names."""
    blocks = {node: block for spine in TWO_BY_TWO.values() for block, nodes in spine.items() for node in nodes}
    placed = [blocks[node] for node in found.bound.values()]
    return [placed.count(block) for block in sorted(set(placed))]


def test_every_domain_of_the_layer_gets_a_multiple() -> None:
    # Without the multiple the gang would go as 3 + 1.
    cpus = {"n1": 2, "n2": 1, "n3": 2, "n4": 1, "n5": 2, "n6": 1, "n7": 2, "n8": 1}
    assert by_block(Outcome(cluster_file(TWO_BY_TWO, cpus, [in_multiples(4)]))) == [3, 1]
    assert by_block(Outcome(cluster_file(TWO_BY_TWO, cpus, [in_multiples(4, block=2)]))) == [2, 2]


@pytest.mark.parametrize("tasks", [3, 5])
def test_a_number_of_tasks_that_is_no_multiple_goes_nowhere(tasks: int) -> None:
    assert Outcome(cluster_file(TWO_BY_TWO, 4, [in_multiples(tasks, block=2)])).bound == {}


def test_multiples_of_two_layers_that_do_not_divide_each_other_are_both_kept() -> None:
    # Each block has 3 slots: a block takes 2 of them, for 2 is its multiple, and a spine 4; 6 in all need both spines.
    spines = {"s1": {"b1": ["n1"], "b2": ["n2"]}, "s2": {"b3": ["n3"], "b4": ["n4"]}}
    found = Outcome(cluster_file(spines, 3, [in_multiples(6, spine=3, block=2)]))
    assert found.bound == {}
    found = Outcome(cluster_file(spines, 6, [in_multiples(12, spine=3, block=2)]))
    assert sorted(list(found.bound.values()).count(node) for node in set(found.bound.values())) == [6, 6]


def test_tasks_that_are_not_alike_keep_the_multiple_or_wait() -> None:
    spines = {"s1": {"b1": ["n1"], "b2": ["n2"]}}
    gang = waiting("job", [2, 1, 1, 2], topology={"preferred": "block", "multiples": {"block": 2}})
    assert Outcome(cluster_file(spines, 3, [gang])).bound.keys() == {"job-0", "job-1", "job-2", "job-3"}
    assert Outcome(cluster_file(spines, {"n1": 5, "n2": 1}, [gang])).bound == {}


def test_room_is_made_for_multiples() -> None:
    low = running("low", ["n1", "n3", "n4"], 1, min_available=1)
    spines = {"s1": {"b1": ["n1", "n2"], "b2": ["n3", "n4"]}}
    gang = in_multiples(4, block=2)
    found = Outcome(cluster_file(spines, 1, [low, gang]))
    assert (len(found.evicted), len(found.nominated)) == (3, 4)


def test_a_plan_that_leaves_a_block_no_multiple_is_stale() -> None:
    """A task of the plan goes to the block of one node instead of its own."""
    low = running("low", ["n1", "n3", "n4"], 1, min_available=1)
    spines = {"s1": {"b1": ["n1", "n2"], "b2": ["n3", "n4"], "b3": ["n5"]}}
    case = open_case(cluster_file(spines, 1, [low, in_multiples(4, block=2)]))
    plan = propose(Attempt(case.snapshot, case.policy, Purpose.PREEMPT, (1,), None, case.now, "preempt"))
    assert isinstance(plan, Plan)
    later, made = replace(case.snapshot, revision=case.snapshot.revision + 1), plan.statement
    assert isinstance(judge(plan, later, case.policy, case.now), Accepted)
    elsewhere = replace(made, nominated_node=np.where(made.nominated_node == 1, 4, made.nominated_node))
    verdict = judge(replace(plan, statement=elsewhere), later, case.policy, case.now)
    assert verdict == Stale("a domain would have no multiple of the gang's tasks any more")


def test_a_gang_goes_where_tasks_are_that_say_the_same() -> None:
    near = {"topology": {"near": "pipeline-7"}}
    there, elsewhere = running("there", ["n5"], 1, **near), running("elsewhere", ["n1", "n2", "n3"], 1)
    found = Outcome(cluster_file(TWO_BY_TWO, 2, [there, elsewhere, waiting("job", [1] * 3, **near)]))
    assert set(found.bound.values()) == {"n5", "n6"}


def test_a_single_task_goes_to_the_node_where_most_are_that_say_the_same() -> None:
    near = {"topology": {"near": "pipeline-7"}}
    found = Outcome(
        cluster_file(TWO_BY_TWO, 4, [running("there", ["n5", "n6", "n6"], 1, **near), waiting("one", [1], **near)])
    )
    assert found.bound == {"one-0": "n6"}


def full(*free: str, high: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """Podgroups that fill all nodes but some, more important ones on some."""
    rest = [f"n{at}" for at in range(1, 9) if f"n{at}" not in (*free, *high)]
    return [running("low", rest, 1, min_available=1), running("high", high, 1, priority=5, min_available=1)]


def test_preferred_layers_are_tried_from_the_narrowest_and_only_those_that_are_listed() -> None:
    # Two less important tasks go for a place in one block; one is enough where only a spine is asked for.
    others = full("n1", high=("n2",))
    close = waiting("job", [1] * 2, topology={"preferred": "block"})
    wide = waiting("job", [1] * 2, topology={"preferred": "spine", "layers": ["spine"]})
    assert len(Outcome(cluster_file(TWO_BY_TWO, 1, [*others, close])).evicted) == 2
    assert len(Outcome(cluster_file(TWO_BY_TWO, 1, [*others, wide])).evicted) == 1


def test_a_layer_between_that_is_not_listed_is_not_tried() -> None:
    # No block takes three tasks. In one spine two less important tasks would go, anywhere only one.
    job = waiting("job", [1] * 3, topology={"preferred": "block"})
    assert len(Outcome(cluster_file(TWO_BY_TWO, 1, [*full("n1", "n5"), job])).evicted) == 2
    job["topology"]["layers"] = ["block"]
    assert len(Outcome(cluster_file(TWO_BY_TWO, 1, [*full("n1", "n5"), job])).evicted) == 1


def test_what_is_less_important_goes_before_the_surplus_of_what_is_more_important() -> None:
    others = full("n5", "n6", high=("n1", "n2", "n3", "n4", "n7"))
    gang = waiting("job", [1] * 3, topology={"preferred": "spine"})
    assert Outcome(cluster_file(TWO_BY_TWO, 1, [*others, gang])).evicted == ["low-0"]


def test_room_is_made_for_the_multiple_that_holds_the_minimum() -> None:
    low = running("low", ["n1", "n2", "n3", "n4"], 1, min_available=1)
    spines = {"s1": {"b1": ["n1", "n2"], "b2": ["n3", "n4"]}}
    gang = in_multiples(5, block=2) | {"min_available": 3}
    found = Outcome(cluster_file(spines, 1, [low, gang]), 2)
    assert len(found.evicted) == 4
    assert found.bound.keys() == {"job-0", "job-1", "job-2", "job-3"}
    assert Outcome(cluster_file(spines, 1, [low, in_multiples(3, block=2)])).evicted == []


def with_a_task_less(on: list[str], **topology: Any) -> dict[str, Any]:
    """A gang of four of which one task waits again, the others run ``on`` some nodes."""
    gang = waiting("job", [1] * 4, topology=topology, started=1.0)
    for task, node in zip(gang["tasks"], on, strict=False):
        task |= {"status": "Running", "node": node}
    return gang


@pytest.mark.parametrize("policy", ["once-satisfied", "waiting-and-running"])
def test_a_task_that_is_lost_returns_to_the_domain_that_is_one_short(policy: str) -> None:
    gang = with_a_task_less(["n1", "n1", "n3"], preferred="block", multiples={"block": 2}) | {"match_policy": policy}
    assert Outcome(cluster_file(TWO_BY_TWO, 2, [gang])).bound == {"job-3": "n3"}
    together = with_a_task_less(["n1", "n1", "n2"], required="block", multiples={"block": 2})
    assert Outcome(cluster_file(TWO_BY_TWO, 2, [together | {"match_policy": policy}])).bound == {"job-3": "n2"}


def test_it_waits_where_no_domain_is_one_short_of_a_multiple() -> None:
    gang = with_a_task_less(["n1", "n1", "n3"], preferred="block", multiples={"block": 2})
    full = running("full", ["n4", "n4", "n3"], 1, priority=2000)
    assert Outcome(cluster_file(TWO_BY_TWO, 2, [full, gang])).bound == {}


def test_room_is_made_where_a_lost_task_makes_a_multiple_whole() -> None:
    gang = with_a_task_less(["n1", "n1", "n3"], preferred="block", multiples={"block": 2})
    others = running("low", ["n2", "n3", "n4", "n5", "n6", "n7", "n8"], 1, min_available=1)
    found = Outcome(
        cluster_file(TWO_BY_TWO, {"n1": 2, "n3": 2} | dict.fromkeys(ALL - {"n1", "n3"}, 1), [others, gang]), 2
    )
    assert len(found.evicted) == 1
    assert found.bound.keys() == {"job-3"}
    assert found.bound["job-3"] in ("n3", "n4")


def promised(nodes: list[str]) -> dict[str, Any]:
    """A gang of pairs whose tasks were promised these nodes."""
    job = in_multiples(len(nodes), preferred="spine", block=2)
    for task, node in zip(job["tasks"], nodes, strict=True):
        task["nominated_node"] = node
    return job


def test_promises_are_redeemed_where_they_keep_multiples() -> None:
    kept = ["n1", "n2", "n5", "n6"]
    found = Outcome(cluster_file(TWO_BY_TWO, 4, [promised(kept)]))
    assert list(found.bound.values()) == kept


def test_promises_that_would_leave_a_domain_without_a_multiple_are_made_anew() -> None:
    found = Outcome(cluster_file(TWO_BY_TWO, 1, [promised(["n1", "n3", "n5", "n7"])]))
    assert by_block(found) == [2, 2]


def test_promises_of_a_gang_that_can_keep_no_multiple_are_given_up() -> None:
    found = Outcome(cluster_file(TWO_BY_TWO, 4, [promised(["n1", "n2", "n3"])]))
    assert (found.bound, found.nominated) == ({}, {})


def test_tasks_that_run_make_up_the_multiple_of_a_promise() -> None:
    job = promised(["n1", "n2"])
    job["tasks"][0] |= {"status": "Running", "node": "n1"}
    del job["tasks"][0]["nominated_node"]
    assert Outcome(cluster_file(TWO_BY_TWO, 4, [job])).bound == {"job-1": "n2"}
