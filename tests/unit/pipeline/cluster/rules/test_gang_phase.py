"""How far a podgroup has come, by the counts of its tasks alone."""

import pytest

from pipeline.cluster.rules.gang_phase import GangPhase, gang_phases
from pipeline.cluster.tables import BOUND, FAILED, GONE, PENDING, RUNNING, SUCCEEDED
from tests.support.builders import Gang, Task, cluster

HELD = (BOUND, RUNNING)


def phase(minimum: int, *statuses: int) -> GangPhase:
    tasks = [Task(0 if status in HELD else -1, cpu=1, status=status) for status in statuses]
    (found,) = gang_phases(cluster([{"cpu": 9}], [Gang(tasks, minimum)]))
    return found


@pytest.mark.parametrize(
    ("expected", "minimum", "statuses"),
    [
        (GangPhase.PENDING, 2, [PENDING]),
        (GangPhase.PENDING, 2, [PENDING, GONE]),
        (GangPhase.PENDING, 0, [RUNNING, RUNNING]),
        (GangPhase.PRE_SCHEDULING, 2, [PENDING, PENDING, PENDING]),
        (GangPhase.SCHEDULING, 2, [BOUND, PENDING]),
        (GangPhase.SCHEDULED, 2, [BOUND, RUNNING]),
        (GangPhase.SCHEDULED, 2, [BOUND, SUCCEEDED, PENDING]),
        (GangPhase.RUNNING, 2, [RUNNING, RUNNING, PENDING]),
        (GangPhase.RUNNING, 2, [RUNNING, SUCCEEDED]),
        (GangPhase.FAILED, 2, [RUNNING, FAILED]),
        (GangPhase.FAILED, 2, [RUNNING, RUNNING, FAILED]),
        (GangPhase.FINISHED, 2, [SUCCEEDED, SUCCEEDED, FAILED]),
    ],
)
def test_a_phase_follows_from_how_many_tasks_are_there_bound_running_and_done(
    expected: GangPhase, minimum: int, statuses: list[int]
) -> None:
    assert phase(minimum, *statuses) is expected


def test_a_podgroup_that_loses_its_tasks_goes_back() -> None:
    assert phase(2, RUNNING, RUNNING) is GangPhase.RUNNING
    assert phase(2, PENDING, PENDING) is GangPhase.PRE_SCHEDULING
