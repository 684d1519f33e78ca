"""Random histories of a small state: what may happen to its tasks, nodes and podgroups, and what we decide."""

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from pipeline.cluster.arrays import NONE, frozen
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import BOUND, FAILED, GONE, PENDING, RUNNING, SUCCEEDED, TERMINATING
from pipeline.cluster.updates.events import CURRENT, EVICTED, REPLACED, Changes
from pipeline.cluster.updates.fold import fold
from tests.support.small_states import column, decided, departure, node_news, small_state, task_news

NODES, GROUPS, TASKS = 4, 3, 4

task_event = st.tuples(
    st.integers(0, GROUPS * TASKS - 1),
    st.sampled_from((PENDING, BOUND, RUNNING, TERMINATING, SUCCEEDED, FAILED, GONE, EVICTED, REPLACED)),
    st.integers(0, NODES - 1),
    st.sampled_from((CURRENT, CURRENT, 0, 1, 2)),
)
histories = st.lists(
    st.one_of(
        task_event.map(lambda one: ("task", *one)),
        task_event.map(lambda one: ("task", *one)),
        st.tuples(st.just("node"), st.integers(0, NODES - 1), st.integers(0, 9000)),
        st.tuples(st.just("left"), st.integers(0, NODES - 1)),
        st.tuples(st.just("removed"), st.integers(0, GROUPS - 1)),
        st.tuples(st.just("evict"), st.integers(0, GROUPS * TASKS - 1), st.integers(0, 1)),
        st.tuples(st.just("spare"), st.integers(0, GROUPS * TASKS - 1), st.integers(0, 1)),
        st.tuples(
            st.just("promise"), st.integers(0, GROUPS * TASKS - 1), st.integers(NONE, NODES - 1), st.integers(0, 1)
        ),
        st.tuples(st.just("bind"), st.integers(0, GROUPS * TASKS - 1), st.integers(0, NODES - 1), st.integers(0, 1)),
        st.tuples(st.just("move"), st.integers(0, GROUPS * TASKS - 1), st.integers(0, NODES - 1), st.integers(0, 1)),
    ),
    max_size=24,
)  # fmt: skip


def news(revision: int, kind: str, *said: int) -> Changes:
    """One event of a history, whose place in it is its revision (and its number, if it is a decision of ours)."""
    if kind == "task":
        row, status, node, life = said
        place = node if status in (BOUND, RUNNING) else NONE
        return Changes(tasks=task_news((row, status, place, revision, life, float(revision))))
    if kind == "node":
        return Changes(nodes=node_news(said[0], said[1], revision))
    if kind in ("left", "removed"):
        return Changes(**{kind: departure(said[0], revision)})
    if kind == "move":
        row, _, life = said
        return Changes(decided=decided(revision, float(revision), evicted=[(row, life)], nominated=[said]))
    name = {"evict": "evicted", "spare": "spared", "promise": "nominated", "bind": "bound"}[kind]
    return Changes(decided=decided(revision, float(revision), **{name: [said]}))


def begun() -> Snapshot:
    """The state in which every node has two cards, and every task asks for a part of one."""
    state = small_state(NODES, GROUPS, TASKS)
    nodes = replace(state.nodes, cards=column([[8, 4]], np.int64, NODES))
    return replace(state, nodes=nodes, shapes=replace(state.shapes, on_card=column([3], np.int64, 1)))


def on_cards(changes: Changes) -> Changes:
    """Whoever is put on a node gets the first of its cards, or the second, by the sum of their rows."""

    def cards(rows: Any, places: Any) -> Any:
        return frozen(np.where(places == NONE, NONE, (rows + places) % 2), np.int32)

    if changes.tasks is not None:
        said = changes.tasks
        return replace(changes, tasks=replace(said, card=cards(said.row, said.node)))
    if changes.decided is not None:
        made = changes.decided
        made = replace(made, nominated_card=cards(made.nominated, made.nominated_node))
        return replace(changes, decided=replace(made, bound_card=cards(made.bound, made.bound_node)))
    return changes


def told(history: list[tuple[Any, ...]]) -> list[Changes]:
    return [on_cards(news(revision, *said)) for revision, said in enumerate(history, 1)]


def folded(state: Snapshot, changes: list[Changes]) -> Snapshot:
    for change in changes:
        state = fold(state, change)
    return state
