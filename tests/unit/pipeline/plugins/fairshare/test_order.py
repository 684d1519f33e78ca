"""Which of two queues is served first, where all that is compared before their shares is equal."""

import numpy as np
import pytest

from pipeline.plugins.fairshare.order import Compared, keys_of, less, rank_of

ENDLESS = np.inf


@pytest.mark.parametrize(
    ("older", "younger", "first"),
    [
        ((4, 2), (4, 1), 1),
        ((4, 1), (4, 2), 0),
        ((4, 2), (4, 2), 0),
        ((ENDLESS, 2), (4, 2), 1),
        ((ENDLESS, 2), (9, 2), 1),  # more than there is, and less than without a bound
        ((ENDLESS, 2), (9, 1), 1),
        ((9, 2), (ENDLESS, 2), 0),
        ((ENDLESS, ENDLESS), (ENDLESS, 9), 1),
        ((4, 1), (1, 4), 1),  # neither has less of everything: the smaller part of the whole
        ((1, 4), (4, 1), 0),
    ],
)
def test_the_queue_with_the_smaller_share_goes_first(
    older: tuple[float, float], younger: tuple[float, float], first: int
) -> None:
    share = np.array([older, younger], float)
    nothing, whole = np.zeros((2, 2)), np.array([4.0, 6.0])
    queues = Compared(
        np.full(2, -1, np.int32), np.zeros(2, np.int32), np.arange(2), nothing, share, share, nothing, whole,
        np.ones(2, bool),
    )  # fmt: skip
    keys = keys_of(queues, np.zeros((2, 2)), np.ones(2, bool))
    assert less(keys[1], keys[0]) == bool(first)


def test_a_queue_without_a_podgroup_to_serve_comes_last_among_its_siblings() -> None:
    parent, waits = np.array([-1, -1, 0, 0], np.int32), np.array([False, False, False, True])
    share, nothing = np.ones((4, 1)), np.zeros((4, 1))
    queues = Compared(
        parent, np.array([0, 9, 9, 0], np.int32), np.arange(4), nothing, share, share, nothing, np.ones(1),
        np.ones(1, bool),
    )  # fmt: skip
    keys = keys_of(queues, nothing.copy(), waits)
    assert rank_of(parent, keys, waits).tolist() == [0, 3, 2, 1]
