"""Units that policy ranks equal: the cheapest set of them goes."""

from pipeline.solvers.bundles.covering.chosen import price_in_domain
from pipeline.solvers.bundles.covering.domain_bundles import DomainBundles
from tests.support.builders import cluster, gang, searching


def price(gangs, nodes, wanted, *, estimated=False):
    """What it costs by slots to make room for a task that asks for as many devices, in the order of bundles."""
    snapshot = cluster([{"gpu": gpu} for gpu in nodes], [*gangs, gang(1, gpu=wanted, priority=9)])
    here = DomainBundles(searching(snapshot, len(gangs), by_priority=True), 0, estimated=estimated)
    found = here.by_slots()
    assert found is not None
    return price_in_domain(here.search, 0, found.cost)


def test_two_lone_tasks_go_where_one_of_them_and_a_gang_would_lose_more():
    lone, wide = gang(1, [1], gpu=2, priority=1), gang(2, [2, 1], gpu=2, priority=1)
    found = price([lone, gang(1, [0], gpu=1, priority=1), wide, lone], [1, 6, 2], 4)
    assert (found.broken, found.victims) == (((1, 1.0),), 2)


def test_of_sets_that_lose_the_same_work_the_one_with_fewer_victims_goes():
    found = price([gang(2, [1], gpu=1, priority=1), gang(1, [0], gpu=2, priority=1)], [2, 2], 1)
    assert (found.broken, found.victims) == (((1, 2.0),), 1)


def test_an_estimate_takes_what_the_order_leaves():
    lone, wide = gang(1, [1], gpu=2, priority=1), gang(2, [2, 1], gpu=2, priority=1)
    gangs = [lone, gang(1, [0], gpu=1, priority=1), wide, lone]
    assert price(gangs, [1, 6, 2], 4) < price(gangs, [1, 6, 2], 4, estimated=True)
