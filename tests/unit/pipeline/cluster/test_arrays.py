"""Arrays: sets of rows are those that NumPy finds, sums of slices what their rows add up to; pairs are found again."""

import numpy as np
import pytest

from pipeline.cluster.arrays import NONE, distinct, is_among, paired, sums_of_slices, unpaired, without

LINES = ([], [3], [3, 3, 3], [5, 3, 5, 1], [-1, 0], [2, 90, 2, 7])


@pytest.mark.parametrize("values", LINES, ids=str)
def test_sets_of_rows_are_those_that_numpy_finds(values: list[int]) -> None:
    rows, some = np.array(values, np.int32), np.array([3, 90, -1])
    expected = np.unique(rows)
    assert distinct(rows).tolist() == expected.tolist()
    assert without(rows, some).tolist() == np.setdiff1d(rows, some).tolist()
    assert without(rows, some[:0]).tolist() == expected.tolist()
    assert distinct(rows).dtype == without(rows, some).dtype == rows.dtype


@pytest.mark.parametrize("values", LINES, ids=str)
@pytest.mark.parametrize("some", [np.array([3, 90, -1]), np.array([7, 7, 3], np.int32), [5], (), (200, -200)], ids=str)
def test_what_is_among_others_is_what_numpy_finds(values: list[int], some: np.ndarray) -> None:
    for kind in (np.int32, np.int64):
        found = is_among(np.array(values, kind), some)
        assert (found.dtype, found.tolist()) == (bool, np.isin(np.array(values, kind), some).tolist())


def test_pairs_are_told_apart_and_found_again() -> None:
    numbers = [NONE, 0, 1, (1 << 31) - 1]
    first, second = np.array([(one, two) for one in numbers for two in numbers], np.int32).T
    pairs = paired(first, second)
    assert (np.diff(pairs) > 0).all()
    assert [one.tolist() for one in unpaired(pairs)] == [first.tolist(), second.tolist()]


def test_the_sums_of_slices_are_what_their_rows_add_up_to() -> None:
    start, stop = np.array([0, 2, 1, 4]), np.array([4, 2, 3, 4])
    for values in (np.array([5, -2, 7, 1]), np.arange(8).reshape(4, 2), np.array([True, False, True, True])):
        expected = [values[first:last].sum(axis=0).tolist() for first, last in zip(start, stop, strict=True)]
        assert sums_of_slices(values, start, stop).tolist() == expected
