"""What queues get and may hold of two resources that are divided, and of pods, which are not."""

import numpy as np
import pytest

from pipeline.cluster.arrays import NONE
from pipeline.cluster.resources import PODS
from pipeline.plugins.fairshare.shares import Stated, _divided_down

ANY = np.inf


def shares(*queues: tuple[int, float, float, int]) -> tuple[list[float], list[float]]:
    """Parent, share and limit of each queue, and what it asks for: what it gets of ten, and what it may hold."""
    parent, deserved, limit, asked = (np.array(column)[:, None] for column in zip(*queues, strict=True))
    deserved, limit = (np.repeat(column.astype(float), 3, axis=1) for column in (deserved, limit))
    deserved[:, PODS] = ANY
    plain = tuple(Stated(deserved, limit, np.ones(deserved.shape), np.zeros(deserved.shape)))
    many = np.arange(len(queues))
    fair, may = _divided_down(
        parent[:, 0].astype(np.int32), np.zeros(len(queues), np.int32), many, plain, np.repeat(asked, 3, axis=1),
        np.full(3, 10), 0.0,
    )  # fmt: skip
    assert (fair[:, PODS] == ANY).all()
    assert fair[:, 0].tolist() == fair[:, 1].tolist()
    return fair[:, 0].tolist(), may[:, 0].tolist()


def test_a_queue_may_hold_what_it_deserves_even_while_it_asks_for_less() -> None:
    assert shares((NONE, 4, ANY, 1), (NONE, 0, ANY, 20)) == ([1, 9], [4, 9])


def test_a_queue_may_hold_what_it_gets_where_that_is_more_than_it_deserves() -> None:
    assert shares((NONE, 2, ANY, 20), (NONE, 0, ANY, 20)) == ([6, 4], [6, 4])


def test_no_queue_may_hold_more_than_its_limit() -> None:
    assert shares((NONE, 6, 5, 20), (NONE, 0, ANY, 20)) == ([5, 5], [5, 5])


@pytest.mark.parametrize("deserved", [0, 2])
def test_children_divide_what_their_parent_got(deserved: int) -> None:
    tree = (NONE, 6, ANY, 20), (NONE, 0, 4, 20), (0, deserved, ANY, 20), (0, deserved, ANY, 20)
    assert shares(*tree) == ([8, 2, 4, 4], [8, 2, 4, 4])
