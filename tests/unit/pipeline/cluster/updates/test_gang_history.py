"""Since when a podgroup runs below its minimum: by roles and subgroups too, and over a full list."""

from dataclasses import replace

import numpy as np
import pytest

from pipeline.cluster.arrays import NONE, frozen
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import FAILED, GONE, PENDING, PHASE_RUNNING, RUNNING, TERMINATING
from pipeline.cluster.updates.events import Changes, Listed
from pipeline.cluster.updates.fold import fold
from pipeline.cluster.updates.gang_history import with_gang_history
from tests.support.builders import Gang, Task, cluster
from tests.support.editing import with_groups
from tests.support.small_states import decided, task_news

HISTORY = "phase", "started", "stale_since"


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


def unknown() -> Snapshot:
    """Three tasks, two of them the minimum, that were whole before the list that told of them."""
    whole = told(cluster([{"gpu": 3}], [Gang([Task()] * 3, 2)]), *((row, RUNNING, row + 1) for row in range(3)))
    return with_groups(whole, ..., started=np.nan)


@pytest.mark.parametrize("rows", [[2], [1, 2], [0, 1, 2]])
def test_what_began_at_an_unknown_time_does_not_begin_by_an_eviction(rows: list[int]) -> None:
    lives = [(row, 0) for row in rows]
    evicted = fold(unknown(), Changes(decided=decided(1, 7.0, evicted=lives)))
    assert np.isnan(evicted.podgroups.started[0])
    ended = told(evicted, *((row, GONE if row == 0 else PENDING, 8.0 + row) for row in rows))
    assert np.isnan(ended.podgroups.started[0])
    spared = fold(evicted, Changes(decided=decided(2, 9.0, spared=lives)))
    assert np.isnan(spared.podgroups.started[0])
    assert stale(spared) == [None]


def test_it_begins_when_it_is_whole_again_after_it_was_not() -> None:
    surplus = told(unknown(), (2, PENDING, 7), (2, RUNNING, 8))
    assert np.isnan(surplus.podgroups.started[0])
    broken = told(surplus, (2, PENDING, 9), (1, PENDING, 10))
    assert told(broken, (1, RUNNING, 11)).podgroups.started.tolist() == [11.0]
    assert told(broken, (0, PENDING, 12), (1, RUNNING, 13), (2, RUNNING, 14)).podgroups.started.tolist() == [14.0]


def test_news_that_changes_nothing_does_not_begin_a_history() -> None:
    assert np.isnan(told(unknown(), (0, RUNNING, 7), (0, TERMINATING, 8)).podgroups.started[0])


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize("seed", range(40))
def test_history_is_that_of_each_podgroup_after_each_of_its_tasks_or_all(seed: int, at_once: bool) -> None:
    draw = np.random.default_rng(seed)
    parts = [(NONE, 1, NONE), (NONE, 1, NONE)]
    tasks = [Task(role=at % 2, subgroup=at // 2) for at in range(4)]
    gangs = [Gang(tasks, 2, roles=[1, 1], subgroups=parts), Gang([Task()] * 4, 3), Gang([Task()] * 4, 1)]
    state = cluster([{"gpu": 64}], gangs)
    state = told(state, *((row, RUNNING, at + 1) for at, row in enumerate(draw.permutation(12)[:6].tolist())))
    forgotten = np.array([draw.random() < 0.5 for _ in gangs])
    state = with_groups(state, ..., started=np.where(forgotten, np.nan, state.podgroups.started))
    owner, role, leaf = (getattr(state.tasks, name).tolist() for name in ("podgroup", "role", "subgroup"))
    runs = (state.tasks.status == RUNNING).tolist()
    rows = draw.permutation(12)[: draw.integers(0, 9)].tolist()
    if not at_once:
        rows += draw.permutation(12)[: draw.integers(0, 9)].tolist()
    expected = [list(one) for one in zip(*(getattr(state.podgroups, name).tolist() for name in HISTORY), strict=True)]
    counted, times = [], 20.0 + np.arange(len(rows)) * (not at_once)

    def is_whole(group: int) -> bool:
        mine = running_of(group)
        parts = {role[row] for row in mine}, {leaf[row] for row in mine}
        return len(mine) >= state.podgroups.min_available[group] and (group > 0 or all(len(one) == 2 for one in parts))

    def running_of(group: int) -> list[int]:
        return [row for row in range(12) if owner[row] == group and runs[row]]

    was_whole = [is_whole(group) for group in range(3)]

    def look_at(group: int, at: float) -> None:
        phase, started, stale_since = expected[group]
        if is_whole(group):
            begins = np.isnan(started) and not was_whole[group]
            expected[group] = [PHASE_RUNNING, at if begins else started, np.nan]
        else:
            broken = at if np.isnan(stale_since) else stale_since
            expected[group] = [phase, started, broken if running_of(group) else np.nan]
        was_whole[group] = is_whole(group)

    for row, at in zip(rows, times.tolist(), strict=True):
        by = -1 if runs[row] else 1
        runs[row] = not runs[row]
        counted.append((owner[row], role[row], leaf[row], by, by))
        if not at_once:
            look_at(owner[row], at)
    for row in rows if at_once else ():
        look_at(owner[row], 20.0)
    after = with_gang_history(state, np.array(counted, np.int64).reshape(-1, 5), times, at_once=at_once)
    np.testing.assert_array_equal([getattr(after, name) for name in HISTORY], np.array(expected).T)
    for name in HISTORY:
        column, before = getattr(after, name), getattr(state.podgroups, name)
        assert np.array_equal(column, before, equal_nan=name != "phase") == (column is before)


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
    assert stale(relisted(broken, listing(parted(), np.nan))) == [None]
