"""Bounds of queues in a reclaim, against the same counted queue by queue."""

import numpy as np
import pytest

from pipeline.cluster.arrays import NONE, Rows, in_a_row
from pipeline.cluster.queue_tree import chain
from pipeline.cluster.resources import PODS
from pipeline.plugins.capacity.reclaim import answering_strictly, sets_within_bounds


@pytest.mark.parametrize("seed", range(60))
def test_ceilings_and_shares_are_kept_or_not_as_counted_queue_by_queue(seed: int) -> None:
    rng = np.random.default_rng(seed)
    parent, many = np.array([NONE, 0, 0, 1, 1], np.int32), 12
    columns = (
        rng.integers(0, 4, many).astype(np.int32), rng.integers(0, 3, many).astype(np.int32),
        rng.integers(2, 5, 4).astype(np.int32), rng.integers(0, 3, (3, 4)),
    )  # fmt: skip
    allocated, request = rng.integers(4, 12, (5, 4)), rng.integers(0, 4, 4)
    ceiling, deserved = rng.integers(6, 14, (5, 4)), rng.integers(0, 9, (5, 4))
    stated, guarantee = rng.random((5, 4)) < 0.5, rng.integers(0, 2, (5, 4))
    rows, keeps_shares = rng.permutation(many)[: rng.integers(0, many)], seed % 2 == 0

    def kept(rows: Rows) -> bool:
        lost, taken = np.zeros((5, 4), int), np.zeros((5, 4), int)
        for queue in chain(parent, 3):
            taken[queue] += request
        for row in rows:
            for queue in chain(parent, int(columns[2][columns[0][row]])):
                lost[queue] += columns[3][columns[1][row]]
        after = allocated + taken - lost
        protected = (lost > 0) & (taken < lost) & (stated | (guarantee > 0)) & (np.arange(4) != PODS)
        under = all((after[queue] <= ceiling[queue])[request > 0].all() for queue in chain(parent, 3))
        return under and not (keeps_shares and (protected & (after < deserved)).any())

    bounds, sets = (parent, ceiling, deserved, stated, guarantee), [rows, rows[:0], rows[::2]]
    found = sets_within_bounds(3, request, *in_a_row(sets), keeps_shares, columns, allocated, bounds)
    assert found.tolist() == [*map(kept, sets)]


@pytest.mark.parametrize(
    ("with_share", "expected"),
    [
        ((), [[], [], [], [3], [4], [5, 4]]),
        ((0,), [[0], [1, 0], [], [3, 1, 0], [4, 0], [5, 4, 0]]),
        ((1,), [[], [1], [], [3, 1], [4], [5, 4]]),
        ((2,), [[], [], [], [3], [4], [5, 4]]),
    ],
)
def test_ancestors_of_both_queues_answer_up_to_the_last_that_has_a_share(
    with_share: tuple[int, ...], expected: list[list[int]]
) -> None:
    """Of six queues 2 asks, 1 is above 2 and 3, 4 above 5, and 0 above all."""
    parent, counts = np.array([NONE, 0, 1, 1, 0, 4], np.int32), np.zeros((6, 1), bool)
    counts[list(with_share)] = True
    found = answering_strictly(parent, 2, counts)
    assert [[one for one in row if one != NONE] for row in found.tolist()] == expected
