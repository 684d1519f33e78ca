"""Invariant 19: ``simulate`` and the live pipeline decide alike, with any number of searchers and any size of batches.

The live roles run in memory over many cycles; beside every cycle of the first history the core's own cycle runs in
place on the same snapshot, as ``simulate`` runs it. Whole histories of differently spread searches are the same as
well, and so are those in which every plan is committed as soon as it is certain.
"""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any, cast

import numpy as np
import pytest

from actors.configuration.profiles import load_profile
from actors.contracts import Batch, CommitOffers, CommitResult, Offer, Searched, dealt
from actors.observability.telemetry import Telemetry
from actors.search.batched_search import BatchedSearch, Spread
from actors.search.offers_ahead import Call, OffersAhead
from actors.search.searcher import Searcher
from pipeline.actions.backoff import Backoff
from pipeline.cluster.snapshot import Snapshot
from pipeline.cycle import cycle
from pipeline.decision.statement import Statement
from pipeline.policy import PluginSetting, Policy
from tests.support.assembly import Assembly, decisions
from tests.support.depth import sampled
from tests.support.starting_over import arrival, crowded
from tests.support.task_centric import USUAL
from tests.support.task_centric import policy as task_by_task

BUNDLES = load_profile("default")
#: Volcano's task-centric actions; preempt has two passes.
_ALL_BUT = {"gang": ("preemptable", "reclaimable")}
TASKS = replace(
    task_by_task(
        PluginSetting(name, (("*", True), *((point, False) for point in _ALL_BUT.get(name, ()))))
        for name in (*USUAL, "capacity")
    ),
    digest="task by task",
    actions=("enqueue", "allocate", "backfill", "reclaim", "preempt"),
)
OTHERS = {name: load_profile(name) for name in ("volcano", "kai", "koordinator")}
POLICIES = {"bundles": BUNDLES, "tasks": TASKS, **OTHERS}
SEEDS, TURNS = (0, 9, 6, 7, 14)[: sampled(5, least=2)], sampled(10, least=6)
#: Fleets of many domains, of which the solver `bundles` looks with effort at the cheapest alone: racks by seed.
RACKS, BY_BUNDLES = {9: 24, 14: 24}, (BUNDLES.digest, OTHERS["volcano"].digest)
#: Number of searchers, and how the search is spread over them; the first is all in this process.
SPREADS = ((1, Spread()), (2, Spread(1, in_place_cells=0)), (7, Spread(2, in_place_cells=24)))


class Searchers:
    """Implements `contracts.Searchers`: many, each with a copy of the snapshot of which nothing was derived yet."""

    def __init__(self, policy: Policy, telemetry: Telemetry, count: int) -> None:
        self._all = [Searcher(policy, telemetry) for _ in range(count)]

    def search(self, snapshot: Snapshot, batches: Sequence[Batch]) -> list[Searched]:
        found: dict[int, Searched] = {}
        for searcher, share in zip(self._all, dealt(batches, len(self._all)), strict=True):
            answers = searcher.search(replace(snapshot), [batches[at] for at in share])
            found.update(zip(share, answers, strict=True))
        return [found[at] for at in range(len(batches))]


class AtOnce:
    """Implements `offers_ahead.CommitterCalls`: every offer is judged before the next gang is searched for."""

    def __init__(self, commit: CommitOffers) -> None:
        self._commit, self.calls = commit, 0

    def begin(self, offers: Sequence[Offer]) -> Call:
        self.calls += 1
        return tuple(self._commit(offers))

    @staticmethod
    def ended(call: Call) -> bool:  # noqa: ARG004
        return True

    @staticmethod
    def answers(call: Call) -> list[CommitResult]:
        return list(cast("tuple[CommitResult, ...]", call))


def live(seed: int, policy: Policy, count: int, spread: Spread) -> tuple[Assembly, random.Random, AtOnce]:
    draw = random.Random(seed)
    assembly = crowded(draw, policy, RACKS.get(seed, 0) if policy.digest in BY_BUNDLES else 0)
    dispatcher, telemetry = assembly.dispatcher, assembly.telemetry
    everyone = Searchers(policy, telemetry, count)
    dispatcher._search = BatchedSearch(Searcher(policy, telemetry), everyone, spread, telemetry)
    calls = AtOnce(assembly.commit)
    if count > 1:
        offers = OffersAhead(calls)
        dispatcher._commit, dispatcher._ahead = offers, offers.ahead
    dispatcher._backoff = Backoff(first_s=0.0, cap_s=0.0)  # a pause delays, and here timing is held equal too
    return assembly, draw, calls


def columns(made: Statement) -> tuple[Any, ...]:
    named = ("evictions", "nominated", "nominated_node", "nominated_card", "bound", "bound_node", "bound_card")
    return made.action, made.preemptor, *(np.asarray(getattr(made, name)).tolist() for name in named)


@cache
def played(seed: int, profile: str, spread: int) -> tuple[tuple[Any, ...], Counter[str]]:
    """Every decision of a history, and how many evictions it has by action and cycles in which several gangs evict."""
    policy = POLICIES[profile]
    assembly, draw, calls = live(seed, policy, *SPREADS[spread])
    seen: Counter[str] = Counter()
    for turn in range(TURNS):
        if turn % 4 == 0:
            assembly.say([said for at in "vwxyz" for said in assembly.fleet.submit(arrival(draw, f"{at}{turn}"))])
        assembly.committer.lead()
        assembly.hear()
        snapshot, now = assembly.news.snapshot, assembly.clock.now
        done = assembly.dispatcher.cycle(assembly.news)
        assert all(answer.accepted for answer in done.answers)
        if not spread:  # the other histories are held against this one
            alone = cycle(snapshot, policy, now)
            together = [columns(answer.statement) for answer in done.answers if answer.statement is not None]
            assert together == [columns(plan.statement) for plan in alone.plans]
            evicting = Counter(made.action for made in alone.statements if len(made.evictions))
            seen.update(evicting)
            seen["in one cycle"] += evicting.total() > 1
        seen["ahead"] += calls.calls > 1
        calls.calls = 0
        assembly.clock.now += 0.01  # the fleet answers a moment later
        assembly.obey()
        assembly.pass_time(2.0)
    # A search that is cut looks at domains that an uncut one prunes: it explains more, and decides the same.
    return tuple(repr(one.model_dump(exclude={"explanation"})) for one in decisions(assembly)), seen


@pytest.mark.parametrize("profile", POLICIES)
@pytest.mark.parametrize("seed", SEEDS)
def test_however_the_search_is_spread_the_live_roles_decide_what_simulate_decides(seed: int, profile: str) -> None:
    histories = [played(seed, profile, spread)[0] for spread in range(len(SPREADS))]
    assert histories[0]
    assert all(history == histories[0] for history in histories)


@pytest.mark.parametrize("profile", ["bundles", "tasks"])
def test_in_these_histories_several_gangs_evict_in_one_cycle_by_either_action(profile: str) -> None:
    seen = sum((played(seed, profile, 0)[1] for seed in SEEDS), Counter())
    assert seen["preempt"]
    assert seen["reclaim"]
    assert seen["in one cycle"]
    assert sum((played(seed, profile, 1)[1] for seed in SEEDS), Counter())["ahead"]
