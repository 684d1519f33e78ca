"""Resources: what is counted column by column is what is counted row by row."""

import numpy as np
import pytest

from pipeline.cluster.resources import fits, slots


@pytest.mark.parametrize("seed", range(20))
def test_a_request_fits_where_every_resource_that_it_asks_for_does(seed: int) -> None:
    rng = np.random.default_rng(seed)
    request, room = rng.integers(-1, 4, 5), rng.integers(-2, 6, (30, 5))
    each = [all(there >= asks for asks, there in zip(request, row, strict=True) if asks > 0) for row in room]
    assert fits(request, room).tolist() == each
    assert fits(np.tile(request, (30, 1)), room).tolist() == each
    assert [bool(fits(request, row)) for row in room] == each


@pytest.mark.parametrize("seed", range(20))
def test_as_many_tasks_fit_a_node_as_can_be_taken_from_it(seed: int) -> None:
    rng = np.random.default_rng(seed)
    request, room = rng.integers(0, 4, 3) + np.array([1, 0, 0]), rng.integers(-2, 12, (30, 3))
    for row, many in zip(room, slots(request, room).tolist(), strict=True):
        assert bool(fits(request * max(many, 1), row)) == (many > 0)
        assert not fits(request * (many + 1), row)
