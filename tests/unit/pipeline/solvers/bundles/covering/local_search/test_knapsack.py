"""Podgroups that break together: the least of all sets that bring enough slots, and few of them."""

from itertools import product

import numpy as np
import pytest

from pipeline.solvers.bundles.covering.chosen import Selection
from pipeline.solvers.bundles.covering.exact import MOST
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


def of_whole_nodes(sizes, lost, need):
    """What is selected for a gang of whole nodes among gangs that hold some nodes each, and lose some work each."""
    starts = np.cumsum([0, *sizes])
    gangs = [
        gang(size, range(start, start + size), gpu=4, priority=1)
        for start, size in zip(starts.tolist(), sizes, strict=False)
    ]
    snapshot = cluster([{"gpu": 4}] * int(starts[-1]), [*gangs, gang(need, gpu=4, priority=9)])
    weights = np.array([*lost, 1.0])
    search = searching(snapshot, len(gangs), by_priority=True, lost_work=weights)
    assert np.count_nonzero(search.candidate) > MOST, "small domains are solved exactly"
    found = select(search, 0)
    assert isinstance(found, Selection), found
    return np.unique(snapshot.tasks.podgroup[found.victims]).tolist()


def test_two_gangs_that_fit_break_and_not_the_one_that_is_cheapest_for_its_size():
    # Ten nodes: those of six nodes lose least for each, but with one of them 11 or 12 nodes have to go.
    sizes = [6, 5, 5, 6, 6, 6, 6, 6]
    lost = [1.0, 1.05, 1.05, 1.02, 1.02, 1.02, 1.02, 1.02]
    assert of_whole_nodes(sizes, lost, 10) == [1, 2]
