"""The search over domains: what is found where bundles in their order make too little room by slots."""

from dataclasses import replace

import pytest

from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.explanation import Reason
from pipeline.decision.plan import Plan
from pipeline.policy import Purpose
from pipeline.propose import divides, propose
from tests.support.asking import DEFAULT, attempt, plan, victims
from tests.support.brute_force import attempt_of, crowded
from tests.support.builders import Gang, Task, cluster

#: Nodes of a rack.
WIDE = 5


def racked(racks: int) -> Snapshot:
    """Racks with a podgroup each that can spare one task: not the one that surplus is taken from first, but the oldest.

    It is alone on a node of two devices, and a gang of one task, the last podgroup, wants such a node.
    """
    nodes, gangs = list[dict[str, int]](), list[Gang]()
    for first in range(0, WIDE * racks, WIDE):
        nodes += [{"gpu": 2}, {"gpu": 2}, *[{"gpu": 1}] * (WIDE - 2)]
        young = [Task(node, gpu=1, created=5.0) for node in range(first + 1, first + WIDE)]
        tasks = [Task(first, gpu=1), *young, Task(first + 1, gpu=1, preemptible=False)]
        gangs.append(Gang(tasks, len(tasks) - 1, priority=1))
    waiting = Gang([Task(gpu=2)], 1, priority=9, required_level=0)
    return cluster(nodes, [*gangs, waiting], racks=(WIDE,) * racks)


@pytest.mark.parametrize("polish", [True, False])
@pytest.mark.parametrize("racks", [2, 20])
def test_surplus_that_is_not_the_first_to_go_makes_room_with_polish_and_without(racks: int, polish: bool) -> None:
    made = plan(racked(racks), racks, policy=replace(DEFAULT, polish=polish))
    assert victims(made) == [0]
    assert len(made.explanation.tried) == racks


@pytest.mark.parametrize(("most", "told"), [(0, 3), (1, 2), (2, 3), (3, 3)])
def test_a_policy_says_how_many_domains_are_looked_at_and_the_next_one_is_told(most: int, told: int) -> None:
    tried = plan(racked(3), 3, policy=replace(DEFAULT, max_domains=most)).explanation.tried
    spent = [one.domain for one in tried if one.reason is Reason.BUDGET]
    assert (len(tried), spent) == (told, [most + 1] if 0 < most < 3 else [])


@pytest.mark.parametrize("seed", [1312, 1433, 1540, 1660])
def test_other_victims_are_sought_in_no_more_domains_than_were_looked_at(seed: int) -> None:
    """The order of bundles makes room in none of them."""
    asked = attempt_of(crowded(seed, Purpose.RECLAIM), Purpose.RECLAIM)
    assert isinstance(propose(asked), Plan)
    found = propose(replace(asked, policy=replace(asked.policy, max_domains=1)))
    assert [one.reason is Reason.BUDGET for one in found.explanation.tried].count(False) == 1


def test_where_the_first_plan_will_do_no_other_domain_is_looked_at() -> None:
    first = replace(DEFAULT, first_fit=True)
    assert [one.reason for one in plan(racked(3), 3, policy=first).explanation.tried] == [Reason.CHOSEN]
    asked = attempt(racked(3), 3)
    assert (divides(asked), divides(replace(asked, policy=first))) == (True, False)
