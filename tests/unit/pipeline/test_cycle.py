"""A cycle: the policy's actions in order, each on what the one before left."""

from dataclasses import replace

import numpy as np

from pipeline.actions.setup import Setup
from pipeline.cluster.arrays import frozen
from pipeline.cluster.tables import BOUND, CLOSED, PHASE_PENDING, PHASE_RUNNING, TERMINATING
from pipeline.cycle import cycle
from pipeline.decision.decided import carried_out
from tests.support.asking import DEFAULT
from tests.support.builders import Gang, Task, cluster, gang
from tests.support.editing import with_budget, with_groups, with_queues, with_quota, with_tasks
from tests.support.placing import BLOCK, RACK, Work, placed
from tests.support.task_centric import nominated

NODE = {"gpu": 4}


def actions(*names):
    return replace(DEFAULT, actions=names)


def test_statements_follow_the_order_of_the_actions_and_the_snapshot_has_them_all():
    running = [gang(4, 0, gpu=1), gang(3, 1, gpu=1, priority=5)]
    state = cluster([NODE] * 2, [*running, gang(1, gpu=1), gang(1, gpu=4, priority=1)])
    done = cycle(state, actions("allocate", "preempt"), 0.0)
    assert [(made.action, made.preemptor) for made in done.statements] == [("allocate", 2), ("preempt", 3)]
    assert (done.snapshot.tasks.status[done.statements[0].bound] == BOUND).all()


def test_without_actions_nothing_happens():
    state = cluster([NODE], [gang(4, gpu=1)])
    assert cycle(state, actions(), 0.0).statements == ()
    assert cycle(state, actions(), 0.0).snapshot is state


def certain_first(state, policy):
    """How many plans were certain before the cycle ended, and how many there are; the former lead the latter."""
    told = []
    plans = cycle(state, policy, 0.0, Setup(when_certain=told.append)).plans
    assert told == list(plans[: len(told)])
    return len(told), len(plans)


def test_a_plan_is_certain_as_soon_as_it_is_made_unless_a_start_may_yet_be_taken_back():
    wanting = [gang(2, [0, 1], gpu=4), gang(1, gpu=4, priority=1), gang(1, gpu=4, priority=2)]
    full, one_free = cluster([NODE] * 2, wanting), cluster([NODE] * 3, [*wanting, gang(1, gpu=4, priority=3)])
    assert certain_first(full, actions("allocate", "preempt")) == (2, 2)
    assert certain_first(one_free, actions("allocate", "preempt")) == (0, 3)
    keeps_starts = replace(actions("allocate", "preempt"), takes_back_starts=False)
    assert certain_first(one_free, keeps_starts) == (3, 3)


def test_a_plan_that_preempt_may_yet_undo_is_not_certain():
    """One that outranks it found nothing to reclaim, and may want its room; without that one it is certain at once."""
    other, low = gang(1, [0], gpu=4, queue=1), gang(1, gpu=4)

    def certain(*more):
        state = with_quota(cluster([NODE], [other, low, *more]), deserved={0: {"gpu": 4, "cpu": 4000}})
        return certain_first(state, actions("reclaim", "preempt"))

    assert certain() == (1, 1)
    assert certain(gang(1, gpu=5)) == (1, 1)
    assert certain(gang(1, gpu=5, priority=1)) == (0, 1)
    assert certain(gang(1, gpu=5, priority=1, queue=1)) == (1, 1)


def test_a_certain_plan_is_told_before_the_state_after_it_is_worked_out(monkeypatch):
    """The committer judges it meanwhile; after the last plan of a cycle nothing need ask for the state."""
    happened = []

    def working_out(*given):
        happened.append("the state after it")
        return carried_out(*given)

    monkeypatch.setattr("pipeline.actions.progress.carried_out", working_out)
    state = cluster([NODE], [gang(2, 0, gpu=2), gang(1, gpu=4, priority=1)])
    done = cycle(state, actions("preempt"), 0.0, Setup(when_certain=lambda _: happened.append("the plan")))
    assert happened == ["the plan"]
    assert done.snapshot is done.snapshot
    assert happened == ["the plan", "the state after it"]


def test_no_plan_is_certain_before_an_action_that_may_start_tasks():
    state = cluster([NODE], [gang(2, 0, gpu=2), gang(1, gpu=4, priority=1)])
    assert certain_first(state, actions("preempt", "allocate", "reclaim")) == (0, 1)


def test_no_plan_is_certain_while_a_start_is_held_back_perhaps_for_nothing():
    """The first one that waits does not start, for the sake of one that then gets nothing: so it starts after all."""
    running = [gang(1, [0], gpu=1, priority=2), gang(1, [0], gpu=2), gang(1, [1], gpu=2, priority=3)]
    sizes = [(1, 1, 1), (2, 2, 5), (1, 2, 3), (1, 3, 4)]
    waiting = [gang(count, gpu=gpu, priority=priority) for count, gpu, priority in sizes]
    state = cluster([NODE] * 2, [*running, *waiting])
    assert certain_first(state, actions("allocate", "preempt")) == (3, 3)


def test_who_starves_is_served_by_priority():
    """There is room for one of two gangs once the victim has gone."""
    state = cluster([NODE], [gang(2, 0, gpu=2), gang(1, gpu=4, priority=1), gang(1, gpu=4, priority=2)])
    done = cycle(state, actions("preempt"), 0.0)
    assert [made.preemptor for made in done.statements] == [2]
    assert [(why.preemptor, why.reason.name) for why in done.explanations] == [(2, "CHOSEN"), (1, "BOUND")]


def test_no_task_is_evicted_twice_and_what_comes_free_is_promised_once():
    state = cluster([NODE] * 2, [gang(4, [0, 0, 1, 1], gpu=2, minimum=0), *[gang(1, gpu=4, priority=1)] * 3])
    done = cycle(state, actions("preempt"), 0.0)
    victims = [row for made in done.statements for row in made.evictions.tolist()]
    assert sorted(victims) == [0, 1, 2, 3]
    assert (done.snapshot.tasks.status[victims] == TERMINATING).all()
    assert len(done.statements) == 2


def test_budgets_are_used_up_by_all_gangs_of_a_cycle_together():
    state = cluster([NODE] * 2, [gang(2, [0, 1], gpu=4, minimum=0), *[gang(1, gpu=4, priority=1)] * 2])
    done = cycle(with_budget(state, [0, 1], 1), actions("preempt"), 0.0)
    assert sum(len(made.evictions) for made in done.statements) == 1


def test_podgroups_are_admitted_before_they_are_placed():
    state = with_groups(cluster([NODE], [gang(1, gpu=1)]), 0, phase=PHASE_PENDING)
    done = cycle(state, actions("enqueue", "allocate"), 0.0)
    assert [made.action for made in done.statements] == ["enqueue", "allocate"]
    assert done.statements[0].admitted.tolist() == [0]
    assert done.snapshot.podgroups.phase.tolist() == [PHASE_RUNNING]
    assert cycle(state, actions("preempt"), 0.0).statements == ()


def test_a_podgroup_that_its_queue_cannot_take_is_not_admitted():
    state = with_groups(cluster([NODE], [gang(1, gpu=1)]), 0, phase=PHASE_PENDING, min_resources=[-1, -1, -1, 3])
    state = with_quota(state, capability={0: {"gpu": 2}})
    assert cycle(state, actions("enqueue", "allocate"), 0.0).statements == ()


def test_who_names_no_minimum_is_let_in_unasked_and_gets_nothing_where_nothing_is_to_be_had():
    state = with_queues(with_groups(cluster([NODE], [gang(1, gpu=1)]), 0, phase=PHASE_PENDING), state=CLOSED)
    done = cycle(state, actions("enqueue", "allocate"), 0.0)
    assert [made.action for made in done.statements] == ["enqueue"]


def test_promises_are_redeemed_when_the_room_is_there_and_not_before():
    waiting, leaving = gang(2, gpu=2), gang(1, 0, gpu=2, status=TERMINATING)
    state = nominated(cluster([NODE], [waiting, leaving]), {0: 0, 1: 0})
    assert cycle(state, actions("allocate"), 0.0).statements == ()
    gone = with_tasks(state, [2], status=6, node=-1)
    done = cycle(gone, actions("allocate"), 0.0)
    assert done.statements[0].bound.tolist() == [0, 1]


def test_backfill_runs_what_asks_for_nothing_once_its_podgroup_is_ready():
    state = with_tasks(cluster([NODE], [Gang([Task(gpu=1), Task()], 2)]), [1], best_effort=True)
    counting = replace(actions("allocate", "backfill"), best_effort_counts=True)
    assert [made.action for made in cycle(state, counting, 0.0).statements] == ["allocate", "backfill"]
    assert cycle(state, actions("backfill"), 0.0).statements == ()


def test_what_asks_for_nothing_and_belongs_to_a_minimum_starts_with_the_others():
    state = with_tasks(cluster([NODE], [Gang([Task(gpu=1), Task()], 2)]), [1], best_effort=True)
    done = cycle(state, actions("allocate", "backfill"), 0.0)
    assert [(made.action, made.bound.tolist()) for made in done.statements] == [("allocate", [0, 1])]


def test_a_gang_short_of_a_task_without_requests_is_not_half_placed():
    """The one task with a request fits nowhere: its companion, which would fit everywhere, is promised nothing."""
    state = with_tasks(cluster([{"gpu": 1}], [Gang([Task(), Task(gpu=2)], 2)]), [0], best_effort=True)
    assert cycle(state, actions("allocate", "backfill", "preempt"), 0.0).statements == ()


def test_what_asks_for_nothing_keeps_to_its_podgroups_domain():
    """The driver runs in the second block, so the first node is not for its companion."""
    state = placed([1, 4, 4], [Work(0, node=2), Work(0), Work(1, 3, node=2)], racks=(1, 1, 1),
                   groups=[{"required_level": BLOCK}, {}])  # fmt: skip
    state = with_tasks(state, [1], best_effort=True)
    shapes = replace(state.shapes, request=frozen([[0, 0, 1], *state.shapes.request[1:]], np.int64))
    done = cycle(replace(state, shapes=shapes), actions("backfill"), 0.0)
    assert done.statements[0].bound_node.tolist() == [2]


def test_what_the_best_domain_did_not_hold_is_placed_elsewhere_in_the_same_cycle():
    state = placed([2, 1], [Work(0), Work(0), Work(0)], racks=(1, 1), groups=[{"preferred_level": RACK}])
    done = cycle(state, actions("allocate"), 0.0)
    assert sorted(node for made in done.statements for node in made.bound_node.tolist()) == [0, 0, 1]
    assert cycle(done.snapshot, actions("allocate"), 0.0).statements == ()
