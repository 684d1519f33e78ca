"""To whom nodes of victims that do not end, and claimed domains, are closed, and until when."""

from dataclasses import replace

import pytest

from pipeline.actions.claims import Closed, closed_to
from pipeline.actions.progress import Setup
from pipeline.cycle import cycle
from pipeline.decision.claim import Claim
from tests.support.asking import DEFAULT, host_on
from tests.support.builders import cluster, gang

#: Two racks of two nodes. Three gangs wait, in the order in which they are served.
STATE = cluster([{}] * 4, [gang(2, cpu=1, priority=priority) for priority in (3, 2, 1)], racks=(2, 2))
LATE = Claim(podgroup=1, domain=2, until=10.0)


def closed(to: Closed) -> list[list[int]]:
    return [nodes.tolist() for nodes in closed_to(host_on(STATE), to, [(0,), (1,), (2,)])]


def test_a_claimed_domain_is_closed_to_those_that_are_served_after_its_owner() -> None:
    assert closed(Closed(claims=(LATE,))) == [[], [], [2, 3]]
    assert closed(Closed(claims=(LATE, replace(LATE, podgroup=0, domain=1)))) == [[], [0, 1], [0, 1, 2, 3]]


def test_a_node_of_a_victim_that_does_not_end_is_closed_to_all() -> None:
    assert closed(Closed(overdue=((3, 10.0), (0, 10.0)))) == [[0, 3]] * 3
    assert closed(Closed(overdue=((0, 10.0),), claims=(LATE,))) == [[0], [0], [0, 2, 3]]
    assert closed(Closed()) == [[]] * 3


def test_nothing_stays_closed_beyond_its_time() -> None:
    both = Closed(overdue=((0, 5.0), (1, 7.0)), claims=(LATE, replace(LATE, until=5.0)))
    assert both.active_at(4.0) == both
    assert both.active_at(5.0) == Closed(overdue=((1, 7.0),), claims=(LATE,))
    assert both.active_at(10.0) == Closed()


@pytest.mark.parametrize(("cores", "owners"), [(2, [0, 1]), (1, [])])
def test_the_owner_is_placed_first_and_others_outside_its_domain_alone_whether_it_fits_or_not(
    cores: int, owners: list[int]
) -> None:
    gangs = [gang(2, cpu=2, priority=1), gang(4, cpu=1, minimum=1, priority=9)]
    state = cluster([{"cpu": cores}, {"cpu": cores}, {"cpu": 1}, {"cpu": 1}], gangs, racks=(2, 2))
    closed = Closed(claims=(Claim(podgroup=0, domain=1, until=10.0),))
    after = cycle(state, replace(DEFAULT, actions=("allocate",)), 0.0, Setup(closed=closed)).snapshot
    nodes = after.tasks.node.tolist()
    assert sorted(node for node in nodes[:2] if node >= 0) == owners
    assert sorted(node for node in nodes[2:] if node >= 0) == [2, 3]
    assert after.nodes.schedulable.all()
