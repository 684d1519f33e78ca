"""The dispatcher: who is searched for where, and which plans are taken."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import get_current_span

from actors.contracts import Batch, CommitOffers, CommitResult, Offer, Searched, plan_id
from actors.observability.traces import EVENT_LOST, SPAN_SEARCH_SPACE
from actors.search.batched_search import BatchedSearch, Spread
from actors.search.offers_ahead import Call, OffersAhead
from actors.search.searcher import Searcher
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.attempt import Attempt
from pipeline.decision.plan import Plan
from pipeline.plugins.host import Host
from pipeline.policy import Purpose
from pipeline.propose import propose
from tests.support.assembly import Assembly, decisions, full, gang, rack_cluster


class Watched:
    """A search that remembers what it was asked, and loses what it is told to lose."""

    def __init__(self, inner: Searcher) -> None:
        self.inner, self.asked, self.losing = inner, [], False
        self.asked: list[Batch]

    def search(self, snapshot: Snapshot, batches: Sequence[Batch], host: Host | None = None) -> list[Searched]:
        self.asked += batches
        if self.losing:
            return [Searched(batch.preemptor, None) for batch in batches]
        return self.inner.search(snapshot, batches, host)


class Ending:
    """A committer whose service is told to stop while it answers its first call; see `offers_ahead.CommitterCalls`."""

    def __init__(self, commit: CommitOffers) -> None:
        self._commit, self.ends, self._asked = commit, False, list[Sequence[Offer]]()

    def begin(self, offers: Sequence[Offer]) -> Call:
        self._asked.append(offers)
        return len(self._asked) - 1

    @staticmethod
    def ended(call: Call) -> bool:  # noqa: ARG004
        return False

    def answers(self, call: Call) -> list[CommitResult]:
        assert isinstance(call, int)
        self.ends = True
        return self._commit(self._asked[call])


def watched(assembly: Assembly) -> Watched:
    found = Watched(Searcher(assembly.policy, assembly.telemetry))
    dispatcher = assembly.dispatcher
    dispatcher._search = BatchedSearch(found, found, dispatcher._spread, assembly.telemetry)
    return found


def running_since(assembly: Assembly) -> list[float]:
    """When the cycle began that is said to run now; none if none is."""
    families = assembly.telemetry.exposed.families()
    return [sample.value for one in families if one.name.startswith("clearway_cycle_began") for sample in one.samples]


def test_how_long_a_cycle_runs_can_be_seen_while_it_runs_and_no_longer() -> None:
    assembly, seen = full(4), list[list[float]]()
    assembly.submit(gang("big", 3, 8, priority=5, topology={"required": "rack"}))
    commit = assembly.dispatcher._commit

    def while_running(offers: Sequence[Offer]) -> list[CommitResult]:
        seen.append(running_since(assembly))
        return commit(offers)

    assembly.dispatcher._commit = while_running
    began = assembly.clock()
    assembly.turn()
    assert seen == [[began]]
    assert running_since(assembly) == []


def test_a_gang_that_starves_gets_its_room_and_starts_in_it() -> None:
    assembly = full(4)
    assembly.submit(gang("big", 3, 8, priority=5, topology={"required": "rack"}))
    first = assembly.turn()
    assert [answer.verdict for answer in first.answers] == ["accepted"]
    assert first.sequence == first.answers[0].sequence == 1
    assembly.turns(8)
    assert {assembly.status(f"big-{at}") for at in range(3)} == {"Running"}
    report = assembly.report()
    assert (report.broken, report.victims, report.placed) == ([], 3, 1)


def test_unchanged_state_is_decided_on_once() -> None:
    assembly = full(4)
    assembly.submit(gang("big", 3, 8, priority=5))
    assembly.cycle()
    again = assembly.cycle()
    assert again.answers == ()


def test_domains_are_dealt_out_in_batches_and_none_is_missed() -> None:
    assembly = full(4, spread=Spread(domains=2, in_place_cells=0))
    seen = watched(assembly)
    assembly.submit(gang("big", 3, 8, priority=5, topology={"required": "rack"}))
    assembly.cycle()
    batches = [batch for batch in seen.asked if batch.purpose is Purpose.PREEMPT and batch.part]
    assert [len(batch.domains) for batch in batches] == [2, 2]
    assert sorted(domain for batch in batches for domain in batch.domains.tolist()) == [1, 2, 3, 4]


def test_the_span_of_a_search_lasts_until_it_is_answered_and_takes_what_is_noted_meanwhile() -> None:
    assembly, waiting = full(4, spread=Spread(in_place_cells=0)), list[ReadableSpan]()
    seen = watched(assembly)

    class Noting(Watched):
        def search(self, snapshot: Snapshot, batches: Sequence[Batch], host: Host | None = None) -> list[Searched]:
            assembly.telemetry.event(EVENT_LOST, searcher="searcher-1")
            span = get_current_span()
            assert isinstance(span, ReadableSpan)
            waiting.append(span)
            return super().search(snapshot, batches, host)

    assembly.dispatcher._search = BatchedSearch(
        seen, Noting(seen.inner), assembly.dispatcher._spread, assembly.telemetry
    )
    assembly.submit(gang("big", 3, 8, priority=5, topology={"required": "rack"}))
    assembly.cycle()
    assert {span.name for span in waiting} == {SPAN_SEARCH_SPACE}
    assert [[(one.name, one.attributes) for one in span.events] for span in waiting] == [
        [(EVENT_LOST, {"searcher": "searcher-1"})] for _ in waiting
    ]


def test_batches_together_find_what_one_search_finds() -> None:
    assembly = full(4, spread=Spread(domains=1, in_place_cells=0))
    assembly.submit(gang("big", 3, 8, priority=5, topology={"required": "rack"}))
    assembly.hear()
    snapshot, policy, now = assembly.ingest.snapshot, assembly.policy, assembly.clock.now
    unit = len(snapshot.podgroups) - 1
    whole = propose(Attempt(snapshot, policy, Purpose.PREEMPT, (unit,), None, now, "preempt"))
    assert isinstance(whole, Plan)
    (answer,) = assembly.cycle().answers
    assert answer.statement is not None
    assert answer.statement.evictions.tolist() == whole.statement.evictions.tolist()
    assert answer.plan_id == plan_id(str(unit), whole)


def test_two_gangs_of_one_cycle_never_share_a_victim() -> None:
    assembly = full()
    for name in ("x", "y", "z"):
        assembly.submit(gang(name, 3, 8, priority=5, topology={"required": "rack"}))
    first = assembly.cycle()
    assert sum(answer.accepted for answer in first.answers) >= 1
    assembly.turns(20)
    report = assembly.report()
    assert report.broken == []
    assert report.placed == 2  # there are two racks, and equals are not evicted


@pytest.mark.parametrize("in_place_cells", [0, 4_096])
def test_gangs_that_want_the_same_best_domain_are_all_placed_in_one_cycle(in_place_cells: int) -> None:
    """Each finds the rack that is empty but for one task the cheapest; there is one such rack and four gangs."""
    cluster = rack_cluster(racks=4)
    cluster["podgroups"] = [gang(f"low{at}", 1, 8, nodes=[f"n{at}"]) for at in range(16) if at not in (4, 5, 6)]
    assembly = Assembly(cluster, spread=Spread(in_place_cells=in_place_cells))
    for name in ("w", "x", "y", "z"):
        assembly.submit(gang(name, 4, 8, priority=5, topology={"required": "rack"}))
    done = assembly.cycle()
    assert [answer.verdict for answer in done.answers] == ["accepted"] * 4
    assert not done.again
    assert assembly.report().broken == []


def test_a_gang_is_searched_for_again_after_another_got_its_room() -> None:
    """Both want the same rack, and both are searched for at once; the outcome of the second is out of date by then."""
    assembly = full(2, spread=Spread(in_place_cells=0))
    seen = watched(assembly)
    for name, priority in (("x", 5), ("y", 4)):
        assembly.submit(gang(name, 3, 8, priority=priority, topology={"required": "rack"}))
    done = assembly.cycle()
    assert [answer.verdict for answer in done.answers] == ["accepted"] * 2
    asked = [(batch.podgroups, len(batch.domains)) for batch in seen.asked if batch.purpose is Purpose.PREEMPT]
    assert asked == [((8,), 2), ((9,), 2), ((9,), 2)]


def test_a_decision_is_explained_the_same_wherever_it_was_searched_for() -> None:
    told = []
    for in_place_cells, domains in ((4_096, 64), (0, 64), (0, 1)):
        assembly = full(4, spread=Spread(domains, in_place_cells=in_place_cells))
        for name in ("x", "y"):
            assembly.submit(gang(name, 3, 8, priority=5, topology={"required": "rack"}))
        assembly.cycle()
        told.append(
            [
                sorted((one["domain"], one["reason"]) for one in made.explanation["tried"])
                for made in decisions(assembly)
            ]
        )
    assert told[0] == told[1] == told[2]
    assert [[reason for _, reason in made].count("chosen") for made in told[0]] == [1, 1]


def test_gangs_that_share_the_only_domain_are_served_in_turn() -> None:
    """There is no topology to share out: the whole cluster is the only domain, and there is room in it for two."""
    assembly = full(2, spread=Spread(in_place_cells=0))
    seen = watched(assembly)
    for name, priority in (("x", 7), ("y", 6), ("z", 5)):
        assembly.submit(gang(name, 3, 8, priority=priority))
    done = assembly.cycle()
    assert [answer.verdict for answer in done.answers] == ["accepted"] * 2
    assert not done.again
    assert assembly.report().broken == []
    assert {batch.preemptor for batch in seen.asked if batch.purpose is Purpose.PREEMPT} == {0, 1, 2}


def test_of_two_plans_that_overdraw_a_queue_together_the_second_is_never_offered() -> None:
    """Queue b deserves eight and has twelve; two gangs of queue a want four each, and each alone would be lawful."""
    cluster = rack_cluster(racks=2, nodes=1, devices=8)
    cluster["queues"] = [{"name": "a", "deserved": {"gpu": 8}}, {"name": "b", "deserved": {"gpu": 8}}]
    cluster["podgroups"] = [
        *(gang(f"b{at}", 1, 4, queue="b", nodes=[f"n{at // 2}"]) for at in range(3)),
        gang("keep", 1, 4, queue="a", preemptible=False, nodes=["n1"]),
    ]
    assembly = Assembly(cluster, spread=Spread(in_place_cells=0))
    for name in ("x", "y"):
        assembly.submit(gang(name, 1, 4, queue="a", topology={"required": "rack"}))
    done = assembly.cycle()
    assert [answer.verdict for answer in done.answers] == ["accepted"]
    assert done.answers[0].statement is not None
    assert len(done.answers[0].statement.evictions) == 1


@pytest.mark.parametrize("verdict", ["conflict", "stale"])
def test_a_refused_plan_pauses_its_gang_and_needs_no_news(verdict: str) -> None:
    assembly = full(4)
    refusing = [True]

    def commit(offers: list[Offer]) -> list[CommitResult]:
        if refusing[0]:
            return [CommitResult(offer.plan_id, verdict, "the room was promised to another") for offer in offers]
        return assembly.committer.commit(offers)

    assembly.dispatcher._commit = commit
    seen = watched(assembly)
    assembly.submit(gang("big", 3, 8, priority=5))
    assert assembly.cycle().again
    asked = len(seen.asked)
    assert assembly.cycle().answers == ()
    assert len(seen.asked) == asked
    at = assembly.dispatcher.next_at(assembly.ingest.snapshot)
    assert at is not None
    assembly.clock.now, refusing[0] = at, False
    assert [answer.verdict for answer in assembly.cycle().answers] == ["accepted"]


def test_a_search_without_a_plan_is_not_repeated_without_news() -> None:
    assembly = full(4)
    assembly.submit(gang("huge", 40, 8, priority=5))
    seen = watched(assembly)
    done = assembly.cycle()
    assert (done.starving, done.unplaced, done.again) == (1, 1, False)
    asked = len(seen.asked)
    assembly.clock.now += 1000.0
    assembly.cycle()
    assert len(seen.asked) == asked
    assert assembly.dispatcher.next_at(assembly.ingest.snapshot) is None


def test_a_pause_lasts_no_longer_because_the_clock_was_put_back() -> None:
    assembly = full(4)
    assembly.submit(gang("huge", 40, 8, priority=5))
    seen = watched(assembly)
    assembly.cycle()
    asked = len(seen.asked)
    assembly.clock.now -= 3_600.0
    assembly.submit(gang("other", 1, 8))  # news
    assert assembly.cycle().unplaced == 2
    assert len(seen.asked) > asked


def test_a_lost_batch_is_tried_again_and_is_no_refusal() -> None:
    assembly = full(4)
    seen = watched(assembly)
    seen.losing = True
    assembly.submit(gang("big", 3, 8, priority=5))
    lost = assembly.cycle()
    assert (lost.answers, lost.unplaced, lost.again) == ((), 0, True)
    seen.losing = False
    assert [answer.verdict for answer in assembly.cycle().answers] == ["accepted"]


def test_a_cycle_ends_in_order_where_the_service_is_told_to_stop_before_all_its_plans_are_judged() -> None:
    assembly = full(4)
    for name in ("x", "y", "z"):
        assembly.submit(gang(name, 3, 8, priority=5, topology={"required": "rack"}))
    committer = Ending(assembly.commit)
    offers = OffersAhead(committer, lambda: committer.ends)
    assembly.dispatcher._commit, assembly.dispatcher._ahead = offers, offers.ahead
    done = assembly.cycle()
    assert [answer.verdict for answer in done.answers] == ["accepted", "unready", "unready"]
    assert done.again


def test_a_decision_names_the_states_that_it_follows_from_and_what_its_cycle_left_out() -> None:
    assembly = full()
    assembly.submit(gang("wide", 30, 8, priority=9))
    assembly.cycle()
    assembly.submit(gang("fits", 2, 8, priority=5))
    assembly.hear()
    planned, at = assembly.news.snapshot, assembly.clock.now
    assembly.dispatcher.cycle(assembly.news)
    (made,) = decisions(assembly)
    assert made.planned_on.model_dump() == {
        "epoch": planned.epoch, "revision": planned.revision, "at": at, "paused": ("default/wide",),
    }  # fmt: skip
    assert made.judged_on.model_dump() == {"epoch": planned.epoch, "revision": planned.revision, "at": at}


def test_a_decision_names_no_more_paused_podgroups_than_a_reader_can_use() -> None:
    assembly = full()
    for at in range(257):
        assembly.submit(gang(f"wide{at}", 30, 8, priority=9))
    while assembly.cycle().again:
        pass
    assembly.submit(gang("fits", 2, 8, priority=5))
    assembly.cycle()
    (made,) = decisions(assembly)
    assert made.planned_on.paused is None


def test_only_so_many_are_searched_for_in_one_cycle() -> None:
    assembly = full(4, spread=Spread(preemptors=1))
    seen = watched(assembly)
    for name in ("x", "y"):
        assembly.submit(gang(name, 3, 8, priority=5))
    done = assembly.cycle()
    assert {batch.podgroups for batch in seen.asked if batch.purpose is Purpose.PREEMPT} == {(16,)}
    assert done.again


def test_what_fits_is_placed_without_a_search() -> None:
    assembly = Assembly(rack_cluster())
    seen = watched(assembly)
    assembly.hear()
    assembly.submit(gang("small", 2, 4))
    (answer,) = assembly.turn().answers
    assert answer.statement is not None
    assert len(answer.statement.bound) == 2
    assert seen.asked == []
    assert assembly.status("small-0") == "Running"


def test_the_same_plan_has_the_same_id_and_another_a_different_one() -> None:
    assembly = full(4)
    assembly.submit(gang("big", 3, 8, priority=5))
    assembly.hear()
    attempt = Attempt(
        assembly.ingest.snapshot, assembly.policy, Purpose.PREEMPT, (16,), None, assembly.clock.now, "preempt"
    )
    one, two = propose(attempt), propose(attempt)
    assert isinstance(one, Plan)
    assert isinstance(two, Plan)
    assert plan_id("16", one) == plan_id("16", two)
    later = replace(one, assumes=replace(one.assumes, revision=one.assumes.revision + 1))
    assert plan_id("16", one) != plan_id("16", later)
