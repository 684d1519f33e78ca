"""Arrays: what is told apart quickly is told apart as NumPy does."""

import numpy as np
import pytest

from pipeline.cluster.arrays import NONE, kinds_of, paired, unpaired

LINES = ([], [3], [3, 3, 3], [5, 3, 5, 1], [-1, 0])
TABLES = ([[1, 2]], [[1, 2], [1, 2]], [[1, 2], [1, 1], [0, 9], [1, 2]], [[7], [7]], [[7], [3]])


@pytest.mark.parametrize("values", [*LINES, *TABLES], ids=str)
def test_kinds_are_those_that_numpy_finds(values: list[int] | list[list[int]]) -> None:
    table = np.array(values, np.int32)
    kinds, kind = kinds_of(table)
    expected, which = np.unique(table, axis=0, return_inverse=True)
    assert kinds.dtype == expected.dtype
    assert kinds.tolist() == expected.tolist()
    assert kind.tolist() == which.reshape(-1).tolist()
    assert kinds[kind].tolist() == values


def test_pairs_are_told_apart_and_found_again() -> None:
    numbers = [NONE, 0, 1, (1 << 31) - 1]
    first, second = np.array([(one, two) for one in numbers for two in numbers], np.int32).T
    pairs = paired(first, second)
    assert (np.diff(pairs) > 0).all()
    assert [one.tolist() for one in unpaired(pairs)] == [first.tolist(), second.tolist()]
