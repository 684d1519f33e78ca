"""The order in which queues lose, counted from what they hold; and what several quotas grant together."""

import numpy as np
import pytest

from pipeline.cluster.arrays import NONE, Bools, Rows
from pipeline.cluster.rules.quota import LosingOrder, agreed, rank_losers, run_end


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


def _granted(sizes: Rows, allowed: int, unit: Rows) -> Bools:
    """A quota on sizes: units go in order while no more than ``allowed`` goes."""
    result, first = np.zeros(len(sizes), bool), 0
    while first < len(sizes):
        stop = run_end.py_func(unit, first)
        mine = int(sizes[first:stop].sum())
        result[first:stop] = mine <= allowed
        allowed -= mine if mine <= allowed else 0
        first = stop
    return result


@pytest.mark.parametrize("seed", range(40))
def test_candidates_go_by_several_quotas_as_if_each_were_asked_about_alone_beside_those_that_go(seed: int) -> None:
    rng = np.random.default_rng(seed)
    many, quotas = int(rng.integers(0, 30)), int(rng.integers(1, 4))
    sizes, allowed = rng.integers(0, 4, (quotas, many)), rng.integers(0, 20, quotas).tolist()
    number = np.sort(rng.integers(0, 12, many))
    unit = np.where(number % 2, number, NONE)

    def said(at: Rows) -> list[Bools]:
        return [_granted(mine[at], least, unit[at]) for mine, least in zip(sizes, allowed, strict=True)]

    expected, first = np.zeros(many, bool), 0
    while first < many:
        stop = run_end.py_func(unit, first)
        at = np.concatenate([np.flatnonzero(expected), np.arange(first, stop)])
        expected[first:stop] = all(opinion.all() for opinion in said(at))
        first = stop
    assert agreed(said, many).tolist() == expected.tolist()


def test_what_one_quota_alone_refuses_is_dropped_at_once() -> None:
    asked = list[int]()

    def said(at: Rows) -> list[Bools]:
        asked.append(len(at))
        return [np.ones(len(at), bool), np.arange(len(at)) < 2]

    assert agreed(said, 100).sum() == 2
    assert asked == [100]
