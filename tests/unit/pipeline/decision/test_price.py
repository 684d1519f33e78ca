"""The price of victims, field by field."""

from dataclasses import replace

import numpy as np

from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.explanation import decisive
from pipeline.decision.plan import Plan
from pipeline.decision.price import NO_VICTIMS, Price, lost_work, price_of
from pipeline.propose import propose
from tests.support.asking import VOLCANO, attempt
from tests.support.builders import cluster, gang
from tests.support.editing import with_budget, with_groups

HALF, NOW = 1800.0, 7200.0


def state() -> Snapshot:
    """A rigid gang of two, one of four that needs two, and a lone task, on one node; a task of one gpu waits."""
    gangs = [gang(2, 0, gpu=1, priority=3), gang(4, 0, gpu=2, minimum=2), gang(1, 0, gpu=1), gang(1, gpu=1, priority=5)]
    made = cluster([{"gpu": 11}], gangs)
    return with_groups(made, ..., started=[NOW - HALF, NOW, np.nan, np.nan])


def priced(snapshot: Snapshot, *victims: int, rank: list[int] | None = None) -> Price:
    requested = np.array([0, 0, 1, 1])
    ranks = None if rank is None else np.array(rank)
    return price_of(snapshot, np.array(victims, np.int64), requested, lost_work(snapshot, NOW), ranks, 0)


def test_a_gang_that_breaks_loses_all_that_it_holds_and_surplus_only_what_goes() -> None:
    assert (priced(state(), 0).gangs_broken, priced(state(), 0).lost_work) == (1, 2 * 1.5)
    assert (priced(state(), 2, 3).gangs_broken, priced(state(), 2, 3).lost_work) == (0, 2 * 2.0)
    assert (priced(state(), 2, 3, 4).gangs_broken, priced(state(), 2, 3, 4).lost_work) == (1, 4 * 2.0)


def test_a_lone_task_is_a_gang_of_one() -> None:
    assert (priced(state(), 6).gangs_broken, priced(state(), 6).lost_work) == (1, 1.0)
    assert (len(priced(state(), 6).broken), priced(state(), 6).surplus) == (1, ())


def test_work_is_told_by_priority_in_preempt_and_in_one_sum_in_reclaim() -> None:
    preempt, reclaim = priced(state(), 0, 1, 6), priced(state(), 0, 1, 6, rank=[4, 9, 7, 0])
    assert [level for level, _ in preempt.broken] == sorted({level for level, _ in preempt.broken}, reverse=True)
    assert reclaim.broken == ((0, preempt.lost_work),)


def test_priorities_and_queues_are_those_of_the_podgroups_that_lose_most() -> None:
    preempt, reclaim = priced(state(), 0, 1, 6), priced(state(), 0, 1, 6, rank=[4, 9, 7, 0])
    assert (preempt.highest_priority, preempt.queue_rank, preempt.victims) == (3, 0, 3)
    assert (reclaim.highest_priority, reclaim.queue_rank) == (3, 7)


def test_budgets_that_are_overdrawn_come_first() -> None:
    assert priced(with_budget(state(), [2, 3], 1), 2, 3).budgets_violated == 1
    assert priced(state(), 2) < priced(with_budget(state(), [2, 3], 0), 2)


def test_a_plan_without_victims_costs_nothing() -> None:
    free = priced(state())
    assert free == replace(NO_VICTIMS, tier=free.tier, domain=0)


def test_both_solvers_say_the_same_price_of_the_same_victims() -> None:
    lone = cluster([{"gpu": 2}], [gang(1, 0, gpu=1), gang(1, 0, gpu=1, priority=1), gang(1, gpu=1, priority=2)])
    by_bundles, by_tasks = (
        propose(replace(attempt(lone, 2, policy=VOLCANO), action=action)) for action in ("gangpreempt", "preempt")
    )
    assert isinstance(by_bundles, Plan)
    assert isinstance(by_tasks, Plan)
    assert by_bundles.statement.evictions.tolist() == by_tasks.statement.evictions.tolist() == [0]
    assert by_bundles.price == by_tasks.price


def test_that_victims_which_lose_nothing_count_at_some_level_is_not_told_as_a_difference() -> None:
    idle, none = replace(NO_VICTIMS, broken=((3, 0.0),)), NO_VICTIMS
    assert decisive(none, idle) is None
    told = decisive(idle, replace(idle, broken=((3, 2.0),)))
    assert told is not None
    assert (told.lower, told.higher, told.level) == (0.0, 2.0, 3)
