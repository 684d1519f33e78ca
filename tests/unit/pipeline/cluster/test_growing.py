"""Columns that grow: what was given out stays as it was, and known rows are copied only where they have to be."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from pipeline.cluster.arrays import frozen
from pipeline.cluster.growing import extended, writable_copy


def column(*values: int) -> NDArray[Any]:
    return frozen(values, np.int32)


def grown() -> NDArray[Any]:
    """A column of three rows with room behind it."""
    return extended(column(1, 2), column(3))


def test_a_column_with_room_grows_in_the_same_memory() -> None:
    before = grown()
    after = extended(before, column(4))
    assert np.shares_memory(before, after)
    assert (before.tolist(), after.tolist()) == ([1, 2, 3], [1, 2, 3, 4])
    assert not after.flags.writeable


def test_a_column_that_grows_twice_is_copied_the_second_time() -> None:
    before = grown()
    one, other = extended(before, column(4)), extended(before, column(5))
    assert (one.tolist(), other.tolist()) == ([1, 2, 3, 4], [1, 2, 3, 5])
    assert not np.shares_memory(one, other)


def test_a_column_without_room_is_copied() -> None:
    before = grown()
    after = extended(before, frozen(np.arange(1_000), np.int32))
    assert not np.shares_memory(before, after)
    assert after.tolist() == [1, 2, 3, *range(1_000)]


@pytest.mark.parametrize(
    "part", [lambda one: one[:2], lambda one: one[1:], lambda one: one[::-1], lambda one: one.view(np.uint32)]
)
def test_what_is_no_whole_column_is_copied(part: Any) -> None:
    before = part(grown())
    after = extended(before, np.array([9], before.dtype))
    assert after.tolist() == [*before.tolist(), 9]
    assert not np.shares_memory(before, after)


def test_a_copy_that_is_still_written_to_is_copied() -> None:
    before = writable_copy(column(1, 2))
    after = extended(before, column(3))
    before[0] = 7
    assert after.tolist() == [1, 2, 3]


def test_a_copy_has_room_once_it_is_sealed() -> None:
    before = writable_copy(frozen([[1, 2], [3, 4]], np.int64))
    before[0, 0] = 5
    before.flags.writeable = False
    after = extended(before, frozen([[6, 7]], np.int64))
    assert np.shares_memory(before, after)
    assert after.tolist() == [[5, 2], [3, 4], [6, 7]]


def test_only_its_rows_are_sent_to_another_process() -> None:
    buffers = list[Any]()
    sent = pickle.dumps(grown(), 5, buffer_callback=buffers.append)
    assert [one.raw().nbytes for one in buffers] == [12]
    assert pickle.loads(sent, buffers=buffers).tolist() == [1, 2, 3]


def test_of_many_threads_that_append_to_one_column_each_gets_its_own_rows() -> None:
    before = extended(frozen(np.arange(50_000), np.int32), column(0))
    with ThreadPoolExecutor(8) as threads:
        after = list(threads.map(lambda row: extended(before, column(row)), range(64)))
    assert [int(one[-1]) for one in after] == list(range(64))


@given(st.lists(st.tuples(st.integers(0, 3), st.lists(st.integers(0, 9), max_size=90)), max_size=12))
def test_columns_are_as_if_each_had_been_put_together_anew(steps: list[tuple[int, list[int]]]) -> None:
    """Any column so far grows by some rows, again and again."""
    found, told = [column()], [list[int]()]
    for at, rows in steps:
        found.append(extended(found[at % len(found)], column(*rows)))
        told.append([*told[at % len(told)], *rows])
    assert [one.tolist() for one in found] == told
