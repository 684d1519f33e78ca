"""Invariant 19, of one search: how its domains are cut into batches never shows in the outcome."""

from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest

from actors.configuration.profiles import load_profile
from actors.configuration.settings import TelemetrySettings
from actors.fleets.generated import NOW, GangSpec, generate
from actors.observability.telemetry import start
from actors.search.batched_search import BatchedSearch, Spread
from actors.search.searcher import Searcher
from pipeline.cluster.arrays import with_rows
from pipeline.decision.attempt import Attempt
from pipeline.decision.plan import NoPlan, Plan
from pipeline.placement.domains import domains_of
from pipeline.plugins import victim_host
from pipeline.policy import PluginSetting, Purpose
from pipeline.propose import host_of, propose
from pipeline.solvers.bundles import lower_bounds, surveying
from pipeline.solvers.bundles.bundling import bundle_search
from tests.support.depth import sampled

DEFAULT = load_profile("default")
#: Its quotas cannot be counted in columns: plugins are asked in every domain.
ASKED = replace(
    DEFAULT,
    digest="asked in order",
    plugins=tuple(PluginSetting("proportion") if one.name == "capacity" else one for one in DEFAULT.plugins),
)
POLICIES = {"default": DEFAULT, "asked": ASKED, "volcano": load_profile("volcano")}
GANGS = (GangSpec(24, 1, "rack"), GangSpec(4, 8, "rack"), GangSpec(48, 2, "block"), GangSpec(16, 4, "rack"))
#: Domains of one batch. Where plugins are asked in each, `make test` leaves out the batches of one domain.
CUTS = (1, 5, 10_000)
OF_ASKED = CUTS[-sampled(len(CUTS), least=2) :]
#: Of the seeds, those that are asked for racks; the others are asked for blocks, which are few.
SEEDS = (0, 1, 3, 4, 5, 7)
#: Blocks are asked for in a fleet that is four times as large: to ask plugins in all of them takes a third of all time.
TOO_LONG = {(2, "asked")}
#: What two threads do, by the number of tasks from which on they do it.
FOR_TWO = ("_BOUNDS_FOR_TWO", "_OUTCOMES_FOR_TWO")
#: What they do in halves of all rows, likewise.
IN_HALVES = ((victim_host, "_TASKS_FOR_TWO"), (bundle_search, "_ENTRIES_FOR_TWO"), (lower_bounds, "_NODES_FOR_TWO"))


@cache
def asked(seed: int, profile: str, purpose: Purpose) -> Attempt:
    policy = POLICIES[profile]
    nodes, queues = (700, 2_600)[seed % len(GANGS) == 2], 0 if purpose is Purpose.PREEMPT else 4
    fleet = generate(nodes, GANGS[seed % len(GANGS)], seed=seed, rigidify=(0.0, 0.6, 0.9)[seed % 3], queues=queues)
    action = f"gang{purpose.value}" if profile == "volcano" else ""
    return Attempt(fleet.snapshot, policy, purpose, (fleet.gang,), None, NOW, action)


def outcome(attempt: Attempt, cut: int) -> Plan | NoPlan:
    telemetry = start(TelemetrySettings(), "test")
    searcher = Searcher(attempt.policy, telemetry)
    search = BatchedSearch(searcher, searcher, Spread(domains=cut, in_place_cells=0), telemetry)
    found = search.one(attempt, host_of(attempt))
    assert found is not None
    return found


def told(found: Plan | NoPlan) -> str:
    with np.printoptions(threshold=1_000_000, floatmode="unique"):
        return repr(found)


@pytest.mark.parametrize("purpose", [Purpose.PREEMPT, Purpose.RECLAIM])
@pytest.mark.parametrize(("seed", "profile"), [case for case in product(range(4), POLICIES) if case not in TOO_LONG])
def test_one_batch_or_many_the_outcome_is_the_same_to_the_byte(seed: int, profile: str, purpose: Purpose) -> None:
    attempt = asked(seed, profile, purpose)
    assert len(domains_of(host_of(attempt), attempt.podgroups, purpose)) > 16
    cuts = OF_ASKED if profile == "asked" else CUTS
    found = [outcome(attempt, cut) for cut in cuts]
    assert [told(one) for one in found[:-1]] == [told(found[-1])] * (len(cuts) - 1)


@pytest.mark.parametrize("purpose", [Purpose.PREEMPT, Purpose.RECLAIM])
@pytest.mark.parametrize("cut", CUTS)
def test_an_attempt_that_names_its_domains_is_searched_for_in_no_other(cut: int, purpose: Purpose) -> None:
    """As several gangs that need a domain each are: domains are barred to some of them."""
    attempt = asked(0, "default", purpose)
    every, cheapest = domains_of(host_of(attempt), attempt.podgroups, purpose), propose(attempt)
    assert isinstance(cheapest, Plan)
    barred = replace(attempt, domains=every[every != cheapest.domain])
    assert told(outcome(barred, cut)) == told(propose(barred)) != told(cheapest)


@pytest.mark.parametrize("purpose", [Purpose.PREEMPT, Purpose.RECLAIM])
@pytest.mark.parametrize("seed", SEEDS)
def test_one_thread_or_two_the_outcome_is_the_same_to_the_byte(
    monkeypatch: pytest.MonkeyPatch, seed: int, purpose: Purpose
) -> None:
    attempt, threads, real = asked(seed, "default", purpose), list[int](), surveying.both
    monkeypatch.setattr(surveying, "both", lambda *some: threads.append(1) or real(*some))
    for name in FOR_TWO:
        monkeypatch.setattr(surveying, name, 1 << 40)
    alone = told(propose(attempt))
    assert threads == []
    for name in FOR_TWO:
        monkeypatch.setattr(surveying, name, 1)
    assert told(propose(attempt)) == alone
    assert threads


@pytest.mark.parametrize("purpose", [Purpose.PREEMPT, Purpose.RECLAIM])
@pytest.mark.parametrize("seed", SEEDS)
def test_in_halves_or_at_once_the_outcome_is_the_same_to_the_byte(
    monkeypatch: pytest.MonkeyPatch, seed: int, purpose: Purpose
) -> None:
    attempt = asked(seed, "default", purpose)
    tasks = attempt.snapshot.tasks
    stays = with_rows(tasks.preemptible, np.arange(0, len(tasks), 7), False)
    attempt = replace(attempt, snapshot=replace(attempt.snapshot, tasks=replace(tasks, preemptible=stays)))
    alone = told(propose(attempt))
    for module, name in IN_HALVES:
        monkeypatch.setattr(module, name, 1)
    assert told(propose(attempt)) == alone


@pytest.mark.parametrize("name", FOR_TWO)
def test_each_kind_of_work_is_done_by_two_threads_where_there_is_enough_of_it(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    threads, real = list[int](), surveying.both
    monkeypatch.setattr(surveying, "both", lambda *some: threads.append(1) or real(*some))
    for one in FOR_TWO:
        monkeypatch.setattr(surveying, one, 1 if one == name else 1 << 40)
    for seed in SEEDS:
        propose(asked(seed, "default", Purpose.PREEMPT))
    assert threads
