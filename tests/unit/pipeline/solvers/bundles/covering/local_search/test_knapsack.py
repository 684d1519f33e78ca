"""Podgroups that break together: the least of all sets that bring enough slots, and few of them."""

from itertools import pairwise, product

import numpy as np
import pytest

from pipeline.solvers.bundles.covering.chosen import Selection
from pipeline.solvers.bundles.covering.local_search.knapsack import _chosen, _few
from pipeline.solvers.bundles.covering.selection import select
from tests.support.builders import cluster, gang, searching


def drawn(seed):
    """Slots and costs of nine items, and how many slots lack."""
    rng = np.random.default_rng(seed)
    gain, cost = rng.integers(1, 9, 9), rng.integers(1, 30, 9).astype(np.float64)
    return int(rng.integers(1, gain.sum() + 1)), gain.astype(np.int64), cost


def all_sets(lacking, gain, cost):
    """(cost, how many items) of every set that brings enough."""
    sets = (np.array(bits) for bits in product([False, True], repeat=len(gain)))
    return [(float(cost[some].sum()), int(some.sum())) for some in sets if gain[some].sum() >= lacking]


@pytest.mark.parametrize("seed", range(20))
def test_the_chosen_items_bring_enough_for_the_least_of_all_sets(seed):
    lacking, gain, cost = drawn(seed)
    chosen = _chosen(lacking, gain, cost)
    assert gain[chosen].sum() >= lacking
    assert cost[chosen].sum() == min(all_sets(lacking, gain, cost))[0]


def test_no_items_are_chosen_where_all_are_too_few():
    assert len(_chosen(10, np.array([3, 4]), np.array([1.0, 1.0]))) == 0


@pytest.mark.parametrize("seed", range(20))
def test_few_items_cost_no_more_than_allowed_and_are_no_more_than_the_cheapest(seed):
    lacking, gain, cost = drawn(seed)
    cheapest = _chosen(lacking, gain, cost)
    most = cost[cheapest].sum() * 1.2
    few = _few(most, lacking, gain, cost)
    assert gain[few].sum() >= lacking
    assert cost[few].sum() <= most
    fewest = min(many for value, many in all_sets(lacking, gain, cost) if value <= most)
    assert fewest <= len(few) <= len(cheapest)


@pytest.mark.parametrize("seed", range(4))
def test_of_many_gangs_on_whole_nodes_those_break_that_lose_least_of_all(seed):
    rng, need = np.random.default_rng(seed), 256
    sizes, lost = rng.integers(1, 17, 250), 1.0 + rng.integers(0, 300, 250) / 100.0
    starts = np.cumsum([0, *sizes]).tolist()
    gangs = [gang(end - start, range(start, end), gpu=4, priority=1) for start, end in pairwise(starts)]
    snapshot = cluster([{"gpu": 4}] * starts[-1], [*gangs, gang(need, gpu=4, priority=9)])
    found = select(searching(snapshot, len(gangs), by_priority=True, lost_work=np.array([*lost, 1.0])), 0)
    assert isinstance(found, Selection), found
    least = np.where(np.arange(need + 1) > 0, np.inf, 0.0)
    for size, work in zip(sizes, sizes * lost / need, strict=True):
        least = np.minimum(least, least[np.maximum(np.arange(need + 1) - size, 0)] + work)
    assert found.price.broken == ((1, pytest.approx(least[need], abs=2e-6)),)
