"""Fold over random histories: order kept, batches cut anywhere, repeats and late copies thrown in."""

from dataclasses import fields
from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.cluster import checkpoint
from pipeline.cluster.arrays import NONE
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import BOUND, PENDING, RUNNING, SUCCEEDED, TERMINATING
from pipeline.cluster.updates.events import Changes
from pipeline.cluster.updates.fold import fold
from tests.support.depth import sampled
from tests.support.encoded import encoded
from tests.support.histories import GROUPS, NODES, TASKS, begun, folded, histories, news, on_cards, task_event, told
from tests.support.new_rows import appending, describing
from tests.support.small_states import podgroups_table, small_state, task_news, tasks_table
from tests.support.twins import uncompiled


def columns(state: Snapshot) -> list[Any]:
    tables = (state.nodes, state.podgroups, state.tasks, state.shapes, state.roles, state.queues)
    return [getattr(table, field.name) for table in tables for field in fields(table)]


@given(histories, st.data())
def test_duplicates_and_late_repeats_change_nothing(history: list[tuple[Any, ...]], data: st.DataObject) -> None:
    clean = told(history)
    noisy: list[Changes] = []
    for at, change in enumerate(clean):
        noisy.append(change)
        noisy += [clean[again] for again in data.draw(st.lists(st.integers(0, at), max_size=3))]
    start = begun()
    assert encoded(folded(start, noisy)) == encoded(folded(start, clean))


@given(st.lists(task_event, max_size=30), st.sets(st.integers(1, 29)))
def test_how_news_is_cut_into_batches_does_not_matter(events: list[tuple[int, ...]], cuts: set[int]) -> None:
    said = [
        (row, status, node if status in (BOUND, RUNNING) else NONE, revision, life, float(revision))
        for revision, (row, status, node, life) in enumerate(events, 1)
    ]
    edges = [0, *sorted(cut for cut in cuts if cut < len(said)), len(said)]
    batches = [on_cards(Changes(tasks=task_news(*said[a:b]))) for a, b in pairwise(edges)]
    single = [on_cards(Changes(tasks=task_news(one))) for one in said]
    start = begun()
    assert encoded(folded(start, batches)) == encoded(folded(start, single))


@given(histories)
def test_a_snapshot_never_changes(history: list[tuple[Any, ...]]) -> None:
    state = begun()
    for change in told(history):
        before = encoded(state)
        after = fold(state, change)
        assert encoded(state) == before
        assert not any(column.flags.writeable for column in columns(after))
        state = after


@given(histories, st.data())
def test_replay_from_any_checkpoint_rebuilds_the_same_bytes(
    history: list[tuple[Any, ...]], data: st.DataObject
) -> None:
    changes = told(history)
    cut = data.draw(st.integers(0, len(changes)))
    # Recovery may read again what the checkpoint contains already.
    overlap = data.draw(st.integers(0, cut))
    start = begun()
    saved = encoded(folded(start, changes[:cut]))
    recovered = folded(checkpoint.decode(saved), changes[overlap:])
    assert encoded(recovered) == encoded(folded(start, changes))


@given(histories)
def test_columns_never_contradict_each_other(history: list[tuple[Any, ...]]) -> None:
    state = folded(begun(), told(history))
    tasks, groups = state.tasks, state.podgroups
    held = np.isin(tasks.status, (BOUND, RUNNING, TERMINATING))
    assert (tasks.node[held] != NONE).all()
    assert (tasks.node[tasks.status == PENDING] == NONE).all()
    assert (tasks.nominated[tasks.status != PENDING] == NONE).all()
    assert (tasks.card[held] != NONE).all()
    waits = tasks.status == PENDING
    assert (tasks.card[waits] == NONE).all()
    assert ((tasks.nominated_card != NONE) == (tasks.nominated != NONE)).all()
    on, free = state.card_room, state.nodes.cards.copy()
    for row in np.flatnonzero(held).tolist():
        free[tasks.node[row], tasks.card[row]] -= 3
    assert (on.idle == free).all()
    assert on.nominated.sum() == 3 * (waits & (tasks.nominated != NONE)).sum()
    assert not state.room.nominated[~state.nodes.allocatable.any(axis=1)].any()
    stale = ~np.isnan(groups.stale_since)
    assert (state.counts.ready[stale] < groups.min_available[stale]).all()
    assert (state.counts.running[stale] > 0).all()


@given(histories)
def test_what_is_promised_is_charged_once_to_tasks_that_wait_or_move(history: list[tuple[Any, ...]]) -> None:
    start = small_state(NODES, GROUPS, TASKS)
    state = folded(start, [news(revision, *said) for revision, said in enumerate(history, 1)])
    tasks, left = state.tasks, state.nodes.allocatable.copy()
    counted = np.zeros((3, GROUPS), int)  # ready, promised, waiting without a promise
    for row in range(len(tasks)):
        status, node, nominated = int(tasks.status[row]), int(tasks.node[row]), int(tasks.nominated[row])
        asks, group = state.shapes.request[tasks.shape[row]], int(tasks.podgroup[row])
        assert nominated == NONE or status in (PENDING, TERMINATING)
        if status in (BOUND, RUNNING):
            left[node] -= asks
        if nominated != NONE:
            left[nominated] -= asks
            counted[1, group] += 1
        counted[0, group] += status in (BOUND, RUNNING, SUCCEEDED)
        counted[2, group] += status == PENDING and nominated == NONE
    assert (state.room.future == left).all()
    assert (np.array([state.counts.ready, state.counts.waiting, state.counts.pending]) == counted).all()


@given(histories)
@settings(max_examples=sampled(25))
def test_the_compiled_fold_and_its_plain_twin_agree(history: list[tuple[Any, ...]]) -> None:
    start = begun()
    compiled = folded(start, told(history))
    with uncompiled():
        plain = folded(start, told(history))
    assert encoded(plain) == encoded(compiled)


@given(histories, st.lists(st.integers(0, GROUPS * TASKS), min_size=1, max_size=4))
def test_growth_moves_no_row_and_forgets_nothing(history: list[tuple[Any, ...]], before: list[int]) -> None:
    state = folded(begun(), told(history))
    fresh = tasks_table([GROUPS] * len(before), [NONE] * len(before))
    grown = fold(state, Changes(new_rows=appending(state, podgroups_table(1), fresh, sorted(before))))
    known = len(state.tasks)
    for name in ("podgroup", "status", "node", "nominated", "card", "incarnation", "revision", "role"):
        assert (getattr(grown.tasks, name)[:known] == getattr(state.tasks, name)).all()
    assert sorted(grown.tasks.order) == list(range(len(grown.tasks)))
    assert (np.argsort(grown.tasks.order[:known]) == np.argsort(state.tasks.order)).all()


@given(histories, st.integers(0, GROUPS - 1), st.integers(1, TASKS))
def test_a_podgroup_described_anew_keeps_its_tasks(history: list[tuple[Any, ...]], group: int, minimum: int) -> None:
    state = folded(begun(), told(history))
    if not state.podgroups.alive[group]:
        return
    after = fold(state, Changes(new_rows=describing(state, group, minimum, at=99.0)))
    assert after.tasks_of(GROUPS).tolist() == state.tasks_of(group).tolist()
    assert after.counts.ready[GROUPS] == state.counts.ready[group]
    assert (after.tasks.status == state.tasks.status).all()
