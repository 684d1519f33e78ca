"""News without what its reader has already; columns of all types and shapes come out of a bundle as they went in."""

import pickle

import numpy as np
import pytest

from pipeline.cluster.arrays import frozen
from pipeline.cluster.counted.budgets import Budgets
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import RUNNING
from pipeline.cluster.updates.copy_on_write import picked
from pipeline.cluster.updates.events import Changes, News
from pipeline.cluster.updates.fold import fold
from pipeline.cluster.updates.lean import bundled, full, lean, opened
from pipeline.cluster.vocabulary import Vocabulary
from pipeline.records import replace
from tests.support.encoded import encoded
from tests.support.new_rows import appending
from tests.support.small_states import podgroups_table, small_state, task_news


@pytest.fixture
def state() -> Snapshot:
    return small_state()


def arriving(state: Snapshot, vocabulary: Vocabulary, budgets: Budgets | None = None) -> Changes:
    """A podgroup with one task."""
    tasks = picked(state.tasks, np.array([0]))
    mine = replace(tasks, podgroup=frozen([len(state.podgroups)], np.int32))
    rows = appending(state, podgroups_table(1), mine, [len(state.tasks)])
    rows = replace(rows, vocabulary=vocabulary, budgets=budgets if budgets is not None else state.budgets)
    return Changes(new_rows=rows)


def arrives_whole(state: Snapshot, news: News) -> bool:
    sent = pickle.loads(pickle.dumps(lean(news, state)))
    return encoded(fold(state, full(sent, state))) == encoded(fold(state, news))


def test_news_without_new_words_brings_none(state: Snapshot) -> None:
    same = replace(state.vocabulary)
    said = lean(arriving(state, same), state)
    assert said.words == ()
    assert said.rows is not None
    assert said.rows.budgets is None
    assert arrives_whole(state, arriving(state, same))


def test_new_words_are_sent_without_the_known_ones(state: Snapshot) -> None:
    words = state.vocabulary
    more = replace(words, namespaces=(*words.namespaces, "other"), label_sets=(*words.label_sets, (("app", "x"),)))
    said = lean(arriving(state, more), state)
    assert said.words == (("label_sets", 1, ((("app", "x"),),)), ("namespaces", 1, ("other",)))
    assert arrives_whole(state, arriving(state, more))


def test_words_that_do_not_begin_with_the_known_ones_are_sent_whole(state: Snapshot) -> None:
    state = replace(state, vocabulary=replace(state.vocabulary, cooldowns=((3, 5.0),)))
    more = replace(state.vocabulary, cooldowns=((1, 2.0), (3, 5.0)))
    assert lean(arriving(state, more), state).words == (("cooldowns", 0, ((1, 2.0), (3, 5.0))),)
    assert arrives_whole(state, arriving(state, more))


def test_other_budgets_are_sent(state: Snapshot) -> None:
    other = Budgets(frozen([2], np.int32), frozen([0], np.int32), frozen(np.ones((1, 1)), np.bool_))
    said = lean(arriving(state, state.vocabulary, other), state)
    assert said.rows is not None
    assert said.rows.budgets is other
    assert arrives_whole(state, arriving(state, state.vocabulary, other))


def test_all_columns_of_new_rows_are_sent_as_one_array_for_each_type(state: Snapshot) -> None:
    said = lean(arriving(state, state.vocabulary), state)
    assert said.rows is not None
    kinds = [values.dtype for values in said.rows.columns.values]
    assert len(set(kinds)) == len(kinds) < 8
    assert arrives_whole(state, arriving(state, state.vocabulary))


def test_news_of_tasks_is_what_it_was(state: Snapshot) -> None:
    news = Changes(tasks=task_news((0, RUNNING, 1, 1, 0, 5.0)))
    assert lean(news, state).news is news
    assert arrives_whole(state, news)


def test_columns_keep_their_types_their_shapes_and_their_order() -> None:
    columns = [
        np.arange(6, dtype=np.int64).reshape(3, 2), np.array([True, False]), np.zeros((0, 4), np.int64),
        np.array([0.5, np.nan]), np.arange(3, dtype=np.int32), np.arange(24, dtype=np.int64).reshape(2, 3, 4).T,
    ]  # fmt: skip
    found = list(opened(bundled(columns)))
    assert [(one.dtype, one.shape) for one in found] == [(one.dtype, one.shape) for one in columns]
    for one, other in zip(found, columns, strict=True):
        np.testing.assert_array_equal(one, other)


def test_there_is_one_array_for_each_type_and_what_comes_out_is_read_only() -> None:
    bundle = bundled([np.arange(3), np.arange(2), np.array([True])])
    assert [values.dtype for values in bundle.values] == [np.int64, np.bool_]
    for column in opened(bundle):
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 0


def test_no_columns_are_an_empty_bundle() -> None:
    assert list(opened(bundled([]))) == []
