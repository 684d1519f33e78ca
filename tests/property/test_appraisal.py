"""The price of a domain in one compiled sweep, against the selection that is laid out, on generated fleets."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from actors.fleets.generated import NOW, GangSpec, generate
from pipeline.decision.attempt import Attempt
from pipeline.placement.domains import domains_of
from pipeline.placement.need import need_of
from pipeline.plugins.extension_points import Preemptor
from pipeline.policy import Purpose
from pipeline.propose import host_of
from pipeline.solvers.bundles.lower_bounds import bounds
from pipeline.solvers.bundles.pricing import priceable, prices
from pipeline.solvers.bundles.search import search_of
from pipeline.solvers.bundles.selection import Selection, select
from pipeline.solvers.bundles.terms import Search
from tests.support.asking import DEFAULT

LEVELS = ("rack", "block", "pod")
SEEDS = range(12)
#: Prices round work to 1e-6, and sums may be taken in another order.
ROUNDING = 2e-6


@cache
def searching(seed: int) -> tuple[Search, np.ndarray]:
    """A search to preempt in a fleet of one queue whose gang, level and hardness vary, and all domains."""
    spec = GangSpec(tasks=(8, 24, 60, 120)[seed % 4], gpus=(1, 2, 4)[seed % 3], level=LEVELS[seed % 3])
    fleet = generate(60, spec, seed=seed, rigidify=(0.0, 0.6, 1.0)[seed % 3], queues=0)
    attempt = Attempt(fleet.snapshot, DEFAULT, Purpose.PREEMPT, (fleet.gang,), None, NOW)
    host = host_of(attempt)
    need = need_of(fleet.snapshot, attempt.podgroups, surplus=False)
    preemptor = Preemptor(attempt.podgroups, need.total, attempt.purpose)
    search = search_of(attempt, host, need, host.allowed(need.shapes), preemptor)
    return search, domains_of(host, attempt.podgroups, attempt.purpose)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_price_told_is_the_price_paid_in_every_domain(seed):
    search, domains = searching(seed)
    assert priceable(search)
    priced, unpriced = prices(search, domains)
    for domain, told, left in zip(domains.tolist(), priced, unpriced.tolist(), strict=True):
        found = select(search, domain)
        assert isinstance(found, Selection) == (told is not None or left)
        if told is not None:
            assert replace(found.price, lost_work=0.0) == replace(told, lost_work=0.0)
            assert found.price.lost_work == pytest.approx(told.lost_work, abs=ROUNDING)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_domain_left_unpriced_breaks_more_gangs_than_the_cheapest(seed):
    search, domains = searching(seed)
    priced, unpriced = prices(search, domains)
    fewest = min((told.gangs_broken for told in priced if told is not None), default=0)
    for domain in domains[unpriced].tolist():
        found = select(search, domain)
        assert isinstance(found, Selection)
        assert found.price.gangs_broken > fewest


@pytest.mark.parametrize("seed", SEEDS)
def test_no_bound_exceeds_the_price(seed):
    search, domains = searching(seed)
    limits = bounds(search.snapshot, search.need, search.allowed, search.candidate, domains, search.lost_work)
    for at, told in enumerate(prices(search, domains)[0]):
        if told is None:
            continue
        assert limits.reachable[at].min() >= search.need.count.min()
        assert limits.gangs[at] <= told.gangs_broken
        if limits.gangs[at] == told.gangs_broken:
            assert limits.lost_work[at] <= told.lost_work + 1e-6


def test_the_fleets_have_domains_that_can_and_that_cannot_be_had():
    told = [prices(*searching(seed)) for seed in SEEDS]
    assert sum(price is not None for priced, _ in told for price in priced) >= 10
    assert sum(price is None for priced, _ in told for price in priced) >= 10
    assert sum(int(unpriced.sum()) for _, unpriced in told) >= 3
