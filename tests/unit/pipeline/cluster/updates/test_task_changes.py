"""What becomes of tasks by a decision, as a rule over single tasks says it; and which columns stay as they are."""

from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from pipeline.cluster.arrays import NONE, frozen
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import BOUND, PENDING, RUNNING, SUCCEEDED, TERMINATING
from pipeline.cluster.updates.events import CURRENT, Changes, Decided
from pipeline.cluster.updates.fold import fold
from pipeline.cluster.updates.task_changes import by_decision, by_news
from pipeline.records import replace
from tests.support.histories import GROUPS, NODES, TASKS, begun
from tests.support.small_states import decided, departure, small_state, task_news

MANY = GROUPS * TASKS
CHANGING = "status", "node", "card", "nominated", "nominated_card", "incarnation", "revision"


def some_state(draw: np.random.Generator, *, carded: bool) -> Snapshot:
    """Tasks in any state that makes sense, on nodes one of which has left."""
    state = begun() if carded else small_state(NODES, GROUPS, TASKS)
    status = draw.choice([PENDING, BOUND, RUNNING, TERMINATING, SUCCEEDED], MANY)
    holds, may_wait = np.isin(status, (BOUND, RUNNING, TERMINATING)), np.isin(status, (PENDING, TERMINATING))
    promised = np.where(may_wait & (draw.random(MANY) < 0.4), draw.integers(0, NODES, MANY), NONE)
    tasks = replace(
        state.tasks,
        status=frozen(status, np.uint8),
        node=frozen(np.where(holds, draw.integers(0, NODES, MANY), NONE), np.int32),
        nominated=frozen(promised, np.int32),
        card=frozen(np.where(carded & holds, draw.integers(0, 2, MANY), NONE), np.int32),
        nominated_card=frozen(np.where(carded & (promised != NONE), draw.integers(0, 2, MANY), NONE), np.int32),
        incarnation=frozen(draw.integers(0, 2, MANY), np.int64),
    )
    return fold(replace(state, tasks=tasks), Changes(left=departure(NODES - 1, 5)))


def some_decision(draw: np.random.Generator, *, carded: bool) -> Decided:
    """A task may be told to end and be promised a node at once."""

    def of(*columns: Any, least: int) -> list[tuple[int, ...]]:
        rows = draw.permutation(MANY)[: draw.integers(0, least)].tolist()
        return [
            (row, *(int(draw.integers(*one)) for one in columns), int(draw.choice([CURRENT, 0, 1]))) for row in rows
        ]

    made = decided(
        1, 9.0,
        evicted=of(least=7), spared=of(least=4),
        nominated=of((NONE, NODES), least=7), bound=of((0, NODES), least=5),
    )  # fmt: skip
    if not carded:
        return made
    cards = [frozen(draw.integers(0, 2, len(rows)), np.int32) for rows in (made.nominated, made.bound)]
    return replace(made, nominated_card=cards[0], bound_card=cards[1])


def carried_out(state: Snapshot, made: Decided, *, carded: bool) -> dict[str, list[int]]:
    """The columns after the decision: one task after the other, and what it was decides."""
    was = {name: getattr(state.tasks, name).tolist() for name in CHANGING}
    now = {name: list(column) for name, column in was.items()}
    there = state.nodes.allocatable.any(axis=1).tolist()

    def lives(row: int, life: int) -> bool:
        return life in (CURRENT, was["incarnation"][row])

    ending = set()
    for row, life in zip(made.evicted.tolist(), made.evicted_incarnation.tolist(), strict=True):
        if lives(row, life) and was["status"][row] in (BOUND, RUNNING, TERMINATING):
            ending.add(row)
            now["status"][row] = TERMINATING
    for row, life in zip(made.spared.tolist(), made.spared_incarnation.tolist(), strict=True):
        if lives(row, life) and was["status"][row] == TERMINATING:
            now["status"][row], now["nominated"][row], now["nominated_card"][row] = RUNNING, NONE, NONE
    told = made.nominated, made.nominated_node, made.nominated_card, made.nominated_incarnation
    for row, node, card, life in zip(*(one.tolist() for one in told), strict=True):
        waits = lives(row, life) and was["status"][row] == PENDING
        ended = lives(row, life) and was["status"][row] == TERMINATING and was["nominated"][row] != NONE
        if (row in ending or waits or (ended and node == NONE)) and (node == NONE or there[node]):
            now["nominated"][row], now["nominated_card"][row] = node, card if carded else NONE
    told = made.bound, made.bound_node, made.bound_card, made.bound_incarnation
    for row, node, card, life in zip(*(one.tolist() for one in told), strict=True):
        if lives(row, life) and was["status"][row] == PENDING and there[node]:
            now["status"][row], now["node"][row], now["card"][row] = BOUND, node, card if carded else NONE
            now["nominated"][row] = now["nominated_card"][row] = NONE
    return now


@pytest.mark.parametrize("carded", [False, True])
@pytest.mark.parametrize("seed", range(100))
def test_a_decision_is_carried_out_task_by_task(seed: int, carded: bool) -> None:
    draw = np.random.default_rng(seed)
    state, made = some_state(draw, carded=carded), some_decision(draw, carded=carded)
    after = fold(state, Changes(decided=made)).tasks
    expected = carried_out(state, made, carded=carded)
    assert {name: getattr(after, name).tolist() for name in CHANGING} == expected
    for one in fields(after):
        same = getattr(after, one.name).tolist() == getattr(state.tasks, one.name).tolist()
        assert same == (getattr(after, one.name) is getattr(state.tasks, one.name))


@pytest.mark.parametrize("seed", range(30))
def test_tasks_are_told_once_and_those_that_count_otherwise_ascend(seed: int) -> None:
    draw = np.random.default_rng(seed)
    state = some_state(draw, carded=True)
    made = some_decision(draw, carded=True)
    became = by_decision(state.tasks, made, state.nodes.allocatable, carded=True)
    concerned = np.concatenate([made.evicted, made.spared, made.nominated, made.bound])
    assert sorted(became.rows.tolist()) == np.unique(concerned).tolist()
    after = became.written(state.tasks)
    counts = [
        np.flatnonzero(getattr(after, name) != getattr(state.tasks, name)) for name in CHANGING[:5]
    ]  # fmt: skip
    assert became.recounted.tolist() == np.unique(np.concatenate(counts)).tolist()
    assert (after.status != state.tasks.status).sum() == len(became.counted)


@pytest.mark.parametrize("many", [1, 40, 3_000])
def test_news_of_many_tasks_in_any_order_is_that_of_each(many: int) -> None:
    draw = np.random.default_rng(many)
    state = small_state(NODES, many, 1)
    rows = draw.integers(0, many, 2 * many)
    said = [(row, RUNNING, int(row) % NODES, at + 1) for at, row in enumerate(rows.tolist())]
    became = by_news(state.tasks, task_news(*said), state.podgroups.alive)
    after = became.written(state.tasks)
    newest = dict(zip(rows.tolist(), range(1, len(rows) + 1), strict=True))
    assert {row: int(after.revision[row]) for row in newest} == newest
    assert np.flatnonzero(after.status == RUNNING).tolist() == sorted(newest) == became.recounted.tolist()
    assert (after.card is state.tasks.card, after.nominated is state.tasks.nominated) == (True, True)
    assert len(became.at) == len(rows)
