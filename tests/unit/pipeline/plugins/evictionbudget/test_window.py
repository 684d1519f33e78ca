"""How many tasks may be evicted in a window of time, in all and of one queue."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pipeline.cluster.arrays import NONE, frozen
from pipeline.cluster.counted.recent_evictions import recent_evictions_of
from pipeline.cluster.snapshot import Snapshot
from pipeline.cycle import cycle
from pipeline.decision.attempt import Attempt
from pipeline.decision.decided import carried_out
from pipeline.decision.law import TOO_FAST
from pipeline.decision.obstacle import Cause, Obstacle
from pipeline.decision.plan import NoPlan, Plan
from pipeline.decision.verdict import Accepted, Stale
from pipeline.errors import PolicyRefused
from pipeline.judge import judge
from pipeline.plugins.evictionbudget.plugin import EvictionBudget
from pipeline.plugins.evictionbudget.window import EvictionWindow
from pipeline.plugins.registry import check
from pipeline.policy import Policy, Purpose
from pipeline.propose import propose
from tests.chaos.eviction_windows import paced as bounded
from tests.support.asking import DEFAULT, VOLCANO, asked, host_on, plan, victims
from tests.support.builders import cluster, gang
from tests.support.editing import with_quota

NODE = {"gpu": 4}
NOW = 1000.0


def paced(policy: Policy = DEFAULT, **bounds: Any) -> Policy:
    """The policy with bounds on evictions in a window."""
    return bounded(policy, **bounds)


def with_recent(snapshot: Snapshot, *rows: tuple[int, int, int]) -> Snapshot:
    """The snapshot after evictions: queue, second and count."""
    queue, at, count = np.array(rows, np.int64).reshape(-1, 3).T
    return replace(snapshot, recent=recent_evictions_of(queue.astype(np.int32), at, count))


def full(nodes: int = 2, **said: Any) -> Snapshot:
    """Each node runs a gang of four that can lose any of them; two gangs of four wait."""
    low = [gang(4, n, gpu=1, minimum=0, **said) for n in range(nodes)]
    return cluster([NODE] * nodes, [*low, *[gang(4, gpu=1, priority=1)] * 2], racks=[1] * nodes)


def budget_of(snapshot: Snapshot, policy: Policy) -> EvictionBudget:
    (plugin,) = (one for one in host_on(snapshot, policy, NOW)._plugins if isinstance(one, EvictionBudget))
    return plugin


def obstacles(made: Plan | NoPlan) -> list[Obstacle]:
    assert isinstance(made, NoPlan)
    return [one for one in made.explanation.obstacles if one.cause is Cause.WINDOW]


def test_what_was_evicted_in_the_window_counts_against_it() -> None:
    policy = paced(in_window=10, window_s=60)
    for used, at, found in ((6, 990, Plan), (7, 990, NoPlan), (7, 940, Plan), (7, 941, NoPlan)):
        state = with_recent(full(), (0, at, used))
        assert isinstance(asked(state, 2, policy=policy, now=NOW), found), (used, at)


def test_a_queue_has_a_window_of_its_own() -> None:
    state = with_recent(full(), (1, 990, 50))
    assert len(victims(plan(state, 2, policy=paced(in_window_of_queue=4), now=NOW))) == 4
    state = with_recent(full(), (1, 990, 50), (0, 990, 1))
    assert isinstance(asked(state, 2, policy=paced(in_window_of_queue=4), now=NOW), NoPlan)
    assert isinstance(asked(state, 2, policy=paced(in_window_of_queue=5), now=NOW), Plan)


def test_what_a_queue_that_is_gone_lost_counts_in_all() -> None:
    state = with_recent(full(), (NONE, 990, 3))
    assert isinstance(asked(state, 2, policy=paced(in_window=6), now=NOW), NoPlan)
    assert isinstance(asked(state, 2, policy=paced(in_window=7, in_window_of_queue=4), now=NOW), Plan)


def test_of_queues_the_one_that_may_still_lose_tasks_is_taken_from() -> None:
    low = [gang(4, n, gpu=1, minimum=0, queue=n + 1) for n in range(2)]
    state = cluster([NODE] * 2, [*low, gang(4, gpu=1)], queues=3)
    state = with_quota(state, deserved={0: {"gpu": 8}, 1: {"gpu": 0}, 2: {"gpu": 0}})
    policy = paced(in_window_of_queue=4)
    assert victims(plan(state, 2, Purpose.RECLAIM, policy=policy, now=NOW))
    for used in (1, 4):
        for lost, left in ((1, {4, 5, 6, 7}), (2, {0, 1, 2, 3})):
            made = plan(with_recent(state, (lost, 990, used)), 2, Purpose.RECLAIM, policy=policy, now=NOW)
            assert used == 1 or set(victims(made)) == left


def test_why_there_is_no_plan_is_said_in_numbers() -> None:
    state = with_recent(full(), (0, 970, 2), (1, 980, 5))
    policy = paced(in_window=10, in_window_of_queue=3, window_s=60)
    in_all, of_queue = obstacles(asked(state, 2, policy=policy, now=NOW))
    assert (in_all.plugin, in_all.queue, in_all.what) == ("evictionbudget", NONE, "60 s")
    assert (in_all.wanted, in_all.found, in_all.until) == (10, 7, 1030)
    assert (of_queue.queue, of_queue.wanted, of_queue.found, of_queue.until) == (0, 3, 2, 1030)


@pytest.mark.parametrize("arguments", [{"in_window": 0}, {"in_window_of_queue": 0}])
def test_a_window_that_lets_nothing_go_is_named_and_does_not_open(arguments: dict[str, int]) -> None:
    (told,) = obstacles(asked(full(), 2, policy=paced(**arguments), now=NOW))
    assert (told.wanted, told.found, told.until) == (0, 0, 0)


def test_a_window_with_enough_left_is_not_named() -> None:
    state = with_recent(full(), (0, 990, 50))
    made = asked(state, 2, policy=paced(in_window=100), now=NOW, domains=[])
    assert isinstance(made, NoPlan)
    assert not obstacles(made)


def test_two_decisions_do_not_exceed_the_window_together() -> None:
    policy, state = paced(in_window=6, window_s=60), full()
    first, second = (plan(state, 2 + at, policy=policy, now=NOW, domains=[1 + at]) for at in range(2))
    verdict = judge(first, state, policy, NOW)
    assert isinstance(verdict, Accepted)
    after = replace(carried_out(verdict.statement, state, NOW), revision=state.revision + 1)
    assert judge(second, after, policy, NOW + 20.0) == Stale(TOO_FAST)
    second = replace(second, expires_at=NOW + 100.0)
    assert judge(second, after, policy, NOW + 59.0) == Stale(TOO_FAST)
    assert isinstance(judge(second, after, policy, NOW + 60.0), Accepted)


@pytest.mark.parametrize(("most", "served"), [(3, 0), (4, 1), (7, 1), (8, 2)])
def test_gangs_of_one_cycle_count_what_those_before_them_take(most: int, served: int) -> None:
    done = cycle(full(), paced(in_window=most), NOW)
    assert [len(made.evictions) for made in done.statements if len(made.evictions)] == [4] * served
    assert int(done.snapshot.recent.count.sum()) == 4 * served
    left = [one for one in done.unplaced if any(told.cause is Cause.WINDOW for told in one.why.obstacles)]
    assert len({one.gang_group for one in left}) == 2 - served


def test_task_by_task_no_more_go_than_the_window_lets_go() -> None:
    state = cluster([NODE], [gang(4, 0, gpu=1, minimum=0), gang(1, gpu=2, priority=1)])
    for used, found in ((2, Plan), (3, NoPlan)):
        policy = paced(VOLCANO, in_window=4)
        recent = with_recent(state, (1, 990, used))
        made = propose(Attempt(recent, policy, Purpose.PREEMPT, (1,), None, NOW, "preempt"))
        assert isinstance(made, found)
    assert obstacles(made)


def test_the_first_candidates_go_that_both_windows_let_go() -> None:
    low = [gang(3, 0, gpu=1, minimum=0, queue=n) for n in range(2)]
    state = with_recent(cluster([{"gpu": 8}], low), (0, 990, 1))
    plugin = budget_of(state, paced(in_window=5, in_window_of_queue=2, at_once=3))
    order = np.array([0, 1, 3, 2, 4, 5])
    may = plugin.task_quota_filter(None, order)
    assert may.tolist() == [True, False, True, False, True, False]
    gone = plugin.on(state, np.array([3]))
    assert gone.task_quota_filter(None, order[[0, 4]]).tolist() == [True, True]
    assert not gone.keeps_pace(np.array([4, 5]))


@pytest.mark.parametrize("window_s", [0, 0.5, 3601, float("nan"), True, "60"])
def test_a_window_that_the_state_cannot_look_back_at_is_refused(window_s: Any) -> None:
    with pytest.raises(PolicyRefused, match="window_s: expected a number of seconds from 1 to 3600"):
        check(paced(window_s=window_s))


def test_without_bounds_the_plugin_has_no_opinion_and_need_not_count() -> None:
    plugin = budget_of(full(), paced(window_s=60))
    assert not plugin.counts_evictions
    assert plugin.evictable(None) is None
    assert plugin.task_quota_filter(None, frozen([0], np.int64)) is None


@pytest.mark.parametrize("of_queue", [False, True])
def test_what_evicts_nothing_keeps_a_bound_that_is_exceeded_already(of_queue: bool) -> None:
    """A bound may be lowered, and what a plan was to evict may be gone when it is judged."""
    bound = {"in_window_of_queue" if of_queue else "in_window": 1}
    host = host_on(with_recent(full(), (0, 990, 3)), paced(**bound), NOW)
    assert host.keeps_pace(np.zeros(0, np.int64))
    assert not host.keeps_pace(np.array([0]))


def test_what_is_taken_now_counts_in_the_window_and_leaves_it_last() -> None:
    before = EvictionWindow.of(with_recent(full(), (1, 970, 1)), NOW, 9, 2, 60)
    assert before is not None
    after = before.spending(np.array([0, 1], np.int32))
    assert (after.used, after.used_of.tolist(), after.left_of.tolist()) == (3, [1, 2], [1, 0])
    assert (after.leaves, after.leaves_of.tolist()) == (1030, [1060, 1030])
    assert before.spending(np.zeros(0, np.int32)).leaves == 1030
