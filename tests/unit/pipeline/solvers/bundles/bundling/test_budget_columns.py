"""Disruption budgets as resources: they count what the plugin says, and slots are what they are without them."""

from dataclasses import replace

import numpy as np
import pytest

from actors.benchmarks.figures import attempt_on
from actors.fleets.generated import GangSpec, GeneratedFleet, generate
from pipeline.cluster.arrays import NONE, frozen
from pipeline.cluster.counted.budgets import Budgets
from pipeline.cluster.rules.sparing import Asking, Entitled, may_all_go, no_quota, quota_of
from pipeline.decision.attempt import Attempt
from pipeline.placement.need import need_of
from pipeline.plugins.plugin import Preemptor
from pipeline.policy import Purpose
from pipeline.propose import host_of
from pipeline.solvers.bundles.bundling.budget_columns import MOST_BUDGETS, as_wide
from pipeline.solvers.bundles.bundling.bundle_search import BundleSearch
from pipeline.solvers.bundles.covering.free_room import FreeRoom
from pipeline.solvers.bundles.solver import search_of

#: A budget more than labels: it covers what two of them cover.
LABELS = 3


def fleet_of(seed: int, queues: int, *, allowed: int | None = None, budgets: int = LABELS + 1) -> GeneratedFleet:
    fleet, draw = generate(40, GangSpec(tasks=16, gpus=1), seed=seed, queues=queues), np.random.default_rng(seed)
    snapshot = fleet.snapshot
    owner = draw.integers(0, LABELS + 1, len(snapshot.podgroups))
    covers = np.zeros((budgets, LABELS + 1), np.bool_)
    covers[np.arange(budgets), 1 + np.arange(budgets) % LABELS] = True
    covers[-1, :2] = True
    least = draw.integers(2, 30, budgets) if allowed is None else np.full(budgets, allowed)
    named = replace(snapshot.vocabulary, label_sets=((), *((("app", f"x{n}"),) for n in range(LABELS))))
    tasks = replace(snapshot.tasks, label_set=frozen(owner[snapshot.tasks.podgroup], np.int32))
    limits = Budgets(frozen(least, np.int32), frozen(np.zeros(budgets), np.int32), frozen(covers, np.bool_))
    return GeneratedFleet(replace(snapshot, vocabulary=named, tasks=tasks, budgets=limits), fleet.gang)


def searched(fleet: GeneratedFleet, purpose: Purpose = Purpose.PREEMPT) -> tuple[Attempt, BundleSearch]:
    attempt = attempt_on(fleet, purpose)
    return attempt, search_of(attempt, host_of(attempt), need_of(fleet.snapshot, (fleet.gang,), surplus=False))


@pytest.mark.parametrize("queues", [0, 3])
@pytest.mark.parametrize("seed", range(5))
def test_what_may_go_by_resources_is_what_the_plugins_let_go(seed: int, queues: int) -> None:
    fleet = fleet_of(seed, queues)
    attempt, search = searched(fleet, Purpose.RECLAIM if queues else Purpose.PREEMPT)
    terms, occupancy = search.terms, fleet.snapshot.occupancy.task
    assert terms.quota.counted
    assert not search.rules.asks_in_order
    host, preemptor = host_of(attempt), Preemptor((fleet.gang,), search.need.total, attempt.purpose)
    draw, every = np.random.default_rng(seed), np.flatnonzero(search.candidate[occupancy])
    some = [draw.choice(every, many, replace=False).astype(np.int64) for many in (1, 3, 8, 20, 40, 80) * 8]
    entries = terms.entries
    ends = np.cumsum([0, *map(len, some)])
    found = may_all_go(
        terms.quota, np.concatenate(some), ends, (entries.podgroup, entries.shape), terms.worth.request
    )  # fmt: skip
    assert found.tolist() == host.spares_each(preemptor, [occupancy[one] for one in some]).tolist()
    assert 0 < found.sum() < len(found)


def test_slots_are_those_of_a_fleet_without_budgets() -> None:
    fleet = fleet_of(1, 0)
    budgets = fleet.snapshot.budgets
    plenty = replace(budgets, allowed=frozen(budgets.allowed + 999, np.int32))
    bare = replace(fleet, snapshot=replace(fleet.snapshot, budgets=plenty))
    (_, search), (_, other) = searched(fleet), searched(bare)
    assert search.columns.held.shape[1] > other.columns.held.shape[1]
    assert other.quota_filter is None
    one, two = FreeRoom(search, 0), FreeRoom(other, 0)
    leaving = np.flatnonzero(search.candidate[fleet.snapshot.occupancy.task])[::3].copy()
    assert one.ground.total.tolist() == two.ground.total.tolist()
    one.leave(leaving)
    two.leave(leaving)
    assert one.ground.total.tolist() == two.ground.total.tolist()


def test_a_fleet_with_many_budgets_asks_the_plugins() -> None:
    fleet = fleet_of(2, 0, allowed=3, budgets=MOST_BUDGETS + 1)
    search = searched(fleet)[1]
    assert search.rules.asks_in_order
    assert not search.terms.quota.counted


def test_no_quota_counts_what_is_added() -> None:
    amounts, flags = np.full((1, 2), 5, np.int64), np.ones((1, 2), bool)
    entitled = Entitled(amounts, flags, amounts, np.array([NONE], np.int32))
    asking = Asking(flags[0], np.zeros((1, 1), np.int32), np.zeros(1, bool))
    wide = as_wide(quota_of(np.zeros(3, np.int32), np.ones((3, 2)), amounts, entitled, asking), 4)
    assert wide.held.shape == (3, 4)
    assert not wide.entitled.counts[:, 2:].any()
    assert not wide.asking.asked[2:].any()
    assert as_wide(no_quota(), 4) is no_quota()
