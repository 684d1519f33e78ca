"""One task's preemption by simulation, as in "Preempt Action Support Topology"."""

from dataclasses import replace

import numpy as np

from pipeline.cluster.arrays import NONE, frozen
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.vocabulary import AntiAffinity, Constraint
from pipeline.solvers.tasks.sweeping.one_node import stands, still_needed
from tests.support.builders import Gang, Task, cluster, gang
from tests.support.editing import with_budget, with_queues, with_tasks
from tests.support.task_centric import nominated, on_node, policy, preempted, promised, victims

SIMULATED = policy(("priority", "gang", "conformance", "predicates", "capacity"), topology_aware=True)


def test_who_returns_holds_what_it_held_so_that_a_needed_victim_stays_needed() -> None:
    state = cluster([{"cpu": 8}], [gang(2, 0, cpu=4, minimum=0), gang(1, cpu=8, priority=1)])
    node = on_node(state, SIMULATED, 2)
    for asked in (node, node.case):
        assert stands(asked, np.array([0, 1]))
        assert not stands(asked, np.array([0]))
        assert not stands(asked, np.array([1]))
        assert still_needed(asked, np.array([0, 1]), np.array([1, 0])).tolist() == [0, 1]


def test_the_most_important_returns_first() -> None:
    tasks = [Task(0, cpu=2, priority=3), Task(0, cpu=2, priority=1), Task(0, cpu=2, priority=2)]
    state = cluster([{"cpu": 6}], [Gang(tasks, 0), gang(1, cpu=2, priority=9)])
    assert victims(preempted(state, SIMULATED)) == [1]


def test_the_most_important_task_returns_first_also_from_the_less_important_podgroup() -> None:
    low = [Gang([Task(0, cpu=2, priority=of)], 0, priority=podgroup) for podgroup, of in ((1, 5), (2, 3))]
    state = cluster([{"cpu": 4}], [*low, gang(1, cpu=2, priority=9)])
    assert victims(preempted(state, SIMULATED)) == [1]


def test_who_would_overdraw_a_budget_returns_before_the_more_important() -> None:
    tasks = [Task(0, cpu=2, priority=3), Task(0, cpu=2, priority=1)]
    state = with_budget(cluster([{"cpu": 4}], [Gang(tasks, 0), gang(1, cpu=2, priority=9)]), [1], 0)
    assert victims(preempted(state, SIMULATED)) == [0]


def test_nodes_are_compared_by_budgets_then_priority_then_their_sum_then_number_then_start_then_row() -> None:
    def choice(*nodes: list[Task], budget: list[int] | None = None) -> int:
        low = [replace(task, node=at) for at, tasks in enumerate(nodes) for task in tasks]
        state = cluster([{"cpu": 2}] * len(nodes), [Gang(low, 0), gang(1, cpu=2, priority=99)])
        state = state if budget is None else with_budget(state, budget, 0)
        return promised(preempted(state, SIMULATED))[len(low)]

    def one(priority: int, created: float = 0.0) -> Task:
        return Task(cpu=2, priority=priority, created=created)

    def half(priority: int) -> Task:
        return Task(cpu=1, priority=priority)

    assert choice([one(1)], [one(5)], budget=[0]) == 1
    assert choice([one(5)], [one(1)]) == 1
    assert choice([half(5), half(4)], [half(5), half(3)]) == 1
    assert choice([half(5), half(0)], [one(5)]) == 1
    assert choice([one(5, created=1.0)], [one(5, created=2.0)]) == 1
    assert choice([one(5)], [one(5)]) == 0


def test_a_nomination_of_less_important_work_of_the_queue_is_withdrawn() -> None:
    state = cluster([{"cpu": 2}], [gang(1, cpu=2, minimum=1, priority=1), gang(1, cpu=2, priority=9)])
    made = preempted(nominated(state, {0: 0}), SIMULATED)
    assert promised(made) == {0: NONE, 1: 0}
    assert victims(made) == []
    assert not preempted(nominated(state, {0: 0})).statements  # without a simulation promises are kept


def test_nominations_of_other_queues_and_of_more_important_work_are_kept() -> None:
    other = cluster([{"cpu": 2}], [gang(1, cpu=2, priority=1, queue=1), gang(1, cpu=2, priority=9)])
    higher = cluster([{"cpu": 2}], [gang(1, cpu=2, priority=10), gang(1, cpu=2, priority=9)])
    assert not preempted(nominated(other, {0: 0}), SIMULATED).statements
    assert not preempted(nominated(higher, {0: 0}), SIMULATED).statements


def test_room_promised_to_more_important_work_is_not_counted_on() -> None:
    gangs = [gang(1, 0, cpu=2, minimum=0), gang(1, cpu=2, priority=10), gang(1, cpu=2, priority=9)]
    state = nominated(cluster([{"cpu": 4}], gangs), {1: 0})
    assert victims(preempted(state, SIMULATED)) == [0]
    tight = nominated(cluster([{"cpu": 3}], gangs), {1: 0})
    assert not preempted(tight, SIMULATED).statements


def repelling(state: Snapshot, rows: list[int]) -> Snapshot:
    """The snapshot in which tasks share a label that they keep others of away from their node by."""
    term = AntiAffinity("kubernetes.io/hostname", (("app", "x"),))
    vocabulary = replace(
        state.vocabulary,
        label_sets=((), (("app", "x"),)),
        constraints=(*state.vocabulary.constraints, Constraint(anti_affinity=(term,))),
    )
    shapes = replace(
        state.shapes,
        request=frozen(np.tile(state.shapes.request, (2, 1)), np.int64),
        constraint=frozen(np.repeat([0, 1], len(state.shapes)), np.int32),
        on_card=frozen(np.tile(state.shapes.on_card, 2), np.int64),
    )
    made = with_tasks(state, rows, shape=state.tasks.shape[rows] + len(state.shapes), label_set=1)
    return replace(made, vocabulary=vocabulary, shapes=shapes)


def test_who_repels_the_task_goes_and_who_merely_lies_there_returns() -> None:
    low = Gang([Task(0, cpu=1, priority=2), Task(0, cpu=1, priority=1)], 0)
    state = repelling(cluster([{"cpu": 2}], [low, gang(1, cpu=1, priority=9)]), [0, 2])
    assert victims(preempted(state, SIMULATED)) == [0]
    assert victims(preempted(state)) == [0]


def test_a_full_queue_is_simulated_too() -> None:
    state = cluster([{"cpu": 9}], [gang(2, 0, cpu=2, minimum=0), gang(1, cpu=1, priority=1)])
    assert len(victims(preempted(with_queues(state, capability=4), SIMULATED))) == 1
