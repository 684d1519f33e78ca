"""Judge: statements that serve no preemptor (clearing, consolidation), and those that move tasks."""

from dataclasses import replace

import numpy as np
import pytest

from pipeline.cluster.arrays import NONE
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import GONE, PENDING
from pipeline.decision.attempt import Attempt
from pipeline.decision.explanation import Explanation, Reason
from pipeline.decision.plan import Plan, plan_of
from pipeline.decision.price import NO_VICTIMS
from pipeline.decision.statement import Statement, statement
from pipeline.decision.verdict import Accepted, Conflict, Stale, Verdict
from pipeline.judge import judge
from pipeline.policy import Purpose
from tests.support.asking import DEFAULT
from tests.support.builders import Gang, Task, cluster, gang
from tests.support.editing import with_budget, with_tasks


def planned(state: Snapshot, made: Statement) -> Plan:
    """A plan of somebody's, made on a state."""
    attempt = Attempt(state, DEFAULT, made.purpose, (), None, 0.0, made.action)
    why = Explanation(Purpose.ALLOCATE.value, made.preemptor, 0, Reason.CHOSEN)  # judge never asks the explanation
    return plan_of(attempt, made, NO_VICTIMS, why)


def judged(plan: Plan, state: Snapshot) -> Verdict:
    return judge(plan, replace(state, revision=state.revision + 1), DEFAULT, 0.0)


def accepted(verdict: Verdict) -> Statement:
    assert isinstance(verdict, Accepted), verdict
    return verdict.statement


def why(verdict: Verdict) -> str:
    assert isinstance(verdict, Stale | Conflict), verdict
    return verdict.reason


# -- clearing ----------------------------------------------------------------------------------------------------------


def broken() -> Snapshot:
    """Two tasks of a gang of four run, the other two have failed; another gang is whole."""
    lost = [Task(0, gpu=1), Task(0, gpu=1), Task(gpu=1, status=GONE), Task(gpu=1, status=GONE)]
    return cluster([{"gpu": 4}], [Gang(lost, 4), gang(2, 0, gpu=1)])


def clearing(*rows: int) -> Statement:
    return statement("stalegangeviction", purpose=Purpose.CLEAR, evictions=np.array(rows))


def test_what_is_left_of_a_broken_gang_is_cleared_as_a_whole() -> None:
    state = broken()
    assert accepted(judged(planned(state, clearing(0, 1)), state)).evictions.tolist() == [0, 1]


def test_a_gang_that_has_its_minimum_is_not_cleared() -> None:
    state = broken()
    assert why(judged(planned(state, clearing(4, 5)), state)) == "a gang has its minimum again"


def test_protected_tasks_are_not_cleared() -> None:
    state = broken()
    plan = planned(state, clearing(0, 1))
    assert "may not be evicted" in why(judged(plan, with_tasks(state, [1], critical=True)))
    assert "not lawful together" in why(judged(plan, with_budget(state, [0, 1], 1)))


def test_what_may_not_be_preempted_is_cleared_for_its_own_sake() -> None:
    state = broken()
    fixed = with_tasks(state, [0, 1], preemptible=False)
    assert accepted(judged(planned(state, clearing(0, 1)), fixed)).evictions.tolist() == [0, 1]


def test_of_a_gang_that_ended_meanwhile_nothing_is_left_to_clear() -> None:
    state = broken()
    plan = planned(state, clearing(0, 1))
    assert accepted(judged(plan, with_tasks(state, [0], status=GONE, node=NONE))).evictions.tolist() == [1]
    assert why(judged(plan, with_tasks(state, [0, 1], status=GONE, node=NONE))) == "nothing is left to do"
    again = with_tasks(state, [0, 1], incarnation=1)
    assert why(judged(plan, again)) == "nothing is left to do"


@pytest.mark.parametrize("purpose", [Purpose.ALLOCATE, Purpose.PREEMPT, Purpose.RECLAIM])
def test_a_statement_without_a_preemptor_evicts_under_no_other_purpose(purpose: Purpose) -> None:
    state = broken()
    plan = planned(state, replace(clearing(0, 1), purpose=purpose))
    assert why(judged(plan, state)) == "no task may be evicted for it"


# -- consolidation -----------------------------------------------------------------------------------------------------


def scattered() -> Snapshot:
    """A task on each of two nodes of two; a third task waits that needs a whole node."""
    return cluster([{"gpu": 2}] * 2, [gang(1, 0, gpu=1), gang(1, 1, gpu=1), gang(1, gpu=2, priority=1)])


def consolidating(places: dict[int, int], preemptor: int = 2, evicted: tuple[int, ...] = (0,)) -> Statement:
    return statement(
        "consolidation", preemptor, purpose=Purpose.CONSOLIDATE, evictions=np.array(evicted),
        nominated=np.array(list(places)), nominated_node=np.array(list(places.values())),
    )  # fmt: skip


def test_a_move_that_makes_room_for_another_task_is_accepted_as_it_is() -> None:
    state = scattered()
    made = consolidating({0: 1, 2: 0})
    done = accepted(judged(planned(state, made), state))
    assert (done.evictions.tolist(), done.nominated.tolist(), done.nominated_node.tolist()) == ([0], [0, 2], [1, 0])


def test_a_move_for_no_preemptor_is_judged_as_well() -> None:
    state = scattered()
    plan = planned(state, consolidating({0: 1}, preemptor=NONE))
    assert accepted(judged(plan, state)).moved.tolist() == [0]
    assert "may not be evicted" in why(judged(plan, with_tasks(state, [0], preemptible=False)))


def test_a_moved_task_without_room_is_refused() -> None:
    state = cluster([{"gpu": 2}] * 2, [gang(1, 0, gpu=1), gang(1, 1, gpu=1), gang(1, gpu=2), gang(1, gpu=1)])
    plan = planned(state, consolidating({0: 1, 2: 0}))
    assert accepted(judged(plan, state)).moved.tolist() == [0]
    taken = with_tasks(state, [3], nominated=1)  # another statement was first
    assert why(judged(plan, taken)) == "the room was promised to another"


def test_consolidation_takes_no_task_that_is_left_without_a_place() -> None:
    state = scattered()
    assert why(judged(planned(state, consolidating({2: 0})), state)) == "a task would be left without a place"


def test_a_task_that_ended_before_it_moved_is_promised_nothing() -> None:
    state = scattered()
    gone = with_tasks(state, [0], status=PENDING, node=NONE, incarnation=1)
    done = accepted(judged(planned(state, consolidating({0: 1, 2: 0})), gone))
    assert (done.evictions.tolist(), done.nominated.tolist()) == ([], [2])
