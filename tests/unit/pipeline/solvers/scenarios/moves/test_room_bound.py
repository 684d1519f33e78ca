"""Moves are not looked for where victims cannot make the room that is lacking."""

from dataclasses import replace

import numpy as np
import pytest

from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.attempt import Attempt
from pipeline.decision.explanation import Reason
from pipeline.decision.plan import NoPlan, Plan
from pipeline.policy import Purpose
from pipeline.propose import propose
from pipeline.solvers.scenarios.accumulating import Scenario
from pipeline.solvers.scenarios.grounds import Grounds
from tests.support.builders import Gang, Task, cluster, gang
from tests.support.fair_shares import file, group, queue
from tests.support.scenarios import SCENARIOS
from tests.support.small_clusters import named, played

#: Each of twelve nodes has one device left, and tasks that hold three.
FULL = [{"gpu": 4}] * 12
LARGE = [gang(1, at, gpu=3) for at in range(12)]


def consolidated(state: Snapshot) -> Plan | NoPlan:
    """What is decided for the last podgroup in one rack, with a budget for few scenarios."""
    unit, policy = (len(state.podgroups) - 1,), replace(SCENARIOS, search_budget=24)
    racks = np.arange(1, len(state.topology.start))
    return propose(Attempt(state, policy, Purpose.CONSOLIDATE, unit, racks, 1e6, "consolidation"))


def reason_of(state: Snapshot) -> Reason:
    found = consolidated(state)
    assert isinstance(found, NoPlan)
    return found.explanation.reason


def test_where_no_other_node_takes_a_victim_the_search_ends_before_it_begins() -> None:
    """In all there is room, but what would have to go has a place nowhere else."""
    assert reason_of(cluster(FULL, [*LARGE, gang(4, gpu=2)], racks=[6, 6])) is Reason.NO_MOVES


def test_what_other_nodes_take_may_be_less_than_is_lacking() -> None:
    """In each rack two small tasks could move to a node of the other; three would have to."""
    small = [Gang([Task(at, gpu=1)]) for at in (0, 1, 6, 7)]
    nodes = [{"gpu": 4 + (at in (0, 1, 6, 7))} for at in range(12)]
    assert reason_of(cluster(nodes, [*LARGE, *small, gang(5, gpu=2)], racks=[6, 6])) is Reason.NO_MOVES


def test_other_nodes_take_no_more_victims_than_they_have_slots() -> None:
    """They have room for six devices, but for only two tasks of two; three tasks would have to move there."""
    nodes = [*[{"gpu": 2}] * 6, {"gpu": 3}, {"gpu": 3}]
    groups = [*[gang(1, at, gpu=2) for at in range(6)], gang(3, gpu=2)]
    assert reason_of(cluster(nodes, groups, racks=[6, 2])) is Reason.NO_MOVES


def test_the_budget_is_left_for_a_domain_that_victims_can_leave() -> None:
    """Nothing can leave the first rack; from the second a task moves away."""
    nodes = [*[{"gpu": 3}] * 6, {"gpu": 2}, {"gpu": 2}, {"gpu": 1}]
    groups = [*LARGE[:6], gang(1, 6, gpu=1), gang(1, 7, gpu=1), gang(1, gpu=2)]
    found = consolidated(cluster(nodes, groups, racks=[6, 2, 1]))
    assert isinstance(found, Plan)
    assert len(found.statement.moved) == 1


def test_scenarios_that_cannot_make_room_cost_nothing() -> None:
    """The victims that come first fit nowhere else; only the last ones can move, to the other rack."""
    nodes = [{"gpu": 2}, *[{"gpu": 3}] * 6, {"gpu": 1}, {"gpu": 1}]
    late = [gang(1, 0, gpu=1, priority=1), gang(1, 0, gpu=1, priority=1)]
    found = consolidated(
        cluster(nodes, [*[gang(1, 1 + at, gpu=3) for at in range(6)], *late, gang(1, gpu=2)], racks=[7, 2])
    )
    assert isinstance(found, Plan)
    assert len(found.statement.moved) == 2


def gone(state: Snapshot, podgroups: range) -> Snapshot:
    """The same where tasks of some podgroups do not start again once they are evicted."""
    owner = state.tasks.podgroup
    some = (owner >= podgroups.start) & (owner < podgroups.stop)
    return replace(state, tasks=replace(state.tasks, gone_when_evicted=some))


def test_what_would_not_start_again_does_not_move() -> None:
    """Each of twelve tasks could make room on its node if it moved to another one."""
    half = cluster([{"gpu": 2}] * 12, [*[gang(1, at, gpu=1) for at in range(12)], gang(1, gpu=2)], racks=[6, 6])
    assert isinstance(consolidated(half), Plan)
    assert reason_of(gone(half, range(12))) is Reason.NO_MOVES


def test_the_budget_is_left_for_what_would_start_again() -> None:
    """Each task could make room, but only that of the first podgroup, whose turn is last, would start elsewhere."""
    state = cluster([{"gpu": 2}] * 12, [*[gang(1, at, gpu=1) for at in range(12)], gang(1, gpu=2)], racks=[6, 6])
    found = consolidated(gone(state, range(1, 12)))
    assert isinstance(found, Plan)
    assert found.statement.moved.tolist() == [0]


def test_once_the_budget_is_spent_no_other_domain_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """In each of six racks two tasks would have to leave, and the only other node has room for one of them."""
    looked, scenario = list[int](), Grounds.scenario

    def noted(grounds: Grounds, domain: int, *, keeps: bool = False) -> Scenario:
        looked.append(domain)
        return scenario(grounds, domain, keeps=keeps)

    monkeypatch.setattr(Grounds, "scenario", noted)
    pairs = [Gang([Task(at, gpu=2, cpu=cpu)]) for at in range(6) for cpu in (1, 2)]
    nodes = [*[{"gpu": 4}] * 6, {"gpu": 3, "cpu": 500}]
    assert reason_of(cluster(nodes, [*pairs, gang(1, gpu=3, cpu=900)], racks=[1] * 7)) is Reason.BUDGET
    assert len(looked) < 6


def reclaimed(deserved: int) -> list[str]:
    """What a queue gives that holds six devices, of which it deserves some, to one that asks for two."""
    running = [group(f"g{at}", "a", running=1, gpus=3) for at in range(2)]
    queues = [queue("a", deserved), queue("b", 2)]
    document = file(queues, [*running, group("w", "b", waiting=1, gpus=2)], gpus=7, actions=["reclaim"])
    return named(played(document)[0]["evictions"])


def test_in_reclaim_what_may_be_lost_makes_room() -> None:
    assert len(reclaimed(deserved=5)) == 1
    assert reclaimed(deserved=6) == []
