"""What was evicted lately, as the state remembers it."""

from dataclasses import replace

import numpy as np
import pytest

from pipeline.cluster import checkpoint
from pipeline.cluster.arrays import NONE, frozen
from pipeline.cluster.counted.recent_evictions import (
    HORIZON_S,
    NO_EVICTIONS,
    RecentEvictions,
    in_queues,
    recent_evictions_of,
    with_evictions,
)
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import RUNNING
from pipeline.cluster.updates.events import Changes, Listed, QueuesRelaid
from pipeline.cluster.updates.fold import fold
from tests.support.encoded import encoded
from tests.support.small_states import decided, queues_table, small_state, task_news

#: Queue, second, count.
Row = tuple[int, int, int]


def rows(table: RecentEvictions) -> list[Row]:
    return list(zip(table.queue.tolist(), table.at.tolist(), table.count.tolist(), strict=True))


def evicted(*news: tuple[list[int], float], known: RecentEvictions = NO_EVICTIONS) -> RecentEvictions:
    """The table after evictions of tasks of these queues at these times."""
    for queues, at in news:
        known = with_evictions(known, frozen(queues, np.int32), at)
    return known


def of_decision(seq: int, queues: list[int], at: float, **more: list[tuple[int, ...]]) -> Changes:
    return Changes(decided=replace(decided(seq, **more), counted=frozen(queues, np.int32), counted_at=at))


def test_evictions_of_one_queue_and_second_are_one_row() -> None:
    table = evicted(([1, 0, 1], 9.2), ([1], 9.9), ([0], 10.1))
    assert rows(table) == [(0, 10, 1), (1, 10, 3), (0, 11, 1)]


def test_seconds_are_rounded_up_so_that_nothing_leaves_a_window_early() -> None:
    table = evicted(([0], 100.5))
    assert table.within(160.5, 60.0).tolist() == [True]
    assert table.within(161.0, 60.0).tolist() == [False]


def test_what_no_policy_may_look_back_at_is_dropped_when_more_is_written() -> None:
    table = evicted(([0], 10.0), ([0], 11.0), ([1], 3610.0))
    assert rows(table) == [(0, 10, 1), (0, 11, 1), (1, 3610, 1)]
    assert rows(evicted(([1], 3611.0), known=table)) == [(0, 11, 1), (1, 3610, 1), (1, 3611, 1)]


def test_a_time_before_others_is_put_among_them() -> None:
    times = [5.0, 9.0, 7.0, 7.0, 1.0]
    assert rows(evicted(*(([0], at) for at in times))) == [(0, 1, 1), (0, 5, 1), (0, 7, 2), (0, 9, 1)]


def test_what_is_far_ahead_came_from_a_wrong_clock_and_neither_counts_nor_stays() -> None:
    table = evicted(([0], 9000.0))
    assert not table.within(100.0, 3600.0).any()
    assert rows(evicted(([1], 100.0), known=table)) == [(1, 100, 1)]


@pytest.mark.parametrize("seed", range(20))
def test_the_table_says_what_a_list_of_all_evictions_says(seed: int) -> None:
    draw, table, told = np.random.default_rng(seed), NO_EVICTIONS, list[tuple[int, float]]()
    now = 1000.0
    for _ in range(60):
        now += draw.choice([0.0, 0.3, 5.0, 400.0])
        queues = draw.integers(0, 3, draw.integers(0, 4))
        table = with_evictions(table, queues.astype(np.int32), now)
        told += [(int(queue), now) for queue in queues]
        for window_s in (1.0, 60.0, 3600.0):
            inside = table.within(now, window_s)
            for queue in range(3):
                counted = int(table.count[inside & (table.queue == queue)].sum())
                true = sum(one == queue and now - at < window_s for one, at in told)
                late = sum(one == queue and now - at < window_s + 1 for one, at in told)
                assert true <= counted <= late
    assert len(table) == len({*zip(table.queue.tolist(), table.at.tolist(), strict=True)})
    assert rows(recent_evictions_of(table.queue[::-1], table.at[::-1], table.count[::-1])) == rows(table)


@pytest.mark.parametrize("seed", range(20))
def test_more_evictions_are_added_as_if_all_were_put_in_order(seed: int) -> None:
    draw, table, told = np.random.default_rng(seed), NO_EVICTIONS, list[tuple[int, int]]()
    for _ in range(40):
        second = int(draw.choice([10, 11, 12, 900, 3611, 3612, 7000]))
        queues = draw.integers(NONE, 4, draw.integers(0, 6))
        table = with_evictions(table, frozen(queues, np.int32), second)
        told += [(second, int(queue)) for queue in queues]
        if len(queues):
            told = [(at, queue) for at, queue in told if second - HORIZON_S <= at <= second + HORIZON_S]
        at, queue = np.array(told, np.int64).reshape(-1, 2).T
        expected = recent_evictions_of(queue, at, np.ones(len(told), np.int64))
        assert rows(table) == rows(expected)
        assert [one.dtype for one in (table.queue, table.at, table.count)] == [np.int32, np.int64, np.int64]
        assert not any(one.flags.writeable for one in (table.queue, table.at, table.count))


def test_a_queue_that_is_gone_still_counts_in_all() -> None:
    table = evicted(([0, 1, 2], 5.0))
    assert rows(in_queues(table, frozen([1, NONE, NONE], np.int32))) == [(NONE, 5, 2), (1, 5, 1)]


def running() -> Snapshot:
    return fold(small_state(), Changes(tasks=task_news((0, RUNNING, 1, 1), (1, RUNNING, 1, 2))))


def test_a_decision_is_counted_once_and_whatever_became_of_its_victims() -> None:
    state = fold(running(), of_decision(1, [0, 0], 50.0, evicted=[(0, 0), (1, 7)]))
    assert rows(state.recent) == [(0, 50, 2)]
    assert fold(state, of_decision(1, [0], 60.0, evicted=[(1, 0)])) is state
    unknown = fold(state, of_decision(2, [NONE], 51.0))
    assert rows(unknown.recent) == [(0, 50, 2), (NONE, 51, 1)]


def test_a_withdrawal_takes_no_eviction_back() -> None:
    state = fold(running(), of_decision(1, [0], 50.0, evicted=[(0, 0)]))
    assert rows(fold(state, Changes(decided=decided(2, spared=[(0, 0)]))).recent) == [(0, 50, 1)]


def test_queues_numbered_anew_and_a_full_list_keep_it() -> None:
    state = fold(running(), of_decision(1, [0, 1], 50.0, evicted=[(0, 0)]))
    relaid = QueuesRelaid(state.vocabulary.resources, queues_table(3), frozen([2, NONE], np.int32), 1)
    moved = fold(state, relaid)
    assert rows(moved.recent) == [(NONE, 50, 1), (2, 50, 1)]
    assert moved.podgroups.queue.tolist() == [2, 2, 2]
    same = np.arange(len(state.tasks)), np.arange(len(state.podgroups)), np.arange(4, dtype=np.int32)
    cards = np.zeros((4, 0), np.int32)
    listed = fold(state, Listed(small_state(), *same, cards, frozen([1, NONE], np.int32)))
    assert rows(listed.recent) == [(NONE, 50, 1), (1, 50, 1)]


def test_it_is_part_of_a_checkpoint() -> None:
    state = fold(running(), of_decision(1, [0, 1], 50.0, evicted=[(0, 0)]))
    assert rows(checkpoint.decode(encoded(state)).recent) == [(0, 50, 1), (1, 50, 1)]
