"""Judge: may every task be where a statement puts it, as things stand by now? Also where nobody is evicted."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from actors.cli.simulate import open_case
from pipeline.cluster.arrays import NONE, frozen
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import CLOSED, RUNNING
from pipeline.cluster.vocabulary import HOSTNAME, AntiAffinity, Constraint, Requirement
from pipeline.cycle import cycle
from pipeline.decision.attempt import Attempt
from pipeline.decision.plan import Plan, plan_without_search
from pipeline.decision.statement import Statement, statement
from pipeline.decision.verdict import Accepted, Conflict, Stale, Verdict
from pipeline.judge import judge
from pipeline.policy import Purpose
from tests.support.asking import DEFAULT, plan, victims
from tests.support.builders import cluster, gang
from tests.support.editing import with_queues, with_tasks
from tests.support.small_clusters import REST, podgroup, world
from tests.support.task_centric import nominated

REPELLED = Conflict("the room was promised to another")
MISPLACED = Stale("a task may not be where it was placed any more")
NODE = {"gpu": 2}
PROMISED = {"nominated_node": "n"}


def repelling(state: Snapshot, rows: list[int]) -> Snapshot:
    """Tasks (rows) that repel each other, whichever node they share."""
    label = ("app", "x")
    vocabulary = replace(
        state.vocabulary,
        constraints=(*state.vocabulary.constraints, Constraint(anti_affinity=(AntiAffinity(HOSTNAME, (label,)),))),
        label_sets=(*state.vocabulary.label_sets, (label,)),
    )
    shapes, shape = state.shapes, state.tasks.shape.copy()
    shape[rows] += len(shapes)
    terms = np.full(len(shapes), len(vocabulary.constraints) - 1)
    columns = {
        "request": np.concatenate([shapes.request] * 2),
        "constraint": np.concatenate([shapes.constraint, terms]),
        "on_card": np.concatenate([shapes.on_card] * 2),
    }
    doubled = {name: frozen(column, getattr(shapes, name).dtype) for name, column in columns.items()}
    tasks = replace(
        with_tasks(state, rows, label_set=len(vocabulary.label_sets) - 1).tasks, shape=frozen(shape, np.int32)
    )
    return replace(state, vocabulary=vocabulary, shapes=replace(shapes, **doubled), tasks=tasks)


def binding(places: dict[int, int]) -> Statement:
    """The tasks of podgroup 0 start."""
    return statement("allocate", 0, bound=np.array(list(places)), bound_node=np.array(list(places.values())))


def promising(places: dict[int, int]) -> Statement:
    """The tasks of podgroup 0 are promised nodes."""
    return statement("allocate", 0, nominated=np.array(list(places)), nominated_node=np.array(list(places.values())))


BOTH = pytest.mark.parametrize("placing", [binding, promising])


def planned(state: Snapshot, made: Statement) -> Plan:
    return plan_without_search(Attempt(state, DEFAULT, made.purpose, (0,), None, 0.0, made.action), made)


def judged(made: Plan, state: Snapshot) -> Verdict:
    return judge(made, replace(state, revision=state.revision + 1), DEFAULT, 0.0)


def accepted(verdict: Verdict) -> Statement:
    assert isinstance(verdict, Accepted), verdict
    return verdict.statement


@BOTH
def test_no_task_is_put_beside_a_task_that_it_repels(placing) -> None:
    state = repelling(cluster([NODE] * 2, [gang(1, gpu=1), gang(1, gpu=1)]), [0, 1])
    made = planned(state, placing({0: 0}))
    accepted(judged(made, state))
    accepted(judged(made, with_tasks(state, [1], status=RUNNING, node=1)))
    assert judged(made, with_tasks(state, [1], status=RUNNING, node=0)) == REPELLED
    assert judged(made, nominated(state, {1: 0})) == REPELLED


@BOTH
def test_no_two_tasks_of_a_statement_are_put_where_they_repel_each_other(placing) -> None:
    state = repelling(cluster([NODE] * 2, [gang(2, gpu=1)]), [0, 1])
    accepted(judged(planned(state, placing({0: 0, 1: 1})), state))
    assert judged(planned(state, placing({0: 0, 1: 0})), state) == REPELLED


@BOTH
def test_no_task_is_put_on_a_node_that_was_cordoned_since(placing) -> None:
    state = cluster([NODE] * 2, [gang(1, gpu=1)])
    made = planned(state, placing({0: 0}))
    cordoned = replace(state, nodes=replace(state.nodes, schedulable=frozen([False, True], bool)))
    assert judged(made, cordoned) == Stale("a node takes no tasks any more")


@BOTH
def test_no_task_is_put_on_a_node_that_its_shape_may_not_use_any_more(placing) -> None:
    state = cluster([NODE] * 2, [gang(1, gpu=1)])
    made = planned(state, placing({0: 0}))
    wants = replace(state.vocabulary, constraints=(Constraint(node_selector=(Requirement("zone", "In", ("a",)),)),))
    assert judged(made, replace(state, vocabulary=wants)) == MISPLACED


@BOTH
def test_a_gang_is_not_torn_across_two_racks(placing) -> None:
    state = cluster([NODE] * 2, [gang(2, gpu=1, required_level=0)], racks=(1, 1))
    accepted(judged(planned(state, placing({0: 1, 1: 1})), state))
    assert judged(planned(state, placing({0: 0, 1: 1})), state) == MISPLACED


@BOTH
def test_no_task_joins_a_gang_that_runs_in_another_rack_by_now(placing) -> None:
    state = cluster([NODE] * 2, [gang(2, gpu=1, minimum=1, required_level=0)], racks=(1, 1))
    made = planned(state, placing({0: 0}))
    accepted(judged(made, with_tasks(state, [1], status=RUNNING, node=0)))
    assert judged(made, with_tasks(state, [1], status=RUNNING, node=1)) == MISPLACED


@BOTH
def test_a_closed_queue_takes_nothing(placing) -> None:
    state = cluster([NODE], [gang(1, gpu=1)])
    made = planned(state, placing({0: 0}))
    accepted(judged(made, state))
    assert judged(made, with_queues(state, state=[CLOSED, CLOSED])) == Stale("the queue may not take more")


def test_a_promise_is_not_redeemed_over_a_closed_queue() -> None:
    state = nominated(cluster([NODE], [gang(1, gpu=1)]), {0: 0})
    made = planned(state, binding({0: 0}))
    assert accepted(judge(made, state, DEFAULT, 0.0)).bound.tolist() == [0]
    closed = with_queues(state, state=[CLOSED, CLOSED])
    assert judge(made, closed, DEFAULT, 0.0) == Stale("the queue may not take more")


def test_a_promise_can_be_moved_until_another_decision_has_moved_it() -> None:
    """As the second plan of a cycle it was a conflict with the promise that it replaces."""
    state = nominated(cluster([NODE] * 3, [gang(1, gpu=1)]), {0: 0})
    made = planned(state, promising({0: 1}))
    assert accepted(judged(made, state)).nominated_node.tolist() == [1]
    elsewhere = nominated(state, {0: 2})
    assert judged(made, elsewhere) == Conflict("a task of the gang holds another nomination by now")


def test_promises_of_a_gang_group_are_redeemed_though_one_of_them_takes_what_the_other_queue_would_share() -> None:
    """Under `koordinator` what a queue without a quota is promised is not shared: `bound` would have 2 of 8, not 4."""
    list_of = {"gang_group": ["default/first", "default/second"], "priority": 5}
    groups = [
        podgroup("runs", [{"cpu": 3}], "n", queue="bound"),
        podgroup("first", [{"cpu": 1}], of_each=PROMISED, queue="bound", **list_of),
        podgroup("second", [{"cpu": 4}], of_each=PROMISED, queue="free", **list_of),
        podgroup("more", [{"cpu": 4}], queue="free"),
    ]
    queues = {"free": {}, "bound": {"deserved": {"cpu": 0}, "weight": 1}}
    assert len(_redeemed(world({"n": {"cpu": 8}}, queues, groups, profile="koordinator")).bound) == 2


def _redeemed(document: dict[str, Any]) -> Statement:
    """The first plan of a cycle, which is accepted."""
    case = open_case(document)
    made, *_ = cycle(case.snapshot, case.policy, case.now).plans
    assert isinstance(judge(made, case.snapshot, case.policy, case.now), Accepted)
    return made.statement


QUOTAS = {
    "the limit of the queue": {"a": {"capability": {"cpu": 3}}},
    "what a queue without a quota leaves to share": {"a": {"deserved": {"cpu": 0}}, "b": {}},
    "the node": {"a": {}},
}


@pytest.mark.parametrize("short", QUOTAS)
def test_a_promise_is_redeemed_though_later_ones_take_more_than_is_left_of_what_is_short(short: str) -> None:
    queues, cpu = QUOTAS[short], 3 if short == "the node" else 5
    last = list(queues)[-1]
    whose = {"first": {"queue": "a", "priority": 5}, "last": {"queue": last}, "more": {"queue": last}}
    groups = [podgroup(name, [{"cpu": 2}], of_each=PROMISED, **said) for name, said in whose.items()]
    made = _redeemed(world({"n": {"cpu": cpu}}, queues, groups, profile="koordinator"))
    assert (made.preemptor, len(made.bound)) == (0, 1)


def test_a_victim_that_repels_the_preemptor_does_not_return() -> None:
    """With more room nobody would have to go, but the two would stand side by side."""
    state = repelling(cluster([{"gpu": 1}], [gang(1, 0, gpu=1, minimum=0), gang(1, gpu=1, priority=1)]), [0, 1])
    made = plan(state, 1)
    assert victims(made) == [0]
    larger = replace(state, nodes=replace(state.nodes, allocatable=state.nodes.allocatable * 4))
    assert accepted(judged(made, larger)).evictions.tolist() == [0]


# -- moves -------------------------------------------------------------------------------------------------------------


def moving(state: Snapshot) -> Plan:
    """Task 0 goes to node 1, for task 1 that is promised node 0."""
    made = statement(
        "preempt", 1, purpose=Purpose.PREEMPT,
        evictions=np.array([0]), nominated=np.array([0, 1]), nominated_node=np.array([1, 0]),
    )  # fmt: skip
    return planned(state, made)


def full() -> Snapshot:
    return cluster([{"gpu": 1}] * 2, [gang(1, 0, gpu=1), gang(1, gpu=1, priority=1), gang(1, gpu=1)])


def test_a_task_that_moves_is_not_moved_beside_one_that_it_repels() -> None:
    state = full()
    assert accepted(judged(moving(state), state)).moved.tolist() == [0]
    wide = replace(state, nodes=replace(state.nodes, allocatable=state.nodes.allocatable * 2))
    there = with_tasks(repelling(wide, [0, 2]), [2], status=RUNNING, node=1)
    assert judged(moving(there), there) == REPELLED


def test_a_task_that_need_not_move_any_more_stays() -> None:
    state = full()
    larger = replace(state, nodes=replace(state.nodes, allocatable=state.nodes.allocatable * 2))
    done = accepted(judged(moving(state), larger))
    assert (done.evictions.tolist(), done.nominated.tolist(), done.nominated_node.tolist()) == ([], [1], [0])
    assert NONE not in done.nominated_node


def test_of_a_gang_that_loses_the_promise_of_a_move_no_task_returns() -> None:
    """The room that was promised to the task that moves would be enough; but without it the others run for nothing."""
    low = podgroup("low", [{"gpu": 1}] * 3, ["n0", "n0", "n1"], queue="a", priority=1, min_available=3)
    low["tasks"][2] |= {"status": "Terminating", "nominated_node": "n0"}
    waits = [podgroup(name, [{"gpu": 1}], queue="b", priority=9) for name in ("comes", "high")]
    waits[0]["tasks"][0] |= {"nominated_node": "n1"}
    queues = {"a": {"deserved": {"gpu": 0, **REST}}, "b": {"deserved": {"gpu": 4, **REST}}}
    nodes = {"n0": {"gpu": 3}, "n1": {"gpu": 1}}
    case = open_case(world(nodes, queues, [low, *waits], profile="kai", actions=["reclaim"]))
    (made,) = cycle(case.snapshot, case.policy, case.now).plans
    assert (made.statement.evictions.tolist(), made.statement.withdrawn.tolist()) == ([0, 1], [2])
    verdict = judge(made, case.snapshot, case.policy, case.now)
    assert isinstance(verdict, Accepted)
    assert verdict.dropped == 0
