"""Since when a podgroup runs below its minimum: by roles and subgroups too, and over a full list."""

from dataclasses import replace

import numpy as np

from pipeline.cluster.arrays import NONE, frozen
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import FAILED, RUNNING
from pipeline.cluster.updates.events import Changes, Listed
from pipeline.cluster.updates.fold import fold
from tests.support.builders import Gang, Task, cluster
from tests.support.small_states import decided, task_news


def parted() -> Snapshot:
    """Two subgroups of two tasks with a minimum of one each; the podgroup's own is one."""
    tasks = [Task(subgroup=part) for part in (0, 0, 1, 1)]
    return cluster([{"gpu": 4}], [Gang(tasks, 1, subgroups=[(NONE, 1, NONE), (NONE, 1, NONE)])])


def told(state: Snapshot, *said: tuple[int, int, float]) -> Snapshot:
    """Statuses of tasks at their times, one message each."""
    for row, status, at in said:
        state = fold(state, Changes(tasks=task_news((row, status, 0 if status == RUNNING else NONE, int(at)))))
    return state


def stale(state: Snapshot) -> list[float | None]:
    return [None if np.isnan(at) else at for at in state.podgroups.stale_since.tolist()]


def test_a_podgroup_is_whole_once_each_subgroup_is() -> None:
    half = told(parted(), (0, RUNNING, 1), (1, RUNNING, 2))
    assert stale(half) == [1.0]
    assert np.isnan(half.podgroups.started[0])
    whole = told(half, (2, RUNNING, 3))
    assert (stale(whole), whole.podgroups.started.tolist()) == ([None], [3.0])


def test_it_is_stale_from_the_moment_a_subgroup_falls_below_its_minimum() -> None:
    whole = told(parted(), (0, RUNNING, 1), (1, RUNNING, 2), (2, RUNNING, 3))
    assert stale(told(whole, (1, FAILED, 4))) == [None]
    assert stale(told(whole, (1, FAILED, 4), (2, FAILED, 5))) == [5.0]
    assert stale(fold(whole, Changes(decided=decided(1, 7.0, evicted=[(2, 0)])))) == [7.0]


def test_roles_that_bind_count_as_well() -> None:
    state = cluster([{"gpu": 4}], [Gang([Task(role=0), Task(role=1), Task(role=1)], 2, roles=[1, 1])])
    whole = told(state, (0, RUNNING, 1), (1, RUNNING, 2), (2, RUNNING, 3))
    assert stale(told(whole, (1, FAILED, 4))) == [None]
    assert stale(told(whole, (0, FAILED, 4))) == [4.0]


def relisted(before: Snapshot, said: Snapshot) -> Snapshot:
    """The state after a full list of the same things in the same order."""
    cards = np.zeros((len(before.nodes), 0), np.int32)
    tasks, groups, nodes = (np.arange(len(table)) for table in (before.tasks, before.podgroups, before.nodes))
    return fold(
        before,
        Listed(said, tasks, groups, nodes.astype(np.int32), cards, np.arange(len(before.queues), dtype=np.int32)),
    )


def listing(state: Snapshot, since: float) -> Snapshot:
    return replace(state, podgroups=replace(state.podgroups, stale_since=frozen([since], np.float64)))


def test_a_full_list_neither_forgets_since_when_nor_invents_it() -> None:
    broken = told(parted(), (0, RUNNING, 5))
    assert stale(relisted(broken, listing(broken, 9.0))) == [5.0]
    assert stale(relisted(broken, listing(broken, 4.0))) == [4.0]
    assert stale(relisted(broken, listing(broken, np.nan))) == [None]
