"""What the fold carries is what the columns say: totals and the index of tasks, after any history."""

from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipeline.cluster.arrays import NONE, frozen
from pipeline.cluster.counted.task_index import index_of
from pipeline.cluster.counted.totals import totals_of
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import BOUND, RUNNING, TERMINATING
from pipeline.cluster.updates.copy_on_write import picked
from pipeline.cluster.updates.events import Changes, Listed, NodesRelaid, QueuesRelaid
from pipeline.cluster.updates.fold import fold
from pipeline.cluster.updates.widen import widened
from tests.support.histories import GROUPS, begun, histories, told
from tests.support.new_rows import NOTHING, appending, describing
from tests.support.small_states import column, nodes_table, podgroups_table, queues_table, tasks_table

#: What else may happen between two events of a history.
other_steps = st.one_of(
    st.tuples(st.just("grow"), st.lists(st.integers(0, 12), min_size=1, max_size=3), st.integers(0, 2)),
    st.tuples(st.just("describe"), st.integers(0, GROUPS - 1), st.integers(1, 4)),
    st.tuples(st.just("nodes"), st.integers(0, 99), st.booleans()),
    st.tuples(st.just("queues"), st.permutations(range(3)), st.just(0)),
    st.tuples(st.just("widen"), st.just(0), st.just(0)),
    st.tuples(st.just("list"), st.booleans(), st.just(0)),
)


def same(one: Any, other: Any) -> bool:
    if is_dataclass(one):
        return all(same(getattr(one, part.name), getattr(other, part.name)) for part in fields(one))
    return bool(one.dtype == other.dtype and np.array_equal(one, other))


def checked(state: Snapshot, *, look: bool) -> None:
    assert same(state.totals, totals_of(state.counted))
    anew = replace(state, revision=state.revision)
    for name in ("role_start", "subgroup_start", "role_minimum"):
        assert same(getattr(state, name), getattr(anew, name))
    if look:
        assert same(state.index, index_of(state.tasks, len(state.nodes), len(state.podgroups)))


def grow(state: Snapshot, before: list[int], subgroup: int) -> Snapshot:
    """A podgroup and tasks of it, and of known ones, with subgroups where the history has some."""
    owner = [len(state.podgroups), *[0] * (len(before) - 1)]
    fresh = replace(tasks_table(owner, [NONE] * len(owner)), best_effort=column(subgroup == 2, bool, len(owner)))
    wide = replace(podgroups_table(1), min_resources=state.podgroups.min_resources[:1])
    return fold(
        state, Changes(new_rows=appending(state, wide, fresh, sorted(min(b, len(state.tasks)) for b in before)))
    )


def describe(state: Snapshot, group: int, minimum: int) -> Snapshot:
    if not state.podgroups.alive[group] or len(state.vocabulary.resources) > 3:
        return state
    return fold(state, Changes(new_rows=describing(state, group, minimum, at=99.0)))


def relay_nodes(state: Snapshot, seed: int, drop: bool) -> Snapshot:
    """Nodes in another order and one more; with ``drop`` one that holds nothing is no more."""
    count = len(state.nodes)
    node_of = np.random.default_rng(seed).permutation(count + 1)[:count].astype(np.int32)
    held = np.isin(state.tasks.status, (BOUND, RUNNING, TERMINATING))
    empty = np.setdiff1d(np.arange(count), state.tasks.node[held])
    if drop and len(empty):
        node_of[empty[0]] = NONE
    there, table = node_of != NONE, nodes_table(count + 1)
    allocatable = np.zeros((count + 1, len(state.vocabulary.resources)), np.int64)
    allocatable[node_of[there]] = state.nodes.allocatable[there]
    cards = np.zeros((count + 1, 2), np.int64)
    cards[node_of[there]] = state.nodes.cards[there][:, ::-1]
    table = replace(table, allocatable=frozen(allocatable, np.int64), cards=frozen(cards, np.int64))
    swapped = frozen(np.tile([1, 0], (count, 1)), np.int32)
    levels = frozen([0], np.int32)
    return fold(
        state, NodesRelaid(state.vocabulary, table, state.topology, frozen(node_of, np.int32), swapped, levels, 1)
    )


def relay_queues(state: Snapshot, order: list[int]) -> Snapshot:
    if len(state.queues) != 2 or len(state.vocabulary.resources) > 3:
        return state
    queue_of = frozen(order[:2], np.int32)
    return fold(state, QueuesRelaid(state.vocabulary.resources, queues_table(3), queue_of, 1))


def widen(state: Snapshot) -> Snapshot:
    if len(state.vocabulary.resources) > 3:
        return state
    wide = widened(state, (*state.vocabulary.resources, "gpu"))
    new_rows = appending(wide, picked(wide.podgroups, NOTHING), picked(wide.tasks, NOTHING), [])
    return fold(state, Changes(new_rows=new_rows))


def list_again(state: Snapshot, lives: bool) -> Snapshot:
    tasks, groups, nodes = (np.arange(len(table)) for table in (state.tasks, state.podgroups, state.nodes))
    cards = frozen(np.tile([0, 1], (len(nodes), 1)), np.int32)
    listed = Listed(
        replace(state),
        tasks,
        groups,
        nodes.astype(np.int32),
        cards,
        frozen(np.arange(len(state.queues)), np.int32),
        lives,
    )
    return fold(state, listed)


STEPS: dict[str, Any] = {
    "grow": grow,
    "describe": describe,
    "nodes": relay_nodes,
    "queues": lambda state, order, _: relay_queues(state, order),
    "widen": lambda state, *_: widen(state),
    "list": lambda state, lives, _: list_again(state, lives),
}


@given(histories, st.dictionaries(st.integers(0, 12), other_steps, max_size=4), st.sets(st.integers(0, 24)))
def test_totals_and_index_that_are_carried_are_those_of_the_columns(
    history: list[tuple[Any, ...]], others: dict[int, tuple[Any, ...]], looks: set[int]
) -> None:
    state = begun()
    for at, change in enumerate(told(history)):
        if at in others:
            kind, *said = others[at]
            state = STEPS[kind](state, *said)
            checked(state, look=at in looks)
        if change.nodes is None or len(state.vocabulary.resources) == 3:
            state = fold(state, change)
        checked(state, look=at in looks)
    checked(state, look=True)
