"""The price of a domain in one compiled sweep, against the selection that is laid out, on generated fleets."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from actors.fleets.generated import NOW, GangSpec, generate
from pipeline.decision.attempt import Attempt
from pipeline.placement.domains import domains_of
from pipeline.placement.need import need_of
from pipeline.policy import Policy, Purpose
from pipeline.propose import host_of
from pipeline.solvers.bundles.bundling.bundle_search import EFFORT, BundleSearch
from pipeline.solvers.bundles.bundling.records import BREAKING
from pipeline.solvers.bundles.covering.chosen import Selection, price_in_domain
from pipeline.solvers.bundles.covering.domain_bundles import DomainBundles
from pipeline.solvers.bundles.covering.selection import estimate, select
from pipeline.solvers.bundles.lower_bounds import cost_bounds, slot_bounds
from pipeline.solvers.bundles.pricing import prices
from pipeline.solvers.bundles.solver import search_of
from pipeline.solvers.bundles.surveying import priceable
from tests.support.asking import DEFAULT

LEVELS = ("rack", "block", "pod")
SEEDS = range(12)


@cache
def searching(seed: int, policy: Policy = DEFAULT) -> tuple[BundleSearch, np.ndarray]:
    """A search to preempt in a fleet of one queue whose gang, level and hardness vary, and all domains."""
    spec = GangSpec(tasks=(8, 24, 60, 120)[seed % 4], gpus=(1, 2, 4)[seed % 3], level=LEVELS[seed % 3])
    fleet = generate(60, spec, seed=seed, rigidify=(0.0, 0.6, 1.0)[seed % 3], queues=0)
    attempt = Attempt(fleet.snapshot, policy, Purpose.PREEMPT, (fleet.gang,), None, NOW, "preempt")
    host = host_of(attempt)
    need = need_of(fleet.snapshot, attempt.podgroups, surplus=False)
    search = search_of(attempt, host, need)
    return search, domains_of(host, attempt.podgroups, attempt.purpose)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_price_told_is_what_the_order_of_bundles_costs_and_no_more_is_paid_in_any_domain(seed):
    search, domains = searching(seed)
    assert priceable(search)
    told = prices(search, domains, EFFORT)
    for domain, price, priced in zip(domains.tolist(), told.price, told.priced.tolist(), strict=True):
        found = select(search, domain)
        if price is None:
            assert not priced or not isinstance(found, Selection)
        else:
            ordered = DomainBundles(search, domain).by_slots()
            assert ordered is not None
            assert price_in_domain(search, domain, ordered.cost) == price
            assert found.price <= price


@pytest.mark.parametrize("seed", SEEDS)
def test_an_estimate_is_the_same_alone_and_beside_others(seed):
    search, domains = searching(seed)
    told = prices(search, domains, 0)
    for domain, price, priced in zip(domains.tolist(), told.price, told.priced.tolist(), strict=True):
        assert not priced or estimate(search, domain) == price


def test_without_polish_a_domain_costs_its_estimate_and_with_it_no_more_and_often_less():
    less = 0
    for seed in SEEDS:
        (search, domains), (rough, _) = searching(seed), searching(seed, replace(DEFAULT, polish=False))
        for domain in domains.tolist():
            found, plain = select(search, domain), select(rough, domain)
            assert isinstance(found, Selection) == isinstance(plain, Selection)
            if isinstance(found, Selection) and isinstance(plain, Selection):
                assert found.price <= plain.price == estimate(search, domain)
                less += found.price < plain.price
    assert less >= len(SEEDS)


@pytest.mark.parametrize("effort", [0, EFFORT])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_domain_that_was_left_costs_more_than_the_cheapest(seed, effort):
    search, domains = searching(seed)
    told = prices(search, domains, effort)
    least = min((price for price in told.price if price is not None), default=None)
    for domain in domains[~told.priced].tolist():
        found = select(search, domain)
        assert not isinstance(found, Selection) or found.price > least


@pytest.mark.parametrize("effort", [0, EFFORT])
@pytest.mark.parametrize("seed", SEEDS)
def test_no_bound_exceeds_the_price(seed, effort):
    search, domains = searching(seed)
    slots, bounds = slot_bounds(search, domains), cost_bounds(search, domains)
    for at, told in enumerate(prices(search, domains, effort).price):
        if told is None:
            continue
        assert slots.reachable[at].min() >= search.need.count.min()
        least = ((int(bounds.priority[at]), float(bounds.work[at])),)
        if bounds.head[at] >= BREAKING:
            assert least <= told.broken
        elif bounds.head[at] and not told.broken:
            assert least <= told.surplus


def test_the_fleets_have_domains_that_can_and_that_cannot_be_had():
    told = [prices(*searching(seed), EFFORT) for seed in SEEDS]
    assert sum(price is not None for one in told for price in one.price) >= 10
    assert sum(price is None for one in told for price in one.price) >= 10
    assert sum(int((~one.priced).sum()) for one in told) >= 3
