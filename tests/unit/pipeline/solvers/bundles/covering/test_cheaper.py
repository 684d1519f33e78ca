"""Local search in domains that are too large to try every set: cheaper victims, fewer gangs, the same every time."""

from types import SimpleNamespace

import numpy as np
import pytest

from pipeline.cluster.arrays import NO_ROWS, frozen
from pipeline.decision.price import Price
from pipeline.solvers.bundles.covering import cheaper, step_budget
from pipeline.solvers.bundles.covering.chosen import Selection
from pipeline.solvers.bundles.covering.domain_bundles import DomainBundles
from pipeline.solvers.bundles.covering.exact import MOST
from pipeline.solvers.bundles.covering.selection import select
from pipeline.solvers.bundles.covering.step_budget import budget_of
from tests.support.builders import Gang, Task, cluster, gang, searching


def chosen(nodes, gangs, **changed):
    """What is selected on nodes of four GPUs for the last gang."""
    snapshot = cluster([{"gpu": 4}] * nodes, gangs)
    search = searching(snapshot, len(gangs) - 1, **({"by_priority": True} | changed))
    assert np.count_nonzero(search.candidate) > MOST, "small domains are solved exactly"
    found = select(search, 0)
    assert isinstance(found, Selection), found
    return found


def test_surplus_is_taken_where_it_makes_whole_nodes_free():
    # Each node has a task of each of four gangs that can spare five: five nodes are to be had and no gang breaks.
    sparing = [gang(12, range(12), gpu=1, minimum=7, priority=1) for _ in range(4)]
    found = chosen(12, [*sparing, gang(5, gpu=4, priority=9)])
    assert found.price.gangs_broken == 0
    assert len(found.victims) == 20
    assert len(set(found.node.tolist())) == 5


@pytest.mark.parametrize("seed", [25, 38])
def test_surplus_is_sought_as_well_where_a_small_domain_has_too_many_sets_to_try_each(seed):
    rng, sparing = np.random.default_rng(seed), []
    for _ in range(10):
        size = int(rng.integers(2, 6))
        on, least = rng.permutation(8)[:size].tolist(), int(rng.integers(1, size + 1))
        sparing.append(gang(size, on, gpu=1, minimum=least, priority=1))
    lost = frozen(np.append(rng.integers(1, 9, 10) + rng.random(10), 1.0), np.float64)
    snapshot = cluster([{"gpu": 4}] * 8, [*sparing, gang(3, gpu=4, priority=9)])
    search = searching(snapshot, 10, by_priority=True, lost_work=lost)
    found = select(search, 0)
    assert np.count_nonzero(search.candidate) <= MOST
    assert isinstance(found, Selection)
    assert found.price.gangs_broken == 0


def test_fewer_gangs_break_where_the_work_is_the_same():
    small = [gang(2, [2 * at, 2 * at + 1], gpu=4, priority=1) for at in range(8)]
    wide = gang(16, range(16, 32), gpu=4, priority=1)
    rest = gang(20, range(32, 52), gpu=4, priority=2)
    found = chosen(52, [*small, wide, rest, gang(16, gpu=4, priority=9)])
    assert found.price.gangs_broken == 1
    assert found.victims.tolist() == list(range(16, 32))


def test_a_lower_priority_breaks_however_much_it_loses():
    dear = [gang(1, [at], gpu=4, priority=1) for at in range(8)]
    cheap = [gang(1, [at], gpu=4, priority=2) for at in range(8, 44)]
    lost = frozen([9.0] * 8 + [1.0] * 37, np.float64)
    found = chosen(44, [*dear, *cheap, gang(8, gpu=4, priority=9)], lost_work=lost)
    assert found.price.highest_priority == 1
    assert found.victims.tolist() == list(range(8))


def test_a_role_that_is_short_spares_nothing():
    # The gang can spare six tasks, but none of the role on the first node.
    bound = Gang([Task(at // 4, gpu=1, role=int(at >= 4)) for at in range(48)], 42, 1, roles=(4, 0))
    found = chosen(12, [bound, gang(1, gpu=4, priority=9)])
    assert found.price.gangs_broken == 0
    assert 0 not in found.node


@pytest.mark.parametrize("seed", range(12))
def test_what_is_found_places_the_gang_and_never_costs_more_than_the_order_of_bundles(seed):
    rng = np.random.default_rng(seed)
    groups = []
    for _ in range(16):
        size = int(rng.integers(1, 6))
        groups.append(
            gang(size, rng.permutation(20)[:size].tolist(), gpu=1, minimum=int(rng.integers(1, size + 1)),
                 priority=int(rng.integers(1, 4)))
        )  # fmt: skip
    groups += [gang(20, range(20), gpu=1, priority=3)]
    gangs = [*groups, gang(6, gpu=4, priority=9)]
    found = chosen(20, gangs)
    snapshot = cluster([{"gpu": 4}] * 20, gangs)
    assert found.price <= _in_order(snapshot, len(gangs) - 1)
    held = np.zeros(20, int)
    for row in np.setdiff1d(np.flatnonzero(snapshot.tasks.node >= 0), found.victims):
        held[snapshot.tasks.node[row]] += 1
    np.add.at(held, found.node, 4)
    assert held[np.unique(found.node)].max() <= 4
    again = chosen(20, gangs)
    assert (again.victims.tolist(), again.node.tolist()) == (found.victims.tolist(), found.node.tolist())


def _in_order(snapshot, preemptor) -> Price:
    """The price in the order of bundles, as a policy that keeps it pays."""
    found = select(searching(snapshot, preemptor, by_priority=True, keep_order=True), 0)
    assert isinstance(found, Selection), found
    return found.price


@pytest.mark.parametrize("seed", range(8))
def test_in_a_wider_fleet_other_scales_for_surplus_make_a_wide_gang_cheaper_and_none_dearer(monkeypatch, seed):
    rng, groups, left = np.random.default_rng(seed), [], np.full(600, 4)
    while len(groups) < 520:
        size = int(rng.integers(1, 9))
        on = rng.permutation(np.flatnonzero(left))[:size]
        left[on] -= 1
        least = int(rng.integers(1, size + 1))
        groups.append(gang(len(on), on.tolist(), gpu=1, minimum=least, priority=int(rng.integers(1, 3))))
    groups.append(gang(150, gpu=4, priority=9))
    with_others = chosen(600, groups).price
    monkeypatch.setattr(step_budget, "_ANEW", 0)
    without = chosen(600, groups).price
    assert with_others < without if seed in {1, 2, 3, 6, 7} else with_others == without


def test_one_machine_code_serves_whatever_columns_a_search_begins_with():
    # Numba tells writable columns from read-only ones, and this kernel takes longest to compile.
    snapshot = cluster([{"gpu": 4}] * 2, [gang(2, [0, 1], gpu=4, priority=1), gang(2, gpu=4, priority=9)])
    search = searching(snapshot, 1)
    assert not NO_ROWS.flags.writeable
    for rows in (NO_ROWS, np.zeros(0, np.int64)):
        cheaper.searched(DomainBundles(search, 0), rows, rows, (1, 1), budget_of(2, 2, reclaims=False), 0.0)
    assert len(cheaper.cheaper_sets.overloads) == 1


@pytest.mark.parametrize(("priority", "searches"), [(1, 1), (2, 2)])
def test_a_higher_priority_is_looked_for_only_where_the_domain_has_candidates_of_one(monkeypatch, priority, searches):
    # Another domain has one in any case.
    gangs = [gang(4, range(at, at + 4), gpu=2, priority=1) for at in (*range(0, 20, 4), *range(0, 20, 4))]
    gangs += [gang(20, range(20, 40), gpu=4, priority=priority)]
    gangs += [gang(1, [40], gpu=4, priority=3), gang(7, gpu=4, priority=9, required_level=0)]
    snapshot = cluster([{"gpu": 4}] * 41, gangs, racks=(40, 1))
    search, asked = searching(snapshot, len(gangs) - 1), []
    assert not search.rules.by_priority
    made = cheaper._improved
    monkeypatch.setattr(cheaper, "_improved", lambda *given: asked.append(given[2]) or made(*given))
    assert isinstance(select(search, 1), Selection)
    assert len(asked) == searches


def told(work, gangs):
    """The price of a set that breaks some gangs."""
    return Price(0, 0, ((0, work),), (), 1, 10, 0, 0, gangs)


@pytest.mark.parametrize(
    ("prices", "refused", "tried", "kept"),
    [
        ([9.0, 8.0, 7.0], (), [7.0], 7.0),
        ([9.0, 8.0, 7.0], (7.0,), [7.0, 9.0, 8.0, 7.0], 8.0),
        ([9.0, 11.0, 8.0], (8.0, 9.0), [8.0, 9.0, 8.0], 10.0),
        ([12.0, 11.0], (), [], 10.0),
        ([10.0], (), [], 10.0),
    ],
    ids=["the last at once", "the one before it", "none", "none is better", "one that costs the same"],
)
def test_of_several_sets_the_last_that_is_preferred_and_lawful_is_taken(monkeypatch, prices, refused, tried, kept):
    asked = []

    def selected(_here, found, _leaving):
        asked.append(found.cost)
        return None if found.cost in refused else SimpleNamespace(price=told(found.cost, 1))

    monkeypatch.setattr(cheaper, "price_in_domain", lambda _search, _domain, cost: told(cost, 1))
    monkeypatch.setattr(cheaper, "selected_of", selected)
    sets = [SimpleNamespace(cost=price) for price in prices]
    here, best = SimpleNamespace(search=None, domain=0), SimpleNamespace(price=told(10.0, 1))
    assert cheaper._preferred(here, best, sets, None, 0.0).price.broken == ((0, kept),)
    assert asked == tried
