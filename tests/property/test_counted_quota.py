"""A quota that kernels count off leaves what the plugin's own count of the same list leaves, in every domain."""

from dataclasses import replace

import numpy as np
import pytest

from actors.configuration.profiles import load_profile
from actors.fleets.generated import NOW, GangSpec, generate
from pipeline.cluster.arrays import frozen
from pipeline.cluster.rules.sparing import no_quota
from pipeline.decision.attempt import Attempt
from pipeline.placement.need import need_of
from pipeline.policy import Purpose
from pipeline.propose import host_of
from pipeline.solvers.bundles.bundling.bundle_search import BundleSearch
from pipeline.solvers.bundles.bundling.bundles import left_by_quota, within_quota
from pipeline.solvers.bundles.bundling.records import Bundles
from pipeline.solvers.bundles.covering.domain_bundles import DomainBundles
from pipeline.solvers.bundles.covering.least import indifferent
from pipeline.solvers.bundles.solver import search_of


def searches(seed: int, deserved: float, *, everywhere: bool) -> tuple[BundleSearch, BundleSearch]:
    """One search, its quota once in columns and once asked by list; queues deserve a part of what they hold."""
    fleet = generate(120, GangSpec(24), seed=seed, queues=5, rigidify=0.3)
    held = fleet.snapshot.allocated_here
    some = np.floor(held * deserved).astype(np.int64)
    some[-1] = held.sum(axis=0)
    queues = replace(fleet.snapshot.queues, deserved=frozen(some, np.int64))
    policy = replace(load_profile("default"), whole_gangs_everywhere=everywhere)
    attempt = Attempt(
        replace(fleet.snapshot, queues=queues), policy, Purpose.RECLAIM, (fleet.gang,), None, NOW, "reclaim"
    )
    host, need = host_of(attempt), need_of(attempt.snapshot, attempt.podgroups, surplus=False)
    counted = search_of(attempt, host, need)
    assert counted.quota.counted
    return counted, replace(counted, quota=no_quota(), rules=counted.rules._replace(asks_in_order=True))


def told(bundles: Bundles) -> list[tuple[int, bool, list[int]]]:
    return [
        (int(bundles.podgroup[b]), bool(bundles.safe[b]), sorted(bundles.entry[bundles.owner == b].tolist()))
        for b in range(bundles.many)
    ]


@pytest.mark.parametrize("everywhere", [True, False])
@pytest.mark.parametrize("deserved", [0.0, 0.9, 0.97, 0.995])
def test_counted_in_columns_the_quota_leaves_what_it_leaves_of_the_list(deserved: float, *, everywhere: bool) -> None:
    shrunk = 0
    for seed in range(4):
        counted, listed = searches(seed, deserved, everywhere=everywhere)
        assert counted.quota_filter is not None
        for domain in range(len(counted.snapshot.topology)):
            nodes, all_of_it = counted.nodes_of(domain), DomainBundles(counted, domain).ordered
            mine = left_by_quota(all_of_it, counted.terms, indifferent(), counted.seats())
            theirs = within_quota(DomainBundles(listed, domain).ordered, listed, nodes)
            assert told(mine) == told(theirs)
            shrunk += len(mine.entry) < len(all_of_it.entry)
    assert shrunk or deserved == 0.0
