"""The snapshot in which waiting tasks that ask for nothing need a place like others."""

from dataclasses import replace

import numpy as np

from pipeline.cluster.rules.match_policy import needing_places
from pipeline.cluster.rules.minima_met import minima_met
from pipeline.cluster.rules.minimum import has_minimum, starts_with
from pipeline.cluster.what_if import WhatIf
from tests.support.builders import Gang, Task, cluster, gang
from tests.support.editing import with_tasks


def three(*, best_effort: list[int]):
    """Tasks 0 and 1 run, task 2 waits; all three are the minimum of one gang. Task 3 is another podgroup's."""
    tasks = [Task(0, gpu=1), Task(0, gpu=1), Task(gpu=1)]
    return with_tasks(cluster([{"gpu": 4}], [Gang(tasks, 3), gang(1, gpu=1)]), best_effort, best_effort=True)


def test_a_gang_has_no_minimum_until_its_task_without_requests_has_a_place() -> None:
    state = three(best_effort=[2])
    seen = needing_places(state)
    assert (minima_met(state).ready[0], minima_met(seen).ready[0], minima_met(seen).pipelined[0]) == (
        True,
        False,
        False,
    )
    assert not has_minimum(seen, 0)
    assert starts_with(seen, 0, np.array([2]))
    promised = WhatIf.of(state).nominating(np.array([2]), np.array([0])).whole
    assert minima_met(needing_places(promised)).pipelined[0]


def test_counts_are_those_of_the_same_tasks_with_requests() -> None:
    state = three(best_effort=[0, 2, 3])
    seen = needing_places(state)
    anew = replace(state, tasks=replace(state.tasks, best_effort=seen.tasks.best_effort))
    assert seen.tasks.best_effort.tolist() == [True, False, False, False]
    for table in ("counts", "role_counts", "subgroup_counts"):
        mine, fresh = vars(getattr(seen, table)), vars(getattr(anew, table))
        assert {key: value.tolist() for key, value in mine.items()} == {k: v.tolist() for k, v in fresh.items()}


def test_where_no_task_that_waits_asks_for_nothing_it_is_the_same_snapshot() -> None:
    state = three(best_effort=[0])
    assert needing_places(state) is state
