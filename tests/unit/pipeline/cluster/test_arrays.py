"""Arrays: what is told apart quickly is told apart as NumPy does."""

import numpy as np
import pytest

from pipeline.cluster.arrays import kinds_of

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
