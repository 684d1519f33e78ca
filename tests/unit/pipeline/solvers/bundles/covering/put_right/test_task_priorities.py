"""Which task of a podgroup is surplus: the one of the lowest priority of those that cover as much."""

from collections.abc import Sequence

import pytest

from pipeline.cluster.arrays import NONE
from pipeline.solvers.bundles.covering.chosen import Selection
from pipeline.solvers.bundles.covering.selection import select
from tests.support.builders import Gang, Task, cluster, gang, searching

#: Devices of one node.
FOUR = (4,)


def victims(low: Gang, *others: Gang, asks: int = 2, devices: Sequence[int] = FOUR) -> list[int]:
    """Victims for a task that asks for some devices, on nodes that have some."""
    gangs = [low, *others, gang(1, gpu=asks, priority=9)]
    found = select(searching(cluster([{"gpu": many} for many in devices], gangs), len(gangs) - 1), 0)
    assert isinstance(found, Selection), found
    return found.victims.tolist()


def elastic(*tasks: Task, minimum: int = 1, roles: Sequence[int] = ()) -> Gang:
    return Gang(tasks, minimum, priority=1, roles=roles)


def test_of_tasks_that_each_make_the_room_the_lowest_priority_goes_whatever_its_size() -> None:
    assert victims(elastic(Task(0, gpu=1, priority=5), Task(0, gpu=3, priority=1)), asks=1) == [1]
    assert victims(elastic(Task(0, gpu=1, priority=1), Task(0, gpu=3, priority=1)), asks=1) == [0]


def test_what_is_not_needed_beside_a_bigger_task_stays() -> None:
    """Two small tasks would lose less than the big one, which goes in place of one of them; the other stays then."""
    low = elastic(Task(0, gpu=1, priority=5), Task(0, gpu=1, priority=5), Task(0, gpu=3, priority=1), minimum=0)
    assert victims(low, devices=[5]) == [2]


def test_what_is_not_needed_after_an_exchange_stays_though_tasks_of_several_sizes_wait() -> None:
    """The task of 3 goes for that of 1 on node 2. The large one is placed on node 0 then, and node 1 needs less."""
    tasks = [Task(2, gpu=1, priority=2), Task(0, gpu=3), Task(1, gpu=1)]
    gangs = [gang(1, 1, gpu=1, minimum=0), Gang(tasks, 0, priority=1), Gang([Task(gpu=3), Task(gpu=2)], 2, priority=9)]
    found = select(searching(cluster([{"gpu": 4}, {"gpu": 3}, {"gpu": 2}], gangs), 2), 0)
    assert isinstance(found, Selection), found
    assert found.victims.tolist() == [0, 2]


def test_priorities_on_other_nodes_decide_as_well() -> None:
    low, full = elastic(Task(0, gpu=4, priority=1), Task(1, gpu=2, priority=5)), gang(1, 1, gpu=2, priority=20)
    assert victims(low, full, devices=[4, 4]) == [0]


@pytest.mark.parametrize("roles", [(), (0, 1)])
def test_a_task_of_a_role_that_keeps_its_minimum_does_not_go(roles: Sequence[int]) -> None:
    """Without roles the second task would go."""
    small, big = (0, 1) if roles else (NONE, NONE)
    low = elastic(Task(0, gpu=1, priority=5, role=small), Task(0, gpu=3, priority=1, role=big), roles=roles)
    assert victims(low, asks=1) == ([0] if roles else [1])
