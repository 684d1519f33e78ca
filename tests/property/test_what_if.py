"""A what-if answers what the snapshot answers after the fold has carried the same out; and it is a value."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipeline.cluster.arrays import NONE
from pipeline.cluster.rules.minima_met import breaks_without
from pipeline.cluster.rules.minimum import has_minimum, starts_with
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import BOUND, PENDING, RUNNING, TERMINATING
from pipeline.cluster.updates.events import Changes
from pipeline.cluster.updates.fold import fold
from pipeline.cluster.what_if import WhatIf
from tests.support.histories import GROUPS, NODES, TASKS, begun, folded, histories, told
from tests.support.small_states import decided, small_state

rows, nodes = st.integers(0, GROUPS * TASKS - 1), st.integers(0, NODES - 1)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("evicted"), rows, nodes),
        st.tuples(st.just("nominated"), rows, st.integers(NONE, NODES - 1)),
        st.tuples(st.just("bound"), rows, nodes),
    ),
    max_size=8,
)


def taken(state: Snapshot, what_if: WhatIf, step: tuple[str, int, int]) -> tuple[Snapshot, WhatIf]:
    """Both after one step, where it means something."""
    kind, row, node = step
    here, status = np.array([row]), int(what_if.whole.tasks.status[row])
    if node != NONE and kind != "evicted" and not state.nodes.allocatable[node].any():
        return state, what_if
    seq, life = state.decided + 1, int(state.tasks.incarnation[row])
    if kind == "evicted" and status in (BOUND, RUNNING):
        return fold(state, Changes(decided=decided(seq, evicted=[(row, life)]))), what_if.evicting(here)
    if kind == "nominated" and status == PENDING:
        done = fold(state, Changes(decided=decided(seq, nominated=[(row, node, life)])))
        return done, what_if.nominating(here, np.array([node]))
    if kind == "bound" and status == PENDING:
        done = fold(state, Changes(decided=decided(seq, bound=[(row, node, life)])))
        return done, what_if.binding(here, np.array([node]))
    return state, what_if


def answers(state: Snapshot | WhatIf) -> list[Any]:
    """Everything that both can be asked."""
    every = np.arange(GROUPS * TASKS)
    groups = np.arange(GROUPS)[::-1]
    found = [state.allocated_here, state.allocated, state.requested_here, state.nominated_of(every)]
    found += [state.held_of(groups)]
    for group in range(GROUPS):
        found += [has_minimum(state, group, NONE, every[::5]), starts_with(state, group, every[::7])]
    return [np.asarray(one).tolist() for one in found]


@given(histories, steps)
def test_a_what_if_answers_as_the_folded_snapshot_does(
    history: list[tuple[Any, ...]], path: list[tuple[str, int, int]]
) -> None:
    state = folded(begun(), told(history))
    what_if = WhatIf.of(state)
    for step in path:
        state, what_if = taken(state, what_if, step)
        assert answers(what_if) == answers(state)
    assert answers(what_if.whole) == answers(state)
    for column in ("status", "node", "nominated"):
        assert getattr(what_if.whole.tasks, column).tolist() == getattr(state.tasks, column).tolist()
    for table, counted in vars(state.totals).items():
        carried = getattr(what_if.whole.totals, table)
        assert [one.tolist() for one in vars(carried).values()] == [one.tolist() for one in vars(counted).values()]


@given(histories, st.sets(rows), st.sets(rows))
def test_podgroups_break_without_the_victims_that_a_what_if_breaks_them_by(
    history: list[tuple[Any, ...]], leave: set[int], stay_elsewhere: set[int]
) -> None:
    state = folded(begun(), told(history))
    runs, tasks = np.isin(state.tasks.status, (BOUND, RUNNING)), state.tasks
    gone = np.array(sorted(row for row in leave if runs[row]), np.int64)
    moves = gone[np.isin(gone, sorted(stay_elsewhere)) & ~tasks.gone_when_evicted[gone]]
    after = WhatIf.of(state).evicting(gone).nominating(moves, tasks.node[moves].astype(np.int64))
    broken = [has_minimum(state, group) and not has_minimum(after, group) for group in range(GROUPS)]
    assert breaks_without(state, np.arange(GROUPS), np.setdiff1d(gone, moves)).tolist() == broken


@given(histories, steps, steps)
def test_what_grows_from_a_what_if_leaves_it_as_it_was(
    history: list[tuple[Any, ...]], path: list[tuple[str, int, int]], other: list[tuple[str, int, int]]
) -> None:
    state = folded(begun(), told(history))
    what_if = WhatIf.of(state)
    for step in path:
        state, what_if = taken(state, what_if, step)
    before = answers(what_if)
    for branch in (other, other[::-1]):
        at, grown = state, what_if
        for step in branch:
            at, grown = taken(at, grown, step)
        assert answers(grown) == answers(at)
    assert answers(what_if) == before


def test_a_task_that_is_moved_leaves_its_node_and_is_promised_another() -> None:
    state = fold(small_state(), Changes(decided=decided(1, bound=[(0, 1, 0)])))
    after = WhatIf.of(state).evicting(np.array([0])).nominating(np.array([0]), np.array([2]))
    done = fold(state, Changes(decided=decided(2, evicted=[(0, 0)], nominated=[(0, 2, 0)])))
    assert done.tasks.status[0] == TERMINATING
    assert answers(after) == answers(done)
    assert after.allocated_here.tolist() == done.allocated_here.tolist() == [[1000, 0, 1], [0, 0, 0]]


def test_many_victims_at_once_or_one_by_one_are_the_same() -> None:
    state = fold(small_state(8, 40, 4), Changes(decided=decided(1, bound=[(row, row % 8, 0) for row in range(160)])))
    slowly, victims = WhatIf.of(state), np.arange(0, 160, 2)
    for row in victims:
        slowly = slowly.evicting(np.array([row]))
    at_once = WhatIf.of(state).evicting(victims)
    assert slowly.whole.room.future.tolist() == at_once.whole.room.future.tolist()
    assert slowly.changed.tolist() == at_once.changed.tolist() == victims.tolist()
