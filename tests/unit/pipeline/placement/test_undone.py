"""Which earlier plans a plan makes pointless, and which may yet be made so."""

from dataclasses import replace

import numpy as np

from pipeline.cluster.arrays import NONE
from pipeline.cycle import cycle
from pipeline.decision.plan import Plan
from pipeline.decision.statement import statement
from pipeline.placement.undone import may_be_undone, undone
from tests.support.asking import DEFAULT
from tests.support.builders import cluster, gang
from tests.support.editing import with_quota

#: One node, full of work of queue 1; of queue 0 wait two podgroups, the second more important and too large.
STATE = with_quota(
    cluster([{"gpu": 4}], [gang(1, [0], gpu=4, queue=1), gang(1, gpu=4), gang(1, gpu=5, priority=1)]),
    deserved={0: {"gpu": 4, "cpu": 4000}},
)
DONE = cycle(STATE, replace(DEFAULT, actions=("reclaim",)), 0.0)
(PLAN,) = DONE.plans


def taking(*promised: int) -> Plan:
    """A plan for the more important podgroup that withdraws promises."""
    rows = np.array(promised, np.int64)
    made = statement("preempt", 2, nominated=rows, nominated_node=np.full(len(rows), NONE))
    return replace(PLAN, statement=made)


def test_a_plan_whose_promise_another_withdraws_is_undone() -> None:
    assert undone(DONE.snapshot, [PLAN], taking(1)).tolist() == [1]
    assert undone(DONE.snapshot, [PLAN], taking()).tolist() == []
    assert undone(DONE.snapshot, [], taking(1)).tolist() == []


def test_only_a_more_important_podgroup_of_the_same_queue_may_undo_a_plan() -> None:
    assert may_be_undone(STATE, PLAN, [(2,)])
    assert not may_be_undone(STATE, PLAN, [(1,), (0,)])
    assert not may_be_undone(STATE, PLAN, [])
    assert not may_be_undone(
        STATE, replace(PLAN, statement=replace(PLAN.statement, evictions=np.zeros(0, int))), [(2,)]
    )


def test_a_gang_group_may_lose_what_its_least_important_podgroup_was_promised() -> None:
    """Its first podgroup is as important as the one that asks, the second is less so."""
    gangs, groups = np.array([NONE, 0, 1, NONE], np.int32), np.array([NONE, 0, 0, NONE], np.int32)
    state = cluster([{"gpu": 4}], [gang(1, [0]), gang(1, priority=1), gang(1), gang(1, priority=1)])
    listed = replace(state.vocabulary, gangs=("a", "b"), gang_groups=((0, 1),))
    together = replace(
        state, vocabulary=listed, podgroups=replace(state.podgroups, gang=gangs, gang_group=groups, queue=groups * 0)
    )
    plan = replace(PLAN, statement=replace(PLAN.statement, preemptor=1))
    assert may_be_undone(together, plan, [(3,)])
    assert not may_be_undone(state, plan, [(3,)])
