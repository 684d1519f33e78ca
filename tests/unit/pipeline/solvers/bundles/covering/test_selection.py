"""Victims of one domain: who goes, who stays after all, and what it costs."""

from dataclasses import replace

import numpy as np
import pytest

from pipeline.cluster.arrays import NONE, frozen
from pipeline.decision.explanation import Reason, VictimBundle
from pipeline.decision.price import NO_PRIORITY
from pipeline.solvers.bundles.bundling.bundle_search import EFFORT
from pipeline.solvers.bundles.covering.chosen import Selection, victims_by_bundle
from pipeline.solvers.bundles.covering.selection import Shortfall, select
from tests.support.builders import Gang, Task, cluster, gang, searching

FOUR = [{"gpu": 4}]


def selected(gangs, *, nodes=FOUR, racks=(), domain=0, **changed):
    """Select for the last gang, whose priority is above all others."""
    snapshot = cluster(nodes, gangs, racks=racks)
    return select(searching(snapshot, len(gangs) - 1, **changed), domain)


def wanted(count, gpu, **said):
    return gang(count, gpu=gpu, priority=9, **said)


def victims(gangs, **said):
    found = selected(gangs, **said)
    assert isinstance(found, Selection), found
    return found.victims.tolist()


# -- no victims --------------------------------------------------------------------------------------------------------


def test_no_task_goes_where_there_is_room():
    found = selected([gang(2, [0], minimum=1, gpu=1), wanted(2, 1)])
    assert (found.victims.tolist(), found.node.tolist(), found.given_back) == ([], [0, 0], 0)
    assert (found.price.gangs_broken, found.price.highest_priority, found.price.lost_work) == (0, NO_PRIORITY, 0.0)


# -- cover -------------------------------------------------------------------------------------------------------------


def test_slots_decide_and_not_sums():
    halves = [gang(2, [0, 1], gpu=2, priority=1), gang(2, [0, 1], gpu=2, priority=2)]
    assert victims([*halves, wanted(1, 4)], nodes=FOUR * 2) == [0, 1, 2, 3]


def test_a_whole_bundle_goes_whole():
    assert victims([gang(4, [0], gpu=1), wanted(1, 1)]) == [0, 1, 2, 3]


def test_a_broken_gang_goes_with_its_members_elsewhere():
    search = searching(cluster(FOUR * 2, [gang(4, [0, 1], gpu=2), wanted(1, 4)], racks=(1, 1)), 1)
    found = select(search, 1)
    assert isinstance(found, Selection)
    assert (found.victims.tolist(), found.broken.tolist(), found.node.tolist()) == ([0, 1, 2, 3], [0], [0])
    assert victims_by_bundle(search, found.outcome) == (VictimBundle(0, False, 2, 2, 0, 0.5),)


def test_where_gangs_go_locally_members_elsewhere_stay():
    found = selected([gang(4, [0, 1], gpu=2), wanted(1, 4)], nodes=FOUR * 2, racks=(1, 1), domain=1, cluster_wide=False)
    assert (found.victims.tolist(), found.price.lost_work) == ([0, 2], 2.0)


def test_the_lowest_priority_goes_even_if_another_is_more_efficient():
    cheap, dear = gang(2, [0, 1], gpu=4, priority=1), gang(1, [0], gpu=0, priority=3)
    other = gang(1, [0], gpu=4, priority=2)
    nodes = [{"gpu": 8}, {"gpu": 4}]
    found = selected([cheap, dear, other, wanted(1, 4)], nodes=nodes, racks=(1, 1), domain=1, by_priority=True)
    assert found.victims.tolist() == [0, 1]


# -- give back ---------------------------------------------------------------------------------------------------------


def test_surplus_that_is_not_needed_stays():
    assert victims([gang(10, [0], gpu=1, minimum=0), wanted(1, 1)], nodes=[{"gpu": 10}]) == [9]


def test_a_gang_that_was_only_on_the_way_stays_whole():
    useless, useful = gang(2, [0], gpu=1, priority=1), gang(1, [1], gpu=4, priority=2)
    found = selected([useless, useful, wanted(1, 4)], nodes=[{"gpu": 2}, {"gpu": 4}])
    assert (found.victims.tolist(), found.given_back) == ([2], 2)


def test_of_two_gangs_of_which_one_is_enough_the_costliest_stays():
    halves = [gang(1, [0], gpu=2), gang(1, [1], gpu=2), gang(2, [0, 1], gpu=2, priority=1)]
    for dear, gone in ((0, [1, 2, 3]), (1, [0, 2, 3])):
        weight = np.where(np.arange(4) == dear, 9.0, 1.0)
        assert victims([*halves, wanted(1, 4)], nodes=FOUR * 2, lost_work=weight) == gone


def test_of_surplus_the_highest_priority_and_then_the_oldest_stays():
    job = Gang([Task(0, gpu=1, priority=p, created=c) for p, c in ((1, 5.0), (1, 4.0), (0, 0.0), (2, 9.0))], 0)
    assert victims([job, wanted(1, 1)]) == [2]
    assert victims([job, wanted(2, 1)]) == [0, 2]


def test_surplus_of_a_gang_that_breaks_goes_with_it():
    job = Gang([Task(0, gpu=2), Task(0, gpu=2), Task(1, gpu=1)], 2)
    found = selected([job, wanted(1, 4)], nodes=[{"gpu": 4}, {"gpu": 1}])
    assert found.victims.tolist() == [0, 1, 2]
    assert found.price.gangs_broken == 1


def test_the_core_returns_where_the_surplus_is_enough():
    found = selected([gang(4, [0, 0, 1, 1], gpu=2, minimum=2), wanted(1, 4)], nodes=FOUR * 2)
    assert (found.victims.tolist(), found.price.gangs_broken) == ([2, 3], 0)


# -- the cheapest set --------------------------------------------------------------------------------------------------


def test_of_surplus_that_policy_ranks_equal_one_task_goes_where_one_is_enough():
    assert victims([gang(3, [0, 1, 1], gpu=1, minimum=0), wanted(1, 2)], nodes=[{"gpu": 2}] * 2) == [0]


def test_of_podgroups_that_policy_ranks_equal_the_cheapest_go():
    lone = [gang(1, [node], gpu=2) for node in (0, 0, 0, 1, 1, 1, 1)]
    assert len(victims([*lone, wanted(1, 4)], nodes=[{"gpu": 8}] * 2)) == 1


def test_where_the_order_is_kept_the_first_bundles_go_even_if_others_are_cheaper():
    lone = [gang(1, [node], gpu=2) for node in (1, 1, 1, 1, 0, 0, 0)]
    found = victims([*lone, wanted(1, 4)], nodes=[{"gpu": 8}] * 2, keep_order=True)
    assert len(found) == 2


def test_in_reclaim_a_set_of_another_efficiency_goes_only_if_it_is_cheaper_by_more_than_a_step():
    for weight, gone in ((1.0, [2, 3]), (0.96, [2, 3]), (0.9, [0, 1])):
        dear, cheap = gang(2, [0], gpu=2, priority=5), gang(2, [0], gpu=2)
        lost = np.array([weight, 1.0, 1.0])
        ranks = {"rank_before": np.zeros(3, np.int64), "rank_after": np.array([5, 0, 0]), "lost_work": lost}
        assert victims([dear, cheap, wanted(1, 4)], nodes=[{"gpu": 8}], **ranks) == gone


# -- the vote and the law ----------------------------------------------------------------------------------------------


def test_plugins_vote_once_on_the_whole_list_in_order():
    asked = []

    def vote(rows, _unit):
        asked.append(rows.tolist())
        return np.ones(len(rows), bool)

    rigid, loose = gang(2, [0, 1], gpu=1, priority=1), gang(2, [0], gpu=1, minimum=1, priority=2)
    selected([rigid, loose, wanted(1, 4)], nodes=FOUR * 2, racks=(1, 1), domain=1, quota_filter=vote)
    assert asked == [[3, 0, 1, 2]]


def refusing(*refused):
    return lambda rows, _unit: ~np.isin(rows, refused)


def test_a_safe_bundle_shrinks_where_the_vote_refuses():
    assert victims([gang(4, [0], gpu=1, minimum=0), wanted(2, 1)], quota_filter=refusing(3)) == [1, 2]


def test_a_whole_bundle_falls_with_one_refusal():
    pair, other = gang(2, [0], gpu=1, priority=1), gang(2, [0], gpu=1, priority=2)
    assert victims([pair, other, wanted(1, 1)], quota_filter=refusing(1)) == [2, 3]


def test_a_gang_that_would_leave_refused_surplus_behind_is_not_broken():
    job = gang(3, [0], gpu=1, minimum=2)
    assert selected([job, wanted(2, 2)], quota_filter=refusing(2)) == Shortfall(Reason.VETOED, (0,), (0,))
    assert victims([job, wanted(1, 3)], quota_filter=refusing(2), cluster_wide=False) == [0, 1]


def test_victims_that_are_unlawful_together_are_no_outcome():
    found = selected([gang(4, [0], gpu=1, minimum=0), wanted(2, 1)], validate_set=lambda _: False)
    assert found == Shortfall(Reason.ILLEGAL, (0,), (2,))


def test_the_law_may_need_more_victims_than_the_nodes_do():
    full = [gang(3, [0], gpu=1, minimum=0, priority=1), gang(1, [1], gpu=1, minimum=0, priority=2), wanted(2, 1)]
    within = victims(full, nodes=[{"gpu": 4}, {"gpu": 4}], validate_set=lambda rows: len(rows) >= 2)
    assert within == [1, 2]


def test_a_whole_gang_is_not_asked_to_go_for_the_law_where_surplus_will_do():
    full = [gang(2, [0], gpu=1, priority=1), gang(2, [0], gpu=1, minimum=0, priority=2), wanted(1, 1)]
    assert victims(full, nodes=[{"gpu": 8}], validate_set=lambda rows: len(rows) >= 1) == [3]


# -- why not -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gangs", "changed", "reason"),
    [
        ([gang(4, [0], gpu=1, priority=9), wanted(1, 1)], {}, Reason.NO_CANDIDATES),
        ([gang(4, [0], gpu=1), wanted(1, 5)], {}, Reason.UNPLACEABLE),
        ([gang(4, [0], gpu=1), wanted(1, 4)], {"quota_filter": refusing(0)}, Reason.VETOED),
        ([gang(4, [0], gpu=1), wanted(1, 4)], {"allow_whole": False}, Reason.NO_CANDIDATES),
        ([gang(4, [0], gpu=1), wanted(1, 4)], {"allowed": np.zeros((1, 1), bool)}, Reason.UNPLACEABLE),
    ],
)
def test_a_shortfall_says_what_was_in_the_way(gangs, changed, reason):
    found = selected(gangs, **changed)
    assert isinstance(found, Shortfall)
    assert found.reason == reason


def test_a_shortfall_tells_slots_with_and_without_evictions():
    assert selected([gang(2, [0], gpu=1, minimum=1), wanted(4, 1)], allow_whole=False) == Shortfall(
        Reason.UNPLACEABLE, (2,), (3,)
    )


def test_a_domain_without_nodes_is_no_place():
    assert isinstance(selected([wanted(1, 1)], nodes=FOUR, racks=(1, 0), domain=2), Shortfall)


# -- the price ---------------------------------------------------------------------------------------------------------


def test_the_price_counts_gangs_priority_work_victims_and_tier():
    rigid, loose = gang(4, [0, 1], gpu=1, priority=3), gang(2, [0], gpu=1, minimum=0, priority=5)
    found = selected(
        [rigid, loose, wanted(1, 4)], nodes=FOUR * 2, racks=(1, 1), domain=1,
        queue_rank=np.array([2, 7, 0]), lost_work=np.array([1.5, 10.0, 1.0]),
    )  # fmt: skip
    assert found.victims.tolist() == [0, 1, 2, 3, 4, 5]
    price = found.price
    assert (price.budgets_violated, price.gangs_broken, price.highest_priority, price.queue_rank) == (0, 1, 5, 7)
    assert price.lost_work == pytest.approx(4 / 4 * 1.5 + 2 / 4 * 10.0)
    assert (price.broken, price.surplus) == (((0, 1.5),), ((0, 5.0),))
    assert (price.victims, price.tier, price.domain) == (6, 1, 1)


def test_in_preempt_the_work_is_told_priority_by_priority_from_the_highest():
    lone, pair, loose = gang(1, [0], gpu=1, priority=3), gang(2, [0], gpu=1), gang(1, [0], gpu=1, minimum=0, priority=5)
    found = selected([lone, pair, loose, wanted(1, 4)], by_priority=True)
    assert (found.price.broken, found.price.surplus) == (((3, 0.25), (0, 0.5)), ((5, 0.25),))
    assert found.price.gangs_broken == 2


def test_a_lone_task_of_high_priority_is_dearer_than_a_gang_of_a_low_one():
    lone, pair = gang(1, [0], gpu=4, priority=5), gang(4, [1], gpu=1, priority=1)
    assert victims([lone, pair, wanted(1, 4)], nodes=FOUR * 2, by_priority=True) == [1, 2, 3, 4]


def test_a_gang_that_was_broken_before_costs_nothing():
    found = selected([gang(2, [0], gpu=2, minimum=3), wanted(1, 4)])
    assert (found.price.gangs_broken, found.price.lost_work, found.price.victims) == (0, 0.0, 2)


# -- several shapes, parts and anti-affinity ---------------------------------------------------------------------------


def mixed(*requests):
    return Gang([Task(gpu=gpu, cpu=cpu) for gpu, cpu in requests], len(requests), priority=9)


def test_a_gang_of_several_shapes_places_and_takes_no_more_than_it_needs():
    nodes = [{"gpu": 4, "cpu": 8}] * 2
    running = [gang(2, [0, 1], gpu=2, cpu=2, minimum=0), gang(2, [0, 1], gpu=2, cpu=6, minimum=0, priority=1)]
    found = selected([*running, mixed((2, 0), (0, 6))], nodes=nodes)
    assert isinstance(found, Selection)
    assert found.victims.tolist() == [2] or found.victims.tolist() == [3]


def test_several_shapes_that_fit_alone_but_not_together_take_more():
    running = gang(4, [0], gpu=1, minimum=0)
    assert victims([running, mixed((1, 0), (2, 0))]) == [1, 2, 3]


def test_of_few_sets_the_cheapest_that_is_lawful_goes_where_the_first_bundles_are_not():
    running, asks = [gang(1, [node], gpu=4) for node in range(2)], mixed((1, 0), (2, 0))
    law = {"keep_order": True, "validate_set": lambda rows: 0 not in rows}
    assert victims([*running, asks], nodes=FOUR * 2, **law) == [1]


def test_subgroups_with_a_rack_of_their_own_make_room_in_each():
    waiting = Gang(
        [Task(gpu=4, subgroup=0), Task(gpu=4, subgroup=1)], 2, 9, subgroups=[(NONE, 1, NONE), (NONE, 1, NONE)]
    )
    running = [gang(1, [node], gpu=4, priority=node) for node in range(3)]
    snapshot = cluster(FOUR * 3, [*running, waiting], racks=(2, 1))
    racks = replace(snapshot.subgroups, required_level=frozen([0, 0], np.int32))
    snapshot = replace(snapshot, subgroups=racks)
    found = select(searching(snapshot, 3), 0)
    assert isinstance(found, Selection)
    assert len(found.victims) == 2


def test_columns_that_do_not_go_together_are_refused():
    with pytest.raises(ValueError, match=r"search\.rank_before: expected shape \(1,\), found \(2,\)"):
        selected([wanted(1, 1)], rank_before=np.zeros(2, np.int64))


@pytest.mark.parametrize("effort", [EFFORT, 0])
def test_without_polish_surplus_is_chosen_by_slots_where_the_order_leaves_too_few(effort):
    tasks = [Task(0, gpu=1), *(Task(1 + at, gpu=1, created=5.0) for at in range(45)), Task(1, gpu=1, preemptible=False)]
    gangs = [Gang(tasks, len(tasks) - 1, priority=1), wanted(1, 2)]
    nodes = [{"gpu": 2}, {"gpu": 2}, *[{"gpu": 1}] * 44]
    assert victims(gangs, nodes=nodes, effort=effort, by_priority=True) == [0]
