"""The search over domains: what is found where bundles in their order make too little room by slots."""

from dataclasses import replace

import pytest

from pipeline.cluster.snapshot import Snapshot
from tests.support.asking import DEFAULT, plan, victims
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
