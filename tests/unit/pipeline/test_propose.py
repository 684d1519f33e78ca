"""Propose: who may ask, what is taken for whom, and what is said about it."""

from dataclasses import replace

import numpy as np
import pytest

from pipeline.cluster.arrays import NONE
from pipeline.cluster.tables import TERMINATING
from pipeline.cluster.vocabulary import Constraint, Requirement
from pipeline.decision.explanation import Reason
from pipeline.policy import Purpose
from pipeline.solvers.registry import SOLVERS
from tests.support.asking import VOLCANO, asked, places, plan, refusal, victims
from tests.support.builders import Gang, Task, cluster, gang
from tests.support.editing import with_groups, with_parents, with_queues, with_quota, with_tasks
from tests.support.placing import RACK, Work, apart, placed

NODE = {"gpu": 4}


def full(*gangs, nodes=2, **said):
    """So many nodes of four devices; the last gang waits."""
    return cluster([NODE] * nodes, list(gangs), **said)


def crowded(**said):
    """One node that a gang of two fills, and a more important gang of two that waits."""
    return full(gang(2, 0, gpu=2), gang(2, gpu=2, priority=1, **said), nodes=1)


def test_a_mistake_of_the_solver_costs_the_plan(monkeypatch):
    """It places both tasks on a node of which the victims free nothing."""
    state = full(gang(2, 0, gpu=2), gang(2, 1, gpu=2, priority=9), gang(2, gpu=2, priority=1))
    right = plan(state, 2)
    made = replace(right.statement, nominated_node=np.ones(2, np.int64))
    monkeypatch.setattr(SOLVERS["bundles"], "propose", lambda *_: replace(right, statement=made))
    why = asked(state, 2).explanation
    assert (why.reason, why.domain, why.bundles) == (Reason.UNPLACEABLE, NONE, ())


# -- who may not ask ---------------------------------------------------------------------------------------------------


def test_a_podgroup_that_may_not_preempt_evicts_nothing():
    assert refusal(with_groups(crowded(), 1, may_preempt=False), 1) == "NEVER"


def test_a_gang_with_one_task_that_may_not_preempt_evicts_nothing():
    assert refusal(with_tasks(crowded(), [3], may_preempt=False), 1) == "NEVER"


def test_a_podgroup_waits_for_its_delay_before_it_evicts():
    state = with_groups(crowded(), 1, created=100.0, preemption_delay_s=50.0)
    assert refusal(state, 1, now=149.0) == "DELAY"
    assert victims(plan(state, 1, now=150.0)) == [0, 1]


@pytest.mark.parametrize("now", [0.0, 99.0, 100.0])
def test_a_podgroup_without_a_delay_evicts_though_the_clock_that_says_its_age_is_ahead(now):
    """A file without a clock of its own begins at 0, and another machine's clock may be ahead of ours."""
    state = with_groups(crowded(), 1, created=100.0)
    assert victims(plan(state, 1, now=now)) == [0, 1]
    assert refusal(with_groups(state, 1, preemption_delay_s=1.0), 1, now=now) == "DELAY"


def test_a_podgroup_that_has_its_minimum_evicts_nothing():
    state = full(gang(1, 0, gpu=4), Gang([Task(1, gpu=4), Task(gpu=4)], 1, priority=1))
    assert refusal(state, 1) == "NOTHING_MISSING"


def test_a_podgroup_with_too_few_tasks_for_its_minimum_evicts_nothing():
    assert refusal(crowded(minimum=3), 1) == "TOO_FEW_TASKS"


@pytest.mark.parametrize("purpose", [Purpose.PREEMPT, Purpose.RECLAIM])
def test_a_gang_group_in_several_queues_evicts_nothing(purpose):
    """Its first podgroup's queue would take victims for the other one, and be charged for it."""
    state = full(gang(2, 0, gpu=2), gang(1, gpu=2, priority=1), gang(1, gpu=2, priority=1, queue=1), nodes=1)
    assert refusal(state, (1, 2), purpose) == "SEVERAL_QUEUES"


def test_a_podgroup_without_a_domain_for_it_evicts_nothing():
    state = full(gang(2, [0, 1], gpu=4), Gang([Task(1, gpu=1), Task(2, gpu=1), *[Task(gpu=4)] * 2], 4, priority=1,
                 required_level=0), nodes=3, racks=(2, 1))  # fmt: skip
    assert refusal(state, 1) == "NO_DOMAIN"


def test_an_empty_list_of_domains_is_no_domain():
    assert refusal(crowded(), 1, domains=[]) == "NO_DOMAIN"


def test_a_queue_that_would_get_more_than_it_deserves_reclaims_nothing():
    state = with_quota(crowded(queue=1), deserved={1: {"gpu": 3}})
    assert refusal(state, 1, Purpose.RECLAIM) == "QUOTA"
    assert victims(plan(with_quota(state, deserved={1: {"gpu": 4}}), 1, Purpose.RECLAIM)) == [0, 1]


def test_a_queue_at_its_ceiling_makes_room_within_itself():
    state = full(gang(2, 0, gpu=2), gang(1, gpu=2, priority=1))
    state = with_quota(state, capability={0: {"gpu": 4}})
    made = plan(state, 1)
    assert victims(made) == [0, 1]
    assert made.price.victims == 2


def test_a_queue_whose_ceiling_no_eviction_lowers_evicts_nothing():
    state = with_quota(crowded(), capability={0: {"gpu": 3}})
    assert refusal(state, 1) == "QUOTA"


# -- who is taken ------------------------------------------------------------------------------------------------------


def test_room_that_is_idle_or_coming_free_is_used_before_any_task_goes():
    state = full(gang(1, 0, gpu=4), gang(1, 1, gpu=4, status=TERMINATING), gang(1, gpu=4, priority=1))
    made = plan(state, 2)
    assert victims(made) == []
    assert places(made) == {2: 1}
    assert (made.price.victims, made.price.gangs_broken, made.price.lost_work) == (0, 0, 0.0)


@pytest.mark.parametrize("priority", [1, 2])
def test_preempt_spares_equal_and_higher_priority(priority):
    assert refusal(full(gang(2, 0, gpu=2, priority=priority), gang(2, gpu=2, priority=1), nodes=1), 1) == "BOUND"


def test_preempt_spares_other_queues():
    assert refusal(full(gang(2, 0, gpu=2, queue=1), gang(2, gpu=2, priority=1), nodes=1), 1) == "BOUND"


def test_reclaim_spares_its_own_queue_and_those_that_forbid_it():
    own = with_quota(crowded(), deserved={0: {"gpu": 8}})
    assert refusal(own, 1, Purpose.RECLAIM) == "BOUND"
    other = with_quota(crowded(queue=1), deserved={1: {"gpu": 8}})
    assert refusal(with_queues(other, reclaimable=[False, True]), 1, Purpose.RECLAIM) == "BOUND"


def test_reclaim_does_not_look_at_priority():
    state = full(gang(2, 0, gpu=2, priority=5), gang(2, gpu=2, queue=1), nodes=1)
    assert victims(plan(with_quota(state, deserved={1: {"gpu": 4}}), 1, Purpose.RECLAIM)) == [0, 1]


def test_reclaim_leaves_the_other_queue_what_it_deserves():
    state = full(gang(4, [0, 0, 1, 1], gpu=2, minimum=0), gang(2, gpu=2, queue=1))
    state = with_quota(state, deserved={0: {"gpu": 4}, 1: {"gpu": 4}})
    assert len(victims(plan(state, 1, Purpose.RECLAIM))) == 2
    assert refusal(with_quota(state, deserved={0: {"gpu": 5}}), 1, Purpose.RECLAIM) == "VETOED"


def test_a_tree_of_queues_is_charged_up_to_where_it_parts():
    """Queue 1 holds more than it deserves, but its parent 0 does not: nobody outside may take from it."""
    state = full(gang(4, [0, 0, 1, 1], gpu=2, minimum=0, queue=1), gang(2, gpu=2, queue=2), queues=3)
    state = with_quota(with_parents(state, NONE, 0, NONE), deserved={0: {"gpu": 8}, 1: {"gpu": 2}, 2: {"gpu": 4}})
    assert refusal(state, 1, Purpose.RECLAIM) == "VETOED"
    inside = with_parents(state, NONE, 0, 0)
    assert len(victims(plan(inside, 1, Purpose.RECLAIM))) == 2


def test_surplus_goes_before_a_gang_is_broken():
    state = full(gang(1, 0, gpu=4), gang(2, [1, 1], gpu=2, minimum=0, priority=1), gang(1, gpu=4, priority=2))
    made = plan(state, 2)
    assert victims(made) == [1, 2]
    assert [bundle.safe for bundle in made.explanation.bundles] == [True]


def test_by_default_a_broken_gang_goes_everywhere_and_in_volcano_where_room_is_needed():
    state = cluster([NODE] * 2, [gang(2, [0, 1], gpu=4), gang(1, gpu=4, priority=1, required_level=0)], racks=(1, 1))
    assert victims(plan(state, 1)) == [0, 1]
    assert len(victims(plan(state, 1, policy=VOLCANO))) == 1


def test_a_gang_goes_nowhere_if_one_of_its_members_is_protected():
    state = cluster([NODE] * 2, [
        Gang([Task(0, gpu=4), Task(1, gpu=4, preemptible=False)], 2), gang(1, gpu=4, priority=1, required_level=0)
    ], racks=(1, 1))  # fmt: skip
    assert refusal(state, 1) == "NO_CANDIDATES"


# -- where it goes -----------------------------------------------------------------------------------------------------


def test_the_cheapest_domain_wins():
    """Rack 1 breaks a gang of four, rack 2 one of one, rack 3 is worth more by priority."""
    state = cluster(
        [NODE] * 3,
        [
            gang(4, 0, gpu=1), gang(2, 1, gpu=2), gang(2, 2, gpu=2, priority=1),
            gang(1, gpu=2, priority=2, required_level=0),
        ], racks=(1, 1, 1),
    )  # fmt: skip
    made = plan(state, 3)
    assert made.domain == 2
    assert made.explanation.domain == 2


def test_a_domain_where_surplus_suffices_beats_one_where_a_gang_breaks():
    state = cluster(
        [NODE] * 2, [gang(2, 0, gpu=2), gang(4, 1, gpu=1, minimum=1), gang(1, gpu=2, priority=1, required_level=0)],
        racks=(1, 1),
    )  # fmt: skip
    made = plan(state, 2)
    assert (made.domain, made.price.gangs_broken, len(victims(made))) == (2, 0, 2)


def test_of_racks_that_lose_the_same_work_the_one_where_fewer_gangs_break_is_chosen():
    state = cluster(
        [NODE] * 2,
        [gang(1, 0, gpu=2), gang(1, 0, gpu=2), gang(2, 1, gpu=2), gang(1, gpu=4, priority=1, required_level=0)],
        racks=(1, 1),
    )  # fmt: skip
    made = plan(state, 3)
    assert (made.domain, made.price.gangs_broken) == (2, 1)
    (other,) = (one for one in made.explanation.tried if one.domain == 1)
    assert (other.reason, other.price.gangs_broken) == (Reason.BREAKS_MORE, 2)


def test_the_same_holds_where_all_domains_are_priced_before_any_is_selected():
    alone = [gang(1, node, gpu=1) for node in range(12) for _ in range(4)]
    wide = [gang(24, range(first, first + 6), gpu=1) for first in (12, 18)]
    state = cluster([NODE] * 24, [*alone, *wide, gang(6, gpu=4, priority=1, required_level=0)], racks=(12, 12))
    made = plan(state, len(alone) + len(wide))
    assert (made.domain, made.price.gangs_broken) == (2, 1)
    (other,) = (one for one in made.explanation.tried if one.domain == 1)
    assert (other.reason, other.price.gangs_broken) == (Reason.BREAKS_MORE, 24)


def test_only_the_domains_of_the_attempt_are_searched():
    state = cluster([NODE] * 2, [gang(2, 0, gpu=2), gang(1, gpu=4, priority=1, required_level=0)], racks=(1, 1))
    assert plan(state, 1).domain == 2
    assert plan(state, 1, domains=[1]).domain == 1


def test_a_task_that_no_node_can_serve_is_left_out_of_the_minimum():
    """Two of three waiting tasks are enough; the first in order could run nowhere."""
    nowhere = Constraint(node_selector=(Requirement("zone", "In", ("moon",)),))
    waiting = [Work(1, cpu=2, constraint=nowhere), Work(1, cpu=2), Work(1, cpu=2)]
    groups = [{"min_available": 2}, {"min_available": 2, "priority": 1}]
    state = placed([4], [Work(0, cpu=2, node=0), Work(0, cpu=2, node=0), *waiting], groups=groups)
    assert places(plan(state, 1)) == {3: 0, 4: 0}
    all_three = with_groups(state, 1, min_available=3)
    assert refusal(all_three, 1) == "CONSTRAINTS"


def test_a_task_in_another_rack_goes_where_it_alone_repels_the_gang_but_not_under_volcano():
    """Both racks are in one zone, and the second one is empty."""
    away = [Work(1, cpu=2, constraint=apart("zone", app="x"))] * 2
    groups = [{}, {"min_available": 2, "priority": 1, "required_level": RACK}]
    state = placed([1, 4, 9], [Work(0, node=0, labels=(("app", "x"),)), *away], racks=(1, 1, 1), groups=groups,
                   labels=[{"zone": "a"}, {"zone": "a"}, {}], cordoned=[2])  # fmt: skip
    made = plan(state, 1)
    assert (victims(made), places(made)) == ([0], {1: 1, 2: 1})
    assert refusal(state, 1, policy=VOLCANO) == "REPELLED"


# -- what is said ------------------------------------------------------------------------------------------------------


def test_the_explanation_names_the_fate_of_every_domain():
    """Idle room, a gang to break, nobody who may go: the first is taken, the second costlier, the third hopeless."""
    state = cluster(
        [NODE] * 3, [gang(2, 1, gpu=2), gang(2, 2, gpu=2, priority=5), gang(1, gpu=4, priority=1, required_level=0)],
        racks=(1, 1, 1),
    )  # fmt: skip
    why = plan(state, 2).explanation
    assert {one.domain: one.reason for one in why.tried} == {1: Reason.CHOSEN, 2: Reason.COSTLIER}
    assert why.ruled is not None
    assert (why.ruled.domain.tolist(), why.ruled.reachable.tolist(), why.ruled.pruned.tolist()) == ([3], [0], [False])
    prices = {one.domain: one.price for one in why.tried}
    assert prices[1] < prices[2]


def test_every_domain_is_accounted_for_when_there_is_no_plan():
    state = cluster(
        [NODE] * 3, [gang(6, [0, 0, 1, 1, 2, 2], gpu=2, priority=5), gang(1, gpu=4, priority=1, required_level=0)],
        racks=(1, 1, 1),
    )  # fmt: skip
    why = asked(state, 1).explanation
    assert why.reason is Reason.BOUND
    assert sorted([*[one.domain for one in why.tried], *why.ruled.domain.tolist()]) == [1, 2, 3]


def test_a_plan_says_what_it_takes_for_granted():
    state = with_tasks(crowded(), [0], incarnation=7)
    made = plan(state, 1, now=5.0)
    assert made.assumes.incarnation.tolist() == [7, 0]
    assert made.assumes.nodes.tolist() == [0]
    assert (made.assumes.epoch, made.assumes.revision) == (state.epoch, state.revision)
    assert made.expires_at == 35.0
