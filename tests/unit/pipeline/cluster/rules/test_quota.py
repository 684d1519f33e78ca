"""The order in which queues lose, counted from what they hold."""

import numpy as np
import pytest

from pipeline.cluster.rules.quota import LosingOrder, rank_losers


@pytest.mark.parametrize("seed", range(30))
def test_queues_lose_by_their_first_key_then_the_most_used_then_their_last_key(seed: int) -> None:
    rng = np.random.default_rng(seed)
    many = int(rng.integers(1, 9))
    order = LosingOrder(
        rng.integers(0, 2, many), rng.integers(0, 4, (many, 2)), rng.random(many) < 0.3, rng.permutation(many)
    )
    held = rng.integers(0, 4, (many, 2))

    def used(queue: int) -> float:
        parts = [h / d for h, d in zip(held[queue].tolist(), order.deserved[queue].tolist(), strict=True) if d > 0]
        return 1.0 if order.bare[queue] else max([0.0, *parts])

    expected = sorted(range(many), key=lambda queue: (order.first[queue], -used(queue), order.last[queue]))
    for one in (rank_losers, rank_losers.py_func):
        rank = np.zeros(many, np.int64)
        one(order, held, rank)
        assert np.argsort(rank).tolist() == expected
