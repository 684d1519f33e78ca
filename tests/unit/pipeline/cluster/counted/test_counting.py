"""Amounts that are added to rows of a table, and room that comes free."""

import numpy as np
import pytest

from pipeline.cluster.counted.counting import coming
from pipeline.cluster.snapshot import Snapshot
from pipeline.records import replace
from tests.support.small_states import small_state


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_requests_are_added_as_numpy_adds_them(sign: int, kind: type) -> None:
    state: Snapshot = small_state()
    state = replace(state, tasks=replace(state.tasks, shape=np.zeros(len(state.tasks), np.int32)))
    rows, at = np.arange(len(state.tasks)), np.arange(len(state.tasks), dtype=kind) % 2
    found = np.full((2, state.shapes.request.shape[1]), 7)
    expected = found.copy()
    np.add.at(expected, at, sign * state.shapes.request[state.tasks.shape[rows]])
    state.add_requests(rows, found, at, sign)
    assert found.tolist() == expected.tolist()


def test_what_ends_comes_free_and_what_is_promised_does_not() -> None:
    capacity, used, ending, promised = (np.full((2, 3), amount) for amount in (9, 7, 2, 5))
    assert coming(capacity, used, ending, promised).tolist() == [[-1] * 3] * 2
