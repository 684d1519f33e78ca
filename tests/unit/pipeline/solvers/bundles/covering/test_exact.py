"""Every set of victims of a small domain: what queues cannot lose is none of them."""

from itertools import product

import numpy as np

from pipeline.cluster.arrays import Floats
from pipeline.placement.need import need_of
from pipeline.policy import Purpose
from pipeline.propose import host_of
from pipeline.solvers.bundles.covering.exact import cheapest_sets
from pipeline.solvers.bundles.covering.free_room import FreeRoom
from pipeline.solvers.bundles.solver import search_of
from tests.support.asking import attempt
from tests.support.builders import cluster, gang
from tests.support.editing import with_quota
from tests.support.twins import uncompiled

#: Any set will do.
NOTHING_KNOWN = np.empty(0)


def test_sets_that_queues_cannot_lose_are_left_out() -> None:
    """Twelve podgroups of one device each, by turns of two queues that can lose two and three; four are asked for."""
    running = [gang(1, node, gpu=1, queue=queue) for node in range(3) for queue in (0, 1, 0, 1)]
    state = cluster([{"gpu": 4}] * 3, [*running, gang(4, gpu=1, queue=2)], queues=3)
    asks = attempt(with_quota(state, deserved={0: {"gpu": 4}, 1: {"gpu": 3}, 2: {"gpu": 8}}), 12, Purpose.RECLAIM)

    def found(known: Floats = NOTHING_KNOWN) -> int:
        search = search_of(asks, host_of(asks), need_of(asks.snapshot, asks.podgroups, surplus=False))
        ground, nodes = FreeRoom(search, 0).ground, search.nodes_of(0)
        asked = search.site, nodes, ground, search.terms, search.alike, search.seats(), known
        sets, every = cheapest_sets(*asked, 1_000, 100_000)
        assert every
        return len(sets.gone)

    every = np.array([*product([0, 1], repeat=12)])
    lawful = (every[:, ::2].sum(axis=1) <= 2) & (every[:, 1::2].sum(axis=1) <= 3) & (every.sum(axis=1) >= 4)
    assert found() == lawful.sum()
    dear, free = np.array([9.0, 0.0, -1.0, 0.0, 0.0]), np.zeros(5)  # the queue's rank leads
    assert (found(dear), found(free)) == (lawful.sum(), 0)
    with uncompiled():
        assert found() == lawful.sum()
