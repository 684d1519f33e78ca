"""Surplus chosen for all nodes at once: offers of nodes, and multipliers of what can be spared."""

from itertools import product

import numpy as np
import pytest

from pipeline.kernels import kernel
from pipeline.solvers.bundles.covering.free_room import FreeRoom
from pipeline.solvers.bundles.covering.local_search.multipliers import adjust, limits_of, write_dear
from pipeline.solvers.bundles.covering.local_search.node_offers import choose, lacking_slots, no_offers, offer
from pipeline.solvers.bundles.covering.local_search.of_domain import begin, pool_of
from tests.support.builders import Gang, Task, cluster, gang, searching

NODES, ANY = 3, (1 << 31) - 1


@kernel
def begun(site, here, terms, most, role, left, ground, seats):
    """A pool of all nodes, what has gone of it, the slots that lack, and the offers of its nodes."""
    none = np.empty(0, np.int64)
    pool, _ = pool_of(site, (0, NODES), here, terms, none, most, seats)
    state = begin(pool, none, none, role, left, ground, seats)
    small, lacking = lacking_slots(pool, ground)
    offers = no_offers(NODES)
    offer(small, lacking, pool, state, ground, offers)
    return pool, state, lacking, offers


@kernel
def step(total, price, most, width, limits, pool, state, ground, offers, lacking):
    """The total of what is chosen (as given, unless it is below 0), and what the multipliers prove by it."""
    dear = np.zeros(len(price))
    write_dear(limits, pool, state, ground, dear)
    chosen = choose(lacking, price + dear, offers) if total < 0.0 else total
    return chosen, adjust(chosen, most, width, limits, pool, state, ground, offers)


class Searched:
    """A pool on three nodes of eight GPUs, with nothing gone, for a gang of some tasks of a size."""

    def __init__(self, gangs, tasks, gpu):
        snapshot = cluster([{"gpu": 8}] * NODES, [*gangs, gang(tasks, gpu=gpu, priority=9)])
        search = searching(snapshot, len(gangs), by_priority=True)
        self.ground, self.terms = FreeRoom(search, 0).ground, search.terms
        here = np.ascontiguousarray(search.open)
        role, left = search.terms.surplus.role.copy(), search.terms.quota.allocated.copy()
        self.pool, self.state, self.lacking, self.offers = begun(
            search.site, here, search.terms, (ANY, ANY), role, left, self.ground, search.seats()
        )

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
    price = rng.integers(1, 20, len(pool.entry)).astype(np.float64)
    mine = [pool.seat == seat for seat in range(len(pool.owner))]
    allowed = [spares[owner] for owner in pool.owner.tolist()]
    least = searched.cheapest(price, lambda gone: all(gone[m].sum() <= n for m, n in zip(mine, allowed, strict=True)))
    limits, bounds = limits_of(pool, state, ground), []
    for _ in range(30):
        given = limits, pool, state, ground, searched.offers, searched.lacking
        bounds.append(step(-1.0, price, min(least, 100.0), 1.0, *given)[1])
    assert max(bounds) <= least + 1e-9
    assert (limits.price >= 0.0).all()
    assert bounds[0] == searched.cheapest(price), "the first is without multipliers"


def test_a_multiplier_rises_where_too_much_is_taken_and_falls_where_something_is_left():
    # One podgroup can spare a task and is cheap, the others are dear.
    cheap = Gang([Task(at, gpu=8) for at in range(NODES)], NODES - 1, 1)
    searched = Searched([cheap], 2, 8)
    pool, state, ground = searched.pool, searched.state, searched.ground
    limits, price = limits_of(pool, state, ground), np.ones(NODES)
    given = limits, pool, state, ground, searched.offers, searched.lacking
    assert step(-1.0, price, 10.0, 1.0, *given)[1] == 2.0
    assert limits.price[0] > 0.0
    searched.offers.chosen[:] = 0
    risen = float(limits.price[0])
    step(0.0, price, 10.0, 0.1, *given)
    assert limits.price[0] < risen


def test_needs_that_would_take_too_large_a_table_are_left_to_the_local_search():
    searched = Searched([gang(3, range(3), gpu=2, minimum=1, priority=1)], 40_000, 1)
    assert searched.lacking == -1
