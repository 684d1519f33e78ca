"""Surplus chosen for all nodes at once: offers of nodes, and multipliers of what can be spared.

As plain Python, since Python calls none of it elsewhere; ``tests/property`` holds that compiled it does the same.
"""

from itertools import product

import numpy as np
import pytest

from pipeline.solvers.bundles.covering.free_room import FreeRoom
from pipeline.solvers.bundles.covering.local_search import multipliers, node_offers, of_domain
from tests.support.builders import Gang, Task, cluster, gang, searching
from tests.support.twins import uncompiled

adjust, limits_of, write_dear = (
    one.py_func for one in (multipliers.adjust, multipliers.limits_of, multipliers.write_dear)
)
choose, lacking_slots, no_offers, offer = (
    one.py_func for one in (node_offers.choose, node_offers.lacking_slots, node_offers.no_offers, node_offers.offer)
)
begin, pool_of = of_domain.begin.py_func, of_domain.victim_pool_of.py_func

NODES, ANY = 3, (1 << 31) - 1


@pytest.fixture(autouse=True)
def plain():
    with uncompiled():
        yield


class Searched:
    """A pool on three nodes of eight GPUs, with nothing gone, for a gang of some tasks of a size."""

    def __init__(self, gangs, tasks, gpu):
        snapshot = cluster([{"gpu": 8}] * NODES, [*gangs, gang(tasks, gpu=gpu, priority=9)])
        search = searching(snapshot, len(gangs), by_priority=True)
        self.ground, self.terms = FreeRoom(search, 0).ground, search.terms
        none = np.empty(0, np.int64)
        self.pool, _ = pool_of(search.site, (0, NODES), search.terms, none, (ANY, ANY), search.seats())
        role, left = search.terms.surplus.role.copy(), search.terms.quota.allocated.copy()
        self.state = begin(self.pool, none, none, role, left, self.ground, search.seats())
        small, self.lacking = lacking_slots(self.pool, self.ground)
        self.offers = no_offers(NODES)
        offer(small, self.lacking, self.pool, self.state, self.ground, self.offers)

    def cheapest(self, price, lawful=np.any):
        """The least sum of prices of all sets of tasks that make room and that are lawful."""
        pool, ground, best = self.pool, self.ground, np.inf
        held = ground.held[ground.shape[pool.entry]]
        for bits in product([False, True], repeat=len(pool.entry)):
            gone = np.array(bits)
            room = ground.room.copy()
            np.add.at(room, pool.at[gone], held[gone])
            asked = ground.request[0] > 0
            slots = np.min(room[:, asked] // ground.request[0, asked], axis=1)
            if slots.sum() >= ground.wanted[0] and lawful(gone):
                best = min(best, float(price[gone].sum()))
        return best


def drawn(seed):
    """Three podgroups with a task of one to three GPUs on each of three nodes, and how many tasks each may lose."""
    rng = np.random.default_rng(seed)
    sizes = [[int(rng.integers(1, most + 1)) for _ in range(NODES)] for most in (3, 3, 2)]
    spares = [int(rng.integers(1, NODES + 1)) for _ in sizes]
    gangs = [
        Gang([Task(at, gpu=size) for at, size in enumerate(one)], NODES - spare, 1)
        for one, spare in zip(sizes, spares, strict=True)
    ]
    return rng, gangs, spares


@pytest.mark.parametrize("seed", range(20))
def test_the_chosen_offers_are_the_cheapest_of_all_sets_of_tasks(seed):
    rng, gangs, _ = drawn(seed)
    searched = Searched(gangs, 3, 4)
    assert searched.lacking > 0
    price = rng.integers(1, 20, len(searched.pool.entry)).astype(np.float64)
    assert choose(searched.lacking, price, searched.offers) == searched.cheapest(price)


@pytest.mark.parametrize("seed", range(20))
def test_no_multipliers_prove_more_than_the_cheapest_lawful_set_costs(seed):
    rng, gangs, spares = drawn(seed)
    searched = Searched(gangs, 3, 4)
    assert searched.lacking > 0
    pool, state, ground = searched.pool, searched.state, searched.ground
    price, dear = rng.integers(1, 20, len(pool.entry)).astype(np.float64), np.zeros(len(pool.entry))
    mine = [pool.seat == seat for seat in range(len(pool.owner))]
    allowed = [spares[owner] for owner in pool.owner.tolist()]
    least = searched.cheapest(price, lambda gone: all(gone[m].sum() <= n for m, n in zip(mine, allowed, strict=True)))
    limits, bounds = limits_of(pool, state, ground), []
    for _ in range(30):
        write_dear(limits, pool, state, ground, dear)
        total = choose(searched.lacking, price + dear, searched.offers)
        bounds.append(adjust(total, min(least, 100.0), 1.0, limits, pool, state, ground, searched.offers))
    assert max(bounds) <= least + 1e-9
    assert (limits.price >= 0.0).all()
    assert bounds[0] == searched.cheapest(price), "the first is without multipliers"


def test_a_multiplier_rises_where_too_much_is_taken_and_falls_where_something_is_left():
    # One podgroup can spare a task and is cheap, the others are dear.
    cheap = Gang([Task(at, gpu=8) for at in range(NODES)], NODES - 1, 1)
    searched = Searched([cheap], 2, 8)
    pool, state, ground = searched.pool, searched.state, searched.ground
    limits, price = limits_of(pool, state, ground), np.ones(NODES)
    total = choose(searched.lacking, price, searched.offers)
    assert adjust(total, 10.0, 1.0, limits, pool, state, ground, searched.offers) == 2.0
    assert limits.price[0] > 0.0
    searched.offers.chosen[:] = 0
    risen = float(limits.price[0])
    adjust(0.0, 10.0, 0.1, limits, pool, state, ground, searched.offers)
    assert limits.price[0] < risen


def test_needs_that_would_take_too_large_a_table_are_left_to_the_local_search():
    searched = Searched([gang(3, range(3), gpu=2, minimum=1, priority=1)], 40_000, 1)
    assert searched.lacking == -1
