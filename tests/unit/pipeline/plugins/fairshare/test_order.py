"""Which of two queues is served first: what is compared before their shares, and shares where that is equal."""

from typing import Any

import numpy as np
import pytest

from pipeline.cluster.arrays import NONE, Floats
from pipeline.plugins.fairshare.order import AFTER, Compared, keys_of, less, rank_of

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


def keys(
    *queues: dict[str, float | tuple[float, float]],
    parent: tuple[int, ...] = (NONE, NONE),
    waits: tuple[bool, ...] = (True, True),
) -> Floats:
    """Keys of queues of two resources, of which there are 8 each: amounts are 0, and bounds 8, if nothing is said."""

    def column(name: str, otherwise: float) -> Floats:
        return np.array([np.broadcast_to(one.get(name, otherwise), 2) for one in queues], float)

    compared = Compared(
        np.array(parent, np.int32), column("priority", 0)[:, 0].astype(np.int32), np.arange(len(queues)),
        column("fair", 8), column("deserved", 0), column("bound", 8), column("holds", 0), np.full(2, 8.0),
        np.ones(2, bool),
    )  # fmt: skip
    return keys_of(compared, column("next", 1), np.array(waits))


@pytest.mark.parametrize(
    ("first", "later"),
    [
        # No more than its fair share of some resource, though it holds a larger part of what it may.
        ({"fair": (2, 4), "holds": (3, 4)}, {"fair": (1, 2), "holds": (3, 3)}),
        # Within what it deserves of every resource once its next podgroup has started.
        ({"deserved": 4, "holds": 3}, {"deserved": (4, 3), "holds": (2, 3)}),
        ({"deserved": 4, "holds": 3}, {"deserved": 3, "holds": 3, "priority": 9}),
        ({"priority": 2, "holds": 4}, {"priority": 1}),
        # Nothing of a resource of which it has no share; what it does not take of it does not count.
        ({"holds": (8, 4)}, {"bound": (8, 0), "next": (0, 0.001)}),
        ({"bound": (8, 0), "next": (1, 0)}, {"holds": (8, 4)}),
        # The smaller dominant share with its next podgroup, without a bound of the whole; then without it.
        ({"holds": (2, 1)}, {"bound": np.inf, "holds": (3, 0)}),
        ({"bound": np.inf, "holds": (2, 1)}, {"holds": (3, 0)}),
        ({"holds": 1, "next": 3}, {"holds": 2, "next": 2}),
    ],
)
def test_what_is_compared_first_decides(first: dict[str, Any], later: dict[str, Any]) -> None:
    one, other = keys(first, later)
    assert less(one, other)
    other, one = keys(later, first)
    assert less(one, other)


def test_an_inner_queue_is_ranked_by_what_its_best_child_that_has_a_podgroup_asks_for_next() -> None:
    children = {"holds": 0, "next": 1}, {"holds": 4, "next": 3}, {"holds": 1, "next": 2}
    found = keys({"next": 9}, *children, parent=(NONE, 0, 0, 0), waits=(False, False, True, True))
    assert found[0, AFTER] == 2 / 8


def test_an_inner_queue_with_a_podgroup_of_its_own_is_ranked_by_that() -> None:
    found = keys({"next": 3}, {"next": 1}, parent=(NONE, 0), waits=(True, True))
    assert found[0, AFTER] == 3 / 8


def test_a_queue_without_a_podgroup_to_serve_comes_last_among_its_siblings() -> None:
    parent, waits = np.array([-1, -1, 0, 0], np.int32), np.array([False, False, False, True])
    share, nothing = np.ones((4, 1)), np.zeros((4, 1))
    queues = Compared(
        parent, np.array([0, 9, 9, 0], np.int32), np.arange(4), nothing, share, share, nothing, np.ones(1),
        np.ones(1, bool),
    )  # fmt: skip
    keys = keys_of(queues, nothing.copy(), waits)
    assert rank_of(parent, keys, waits).tolist() == [0, 3, 2, 1]
