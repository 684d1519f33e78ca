"""A statement that moves a task: evicted where it is and promised another node; checked, folded, and redeemed."""

from dataclasses import replace

import numpy as np

from pipeline.cluster.arrays import NONE, frozen
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import PENDING, RUNNING, SUCCEEDED, TERMINATING
from pipeline.cluster.updates.events import REPLACED, Changes
from pipeline.cluster.updates.fold import fold
from pipeline.decision.decided import carried_out, decision_of
from pipeline.decision.statement import Statement, statement
from pipeline.placement.feasibility import feasible
from tests.support.builders import cluster, gang
from tests.support.editing import with_tasks
from tests.support.placing import Work, apart, placed
from tests.support.small_states import task_news

MOVED, WAITS = 0, 1


def two_nodes(elsewhere: int = 2) -> Snapshot:
    """Task 0 fills node 0; node 1 has ``elsewhere`` cpus; task 1 waits and asks for as much as task 0."""
    return cluster([{"cpu": 2}, {"cpu": elsewhere}], [gang(1, 0, cpu=2), gang(1, cpu=2, priority=1)])


def move(node: int = 1, also: bool = True) -> Statement:
    """Task 0 to another node; task 1 to the node that it leaves."""
    tasks, nodes = ([MOVED, WAITS], [node, 0]) if also else ([MOVED], [node])
    return statement(
        "consolidation", evictions=np.array([MOVED]), nominated=np.array(tasks), nominated_node=np.array(nodes)
    )


def carried(state: Snapshot, made: Statement) -> Snapshot:
    return carried_out(made, state, 0.0)


def test_a_task_moves_where_there_is_room_and_another_takes_its_place() -> None:
    assert move().moved.tolist() == [MOVED]
    assert feasible(two_nodes(), move())


def test_a_move_without_room_is_refused() -> None:
    assert not feasible(two_nodes(elsewhere=1), move())


def test_only_what_runs_is_evicted() -> None:
    assert not feasible(with_tasks(two_nodes(), [MOVED], status=TERMINATING), move(also=False))


def test_a_task_starts_only_where_there_is_room_now() -> None:
    made = statement("allocate", bound=np.array([WAITS]), bound_node=np.array([0]))
    ending = with_tasks(two_nodes(), [MOVED], status=TERMINATING)
    assert [feasible(state, made) for state in (ending, with_tasks(two_nodes(), [MOVED], status=SUCCEEDED))] == [
        False, True,
    ]  # fmt: skip


def test_the_room_of_a_move_is_counted_once() -> None:
    state = two_nodes(elsewhere=4)
    after = carried(state, move(also=False))
    cpu = state.vocabulary.resources.index("cpu")
    assert state.room.future[:, cpu].tolist() == [0, 4]
    assert after.room.future[:, cpu].tolist() == [2, 2]
    assert after.room.idle[:, cpu].tolist() == [0, 4]
    assert (after.counts.ready[0], after.counts.waiting[0], after.counts.pending[0]) == (0, 1, 0)


def test_a_task_that_ends_for_good_or_only_loses_a_promise_is_not_moved() -> None:
    state = two_nodes()
    assert not feasible(with_tasks(state, [MOVED], gone_when_evicted=True), move())
    assert not feasible(state, move(node=NONE))


def test_a_task_that_holds_part_of_a_card_moves_to_a_card_that_has_it() -> None:
    state = two_nodes()
    shapes = replace(state.shapes, on_card=frozen([1] * len(state.shapes), np.int64))
    nodes = replace(state.nodes, cards=frozen([[1, 0], [0, 1]], np.int64))
    on = with_tasks(replace(state, shapes=shapes, nodes=nodes), [MOVED], card=0)
    made = statement(
        "consolidation", evictions=np.array([MOVED]), nominated=np.array([MOVED]), nominated_node=np.array([1]),
        nominated_card=np.array([1]),
    )  # fmt: skip
    assert feasible(on, made)
    assert not feasible(on, replace(made, nominated_card=np.array([0])))
    assert not feasible(on, replace(made, nominated_card=np.array([NONE])))


def test_a_task_that_runs_and_is_not_evicted_is_promised_nothing() -> None:
    made = statement("consolidation", nominated=np.array([MOVED]), nominated_node=np.array([1]))
    assert not feasible(two_nodes(), made)


def test_a_task_does_not_start_beside_a_victim_that_repels_it_but_may_be_promised_its_node() -> None:
    state = placed([2], [Work(0, node=0, labels=(("app", "x"),)), Work(0, constraint=apart(app="x"))])
    victim, newcomer, there = np.array([0]), np.array([1]), np.array([0])
    assert feasible(state, statement("preempt", evictions=victim, nominated=newcomer, nominated_node=there))
    assert not feasible(state, statement("preempt", evictions=victim, bound=newcomer, bound_node=there))


def test_a_moved_task_keeps_its_promise_until_it_starts() -> None:
    state = carried(two_nodes(), move())
    assert (state.tasks.status[MOVED], state.tasks.nominated[MOVED]) == (TERMINATING, 1)
    said = fold(state, Changes(tasks=task_news((MOVED, TERMINATING, NONE, 1))))
    assert said.tasks.nominated[MOVED] == 1
    waits = fold(said, Changes(tasks=task_news((MOVED, REPLACED, NONE, 2))))
    assert (waits.tasks.status[MOVED], waits.tasks.nominated[MOVED], waits.tasks.incarnation[MOVED]) == (PENDING, 1, 1)
    starts = fold(waits, Changes(tasks=task_news((MOVED, RUNNING, 1, 3))))
    assert (starts.tasks.status[MOVED], starts.tasks.node[MOVED], starts.tasks.nominated[MOVED]) == (RUNNING, 1, NONE)


def test_a_move_that_is_taken_back_leaves_no_promise() -> None:
    state = carried(two_nodes(), move())
    back = statement("withdraw", nominated=np.array([MOVED, WAITS]), nominated_node=np.array([NONE, NONE]))
    after = fold(state, Changes(decided=decision_of(back, state, 2, 0.0, spared=frozen([MOVED], np.int64))))
    assert (after.tasks.status[MOVED], after.tasks.nominated[MOVED]) == (RUNNING, NONE)
    assert not after.room.nominated.any()
