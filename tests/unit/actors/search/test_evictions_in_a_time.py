"""The window of evictions in the live pipeline: held over cycles, starts and two searchers, opened by time alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from actors.broker.bus import DECISIONS, EVENTS, START
from actors.cli.sentences import attempt_lines
from actors.configuration.profiles import load_profile
from actors.contracts import Batch, Searched
from actors.ingestion.exported import cluster_document
from actors.search.batched_search import BatchedSearch, Spread
from actors.search.pending_reasons import newest
from actors.search.searcher import Searcher
from pipeline.cluster.checkpoint import decode
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.obstacle import Cause
from tests.chaos.eviction_windows import beyond, of_history, paced
from tests.support.assembly import Assembly, HeldBack, decisions, full, full_racks, gang
from tests.support.encoded import encoded


def submit(assembly: Assembly, *names: str) -> None:
    for name in names:
        assembly.submit(gang(name, 3, 8, priority=5, topology={"required": "rack"}))


class Elsewhere:
    """Searchers in other processes: each has the snapshot as it arrives there, and makes its own plugins."""

    def __init__(self, assembly: Assembly, count: int = 2) -> None:
        self.asked = [0] * count
        self._searchers = [Searcher(assembly.policy, assembly.telemetry) for _ in range(count)]

    def search(self, snapshot: Snapshot, batches: Sequence[Batch]) -> list[Searched]:
        found = list[Searched]()
        for batch in batches:
            which = sum(self.asked) % len(self._searchers)
            self.asked[which] += 1
            found += self._searchers[which].search(decode(encoded(snapshot)), [batch])
        return found


def windows_exceeded(assembly: Assembly) -> list[str]:
    told = of_history(
        assembly.bus.follow(EVENTS, START, count=10_000), assembly.bus.follow(DECISIONS, START, count=10_000)
    )
    assert told
    return list(beyond(told, assembly.policy))


@pytest.mark.parametrize("profile", ["default", "kai", "koordinator"])
def test_two_searchers_and_a_committer_hold_the_window_until_all_are_served(profile: str) -> None:
    assembly = full(4, policy=paced(load_profile(profile), in_window=7, in_window_of_queue=6, window_s=30))
    away = Elsewhere(assembly)
    dispatcher = assembly.dispatcher
    here, spread = Searcher(assembly.policy, assembly.telemetry), Spread(domains=1, in_place_cells=0)
    dispatcher._search = BatchedSearch(here, away, spread, assembly.telemetry)
    submit(assembly, "g0", "g1", "g2", "g3")
    for _ in range(120):
        assembly.turn()
        names = [f"g{at}-{one}" for at in range(4) for one in range(3)]
        if all(assembly.status(name) == "Running" for name in names):
            break
    assert {assembly.status(name) for name in names} == {"Running"}
    assert windows_exceeded(assembly) == []
    assert sum(len(one.evictions) for one in decisions(assembly) if one.__class__.__name__ == "PlanCommitted") == 12
    assert min(away.asked) > 0
    assert assembly.clock.now - 1_700_000_000.0 > 30


def test_time_alone_opens_the_search_again_and_not_before() -> None:
    assembly = full(4, policy=paced(load_profile("default"), in_window=3, window_s=100))
    submit(assembly, "g0", "g1")
    assembly.turns(12)
    first = [one.judged_on.at for one in decisions(assembly) if one.evictions]
    assert len(first) == 1
    at = assembly.dispatcher.next_at(assembly.ingest.snapshot)
    assert at == first[0] + 100
    for moment, served in ((at - 1.0, 0), (at, 1)):
        assembly.clock.now = moment
        assembly.committer.lead()
        done = assembly.cycle()
        assert sum(answer.accepted for answer in done.answers) == served
    assembly.turns(8)
    assert {assembly.status(f"g{at}-0") for at in range(2)} == {"Running"}


def test_a_gang_that_waits_for_the_window_is_told_so_in_numbers() -> None:
    assembly = full(4, policy=paced(load_profile("default"), in_window=3, in_window_of_queue=3, window_s=100))
    submit(assembly, "g0", "g1")
    assembly.turns(12)
    (waits,) = [one for one in newest(assembly.bus) if one.attempts]
    lines = [line for attempt in waits.attempts for line in attempt_lines(attempt)]
    said = [line.strip() for line in lines if "may be evicted" in line]
    assert said[:2] == [
        f"{whose} lost 3 of the 3 tasks that may be evicted within 100 s; the next leaves that time at "
        "2023-11-14 22:15:00+00:00: wait, or raise what the policy allows (plugin evictionbudget)"
        for whose in ("all queues", "queue a")
    ]
    causes = {told["cause"] for attempt in waits.attempts for told in attempt["obstacles"]}
    assert Cause.TOGETHER.value not in causes


def test_plans_that_were_made_side_by_side_are_judged_one_after_the_other() -> None:
    assembly = HeldBack(full_racks(4))
    assembly.hear()
    submit(assembly, "g0", "g1")
    assembly.cycle()
    bounded = paced(assembly.policy, in_window=5)
    assembly.policy = assembly.committer._policy = replace(bounded, digest=assembly.committer._policy.digest)
    assert len(assembly.offers) == 2
    answers = assembly.committer.commit(assembly.offers)
    assert [(one.verdict, one.reason) for one in answers] == [
        ("accepted", ""), ("stale", "the policy lets no more tasks be evicted now"),
    ]  # fmt: skip


def test_after_a_start_what_was_evicted_before_still_counts() -> None:
    assembly = full(4, policy=paced(load_profile("default"), in_window=5, window_s=100))
    submit(assembly, "g0")
    assembly.turns(4)
    before = assembly.ingest.snapshot.recent
    assert before.count.tolist() == [3]
    assembly.ingest.ingestor.checkpoint()
    assembly.restart_ingestor()
    assembly.hear()
    after = assembly.ingest.snapshot.recent
    assert (after.at.tolist(), after.count.tolist()) == (before.at.tolist(), before.count.tolist())
    assembly.say(assembly.fleet.listing("again"))
    assembly.hear()
    assert assembly.ingest.snapshot.recent.count.tolist() == [3]
    document = cluster_document(assembly.ingest.ingestor.state, assembly.clock.now)
    assert document["recent_evictions"] == [{"queue": "a", "at": before.at.tolist()[0], "count": 3}]
