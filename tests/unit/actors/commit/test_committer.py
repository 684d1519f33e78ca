"""The committer: judges by meaning, records once, and tends what it promised."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from actors.broker.bus import DECISIONS, BrokerRefused, BrokerUnreachable
from actors.broker.ledger import Lease, Record, RecordOutcome
from actors.commit.committer import Committer, TimeLimits
from actors.protocol.bodies import PlanCommitted, PlanWithdrawn
from pipeline.cluster.arrays import NONE
from tests.support.assembly import Clock, HeldBack, decisions, gang


def test_an_accepted_plan_is_recorded_with_everything_it_does(held: HeldBack) -> None:
    (answer,) = held.committer.commit(held.offers)
    (made,) = decisions(held)
    assert answer.accepted
    assert isinstance(made, PlanCommitted)
    assert (made.preemptor, made.queue, made.action, len(made.evictions)) == ("default/big", "a", "preempt", 3)
    assert {one.task for one in made.nominations} == {"default/big-0", "default/big-1", "default/big-2"}
    assert made.explanation["reason"] == "chosen"
    assert made.cost["evicted_to_requested/gpu"] == 1.0


def test_a_retry_gets_the_first_verdict_and_records_nothing(held: HeldBack) -> None:
    (first,) = held.committer.commit(held.offers)
    (again,) = held.committer.commit(held.offers)
    assert (again.verdict, again.sequence, again.statement) == ("accepted", first.sequence, None)
    assert len(decisions(held)) == 1


def test_a_plan_behind_a_retry_is_promised_nothing_until_it_is_recorded(held: HeldBack) -> None:
    held.submit(gang("other", 3, 8, priority=4, topology={"required": "rack"}))
    held.cycle()
    *_, first, second = held.offers
    held.committer.commit([first])
    answers = held.committer.commit([first, second])
    assert [answer.verdict for answer in answers] == ["accepted", "accepted"]
    assert [one.preemptor for one in decisions(held)] == ["default/big", "default/other"]


def test_a_refusal_is_remembered_too(held: HeldBack) -> None:
    expired = [replace(held.offers[0], plan=replace(held.offers[0].plan, expires_at=held.clock.now - 1.0))]
    (first,) = held.committer.commit(expired)
    assert (first.verdict, first.reason) == ("stale", "the plan expired")
    (again,) = held.committer.commit(held.offers)  # the same id, and by now a plan that would hold
    assert (again.verdict, again.reason) == ("stale", "the plan expired")
    assert decisions(held) == []


def test_a_second_plan_sees_what_the_first_was_promised_before_any_news(held: HeldBack) -> None:
    held.committer.commit(held.offers)
    (second,) = held.committer.commit([replace(held.offers[0], plan_id="other")])
    assert second.verdict in ("conflict", "stale")
    assert len(decisions(held)) == 1


def test_a_victim_that_is_gone_is_dropped(held: HeldBack) -> None:
    victim = int(held.offers[0].plan.statement.evictions[0])
    name = held.directory.tasks([victim])[0]
    held.say([held.fleet._end(held.fleet._tasks[name], "Succeeded", replaced=False)])
    held.hear()
    (answer,) = held.committer.commit(held.offers)
    (made,) = decisions(held)
    assert answer.accepted
    assert len(made.evictions) == 2
    assert name not in {one.task for one in made.evictions}


def test_a_plan_is_not_judged_before_the_news_that_it_was_made_on(held: HeldBack) -> None:
    before = held.committer._state.snapshot
    held.submit(gang("later", 1, 1))
    held.hear()
    assert before is not None
    assumes = replace(held.offers[0].plan.assumes, revision=held.ingest.snapshot.revision)
    ahead = replace(held.offers[0], plan=replace(held.offers[0].plan, assumes=assumes))
    held.committer.hear(before)
    (answer,) = held.committer.commit([ahead])
    assert (answer.verdict, answer.reason) == ("unready", "the news that the plan was made on has not arrived yet")
    held.committer.hear(held.ingest.snapshot)
    assert held.committer.commit([ahead])[0].accepted


def test_verdicts_of_trimmed_decisions_are_forgotten_while_the_committer_leads(
    held: HeldBack, monkeypatch: pytest.MonkeyPatch
) -> None:
    forgets: list[int] = []
    forget = held.ledger.forget
    monkeypatch.setattr(held.ledger, "forget", lambda lease: forgets.append(forget(lease, keep=0)))
    held.committer.commit(held.offers)
    for gone in (0, 1, 0):
        held.bus._log(DECISIONS).drop(gone)
        held.clock.now += 61.0
        held.committer.lead()
        held.hear()
        held.committer.tend()
        held.committer.tend()
    assert forgets == [0, 1, 0]


def test_verdicts_are_forgotten_in_time_although_the_clock_was_put_back(
    held: HeldBack, monkeypatch: pytest.MonkeyPatch
) -> None:
    elapsed, forgets = Clock(50.0), list[int]()
    committer = Committer(
        held.ledger, held.bus, held.policy, held.directory, held.telemetry,
        owner="other", now_s=held.clock, elapsed_s=elapsed,
    )  # fmt: skip
    forget = held.ledger.forget
    monkeypatch.setattr(held.ledger, "forget", lambda lease: forgets.append(forget(lease)))
    held.committer.resign()
    committer.lead()
    committer.hear(held.ingest.snapshot)
    committer.tend()
    held.clock.now -= 3_600.0
    elapsed.now += 61.0
    committer.lead()
    committer.tend()
    assert len(forgets) == 2


def test_nothing_is_judged_on_decisions_that_the_broker_has_lost(held: HeldBack) -> None:
    held.hear()
    held.committer.hear(replace(held.ingest.snapshot, decided=1))
    (answer,) = held.committer.commit(held.offers)
    lost = "the broker has lost decisions that the state contains"
    assert (answer.verdict, answer.reason, decisions(held)) == ("unready", lost, [])


def test_a_successor_judges_nothing_before_it_knows_what_was_decided(held: HeldBack) -> None:
    held.committer.commit(held.offers)
    before = held.ingest.snapshot
    successor = taken_over(held)
    successor.hear(before)
    (answer,) = successor.commit([replace(held.offers[0], plan_id="other")])
    assert (answer.verdict, answer.reason) == ("unready", "earlier decisions are not folded yet")
    held.hear()
    successor.hear(held.ingest.snapshot)
    (answer,) = successor.commit(held.offers)
    assert answer.accepted


def test_a_successor_holds_the_reservations_that_stand(held: HeldBack) -> None:
    held.committer.commit(held.offers)
    held.hear()
    successor = taken_over(held)
    successor.hear(held.ingest.snapshot)
    assert [one.plan_id for one in successor.reservations] == [held.offers[0].plan_id]
    assert successor.reservations == held.committer.reservations


def test_room_that_is_not_taken_in_time_is_given_up(held: HeldBack) -> None:
    held.policy = replace(held.policy, reservation_ttl_s=30.0)
    held.committer = impatient(held, TimeLimits())
    held.committer.commit(held.offers)
    held.obey()
    held.pass_time(10.0)
    held.hear()
    assert held.committer.reservations
    held.pass_time(25.0)
    held.committer.lead()
    assert held.committer.tend() == [held.offers[0].plan_id]
    withdrawn = decisions(held)[-1]
    assert isinstance(withdrawn, PlanWithdrawn)
    assert withdrawn.reason.startswith("not started in time: default/big-0")
    held.hear()
    assert not (held.ingest.snapshot.tasks.nominated >= 0).any()


def test_victims_that_do_not_end_are_named(held: HeldBack) -> None:
    held.committer = impatient(held, TimeLimits(eviction_deadline_s=4.0))
    held.committer.commit(held.offers)
    held.hear()
    held.clock.now += 4.5
    assert held.committer.next_deadline() is not None
    held.committer.lead()
    assert held.committer.tend() == [held.offers[0].plan_id]
    assert {one.task for one in decisions(held)[-1].overdue} == {f"default/low{at}-0" for at in range(1, 4)}


def test_a_need_that_vanishes_ends_the_reservation(held: HeldBack) -> None:
    held.committer.commit(held.offers)
    held.hear()
    held.give_up()
    held.hear()
    assert held.committer.reservations == ()


def test_a_record_without_an_acknowledgement_is_found_in_the_stream(held: HeldBack) -> None:
    record = held.ledger.commit

    def unheard(lease: Lease, asked: Sequence[Record]) -> list[RecordOutcome]:
        record(lease, asked)
        raise BrokerUnreachable("the answer was lost")

    held.ledger.commit = unheard  # type: ignore[method-assign]
    with pytest.raises(BrokerUnreachable):
        held.committer.commit(held.offers)
    held.ledger.commit = record  # type: ignore[method-assign]
    (other,) = held.committer.commit([replace(held.offers[0], plan_id="other")])
    assert other.verdict == "unready"
    assert held.committer.lead()
    assert [one.plan_id for one in held.committer.reservations] == [held.offers[0].plan_id]
    assert held.committer.commit(held.offers)[0].verdict == "unready"
    held.hear()
    assert held.committer.commit(held.offers)[0].accepted
    assert len(decisions(held)) == 1


def test_nothing_is_judged_in_other_rows_than_those_of_our_own_decisions(held: HeldBack) -> None:
    before = held.ingest.snapshot
    held.committer.commit(held.offers)
    held.committer.hear(replace(before, epoch=before.epoch + 1))
    (answer,) = held.committer.commit([replace(held.offers[0], plan_id="other")])
    assert (answer.verdict, answer.reason) == (
        "unready", "rows were renumbered and our own decisions are not folded yet",
    )  # fmt: skip


def test_a_decision_of_which_there_is_no_news_yet_is_not_given_up(held: HeldBack) -> None:
    held.committer.commit(held.offers)
    assert held.committer.tend() == []
    assert len(held.committer.reservations) == 1


@pytest.mark.parametrize("error", [BrokerUnreachable, BrokerRefused])
def test_what_was_never_recorded_is_not_promised(held: HeldBack, error: type[Exception]) -> None:
    record = held.ledger.commit

    def away(*_asked: object) -> list[RecordOutcome]:
        raise error("the question was lost")

    held.ledger.commit = away  # type: ignore[method-assign]
    with pytest.raises(error):
        held.committer.commit(held.offers)
    held.ledger.commit = record  # type: ignore[method-assign]
    assert held.committer.lead()
    (other,) = held.committer.commit([replace(held.offers[0], plan_id="other")])
    assert other.accepted


def test_a_successor_goes_on_with_the_numbers_of_the_records(held: HeldBack) -> None:
    held.committer.commit(held.offers)
    held.hear()
    successor = taken_over(held)
    successor.hear(held.ingest.snapshot)
    expired = replace(held.offers[0].plan, expires_at=held.clock.now - 1.0)
    (answer,) = successor.commit([replace(held.offers[0], plan_id="late", plan=expired)])
    assert (answer.verdict, answer.reason) == ("stale", "the plan expired")
    assert successor.leads


def test_a_promise_that_the_state_does_not_know_is_withdrawn(held: HeldBack) -> None:
    held.committer.commit(held.offers)
    held.hear()
    snapshot, tasks = held.ingest.snapshot, held.ingest.snapshot.tasks
    forgotten = replace(tasks, nominated=np.full_like(tasks.nominated, NONE))
    held.committer.hear(replace(snapshot, tasks=forgotten))
    assert held.committer.tend() == [held.offers[0].plan_id]
    assert decisions(held)[-1].reason.startswith("the promise is gone: default/big-0")


def test_nothing_is_judged_or_withdrawn_before_a_fleet_that_lost_news_has_listed(held: HeldBack) -> None:
    held.committer.commit(held.offers)
    held.hear()
    held.committer.unlisted()
    held.clock.now += 4.5
    held.committer.lead()
    assert held.committer.tend() == []
    (answer,) = held.committer.commit([replace(held.offers[0], plan_id="other")])
    assert answer.verdict == "unready"
    assert answer.reason == "no snapshot has arrived yet, or the fleet is to be listed first"
    assert len(decisions(held)) == 1
    held.hear()
    assert held.committer.tend() == []
    assert held.committer.commit([replace(held.offers[0], plan_id="other")])[0].verdict == "conflict"


def test_who_is_placed_anew_is_held_by_the_later_decision_alone(held: HeldBack) -> None:
    held.committer.commit(held.offers)
    held.obey()
    held.pass_time(10.0)
    held.hear()
    held.offers.clear()
    held.committer.lead()
    held.cycle()
    assert [len(one.plan.statement.bound) for one in held.offers] == [3]
    assert held.committer.commit(held.offers)[0].accepted
    assert held.committer.reservations == ()
    successor = taken_over(held)
    assert successor.reservations == ()


def impatient(held: HeldBack, limits: TimeLimits) -> Committer:
    """The committer after a restart with other limits."""
    held.committer.resign()
    fresh = held.new_committer("impatient", limits)
    assert fresh.lead()
    fresh.hear(held.ingest.snapshot)
    return fresh


def taken_over(held: HeldBack) -> Committer:
    """Another committer, once the lease of the first ran out."""
    held.clock.now += 6.0
    successor = held.new_committer("second")
    assert successor.lead()
    return successor


def test_after_a_lost_answer_nothing_is_judged_before_what_was_written_is_known(held: HeldBack) -> None:
    """The broker wrote the decision and its answer was lost: asked again it says so, and we know of no such promise."""
    commit, asked = held.ledger.commit, []

    def losing(lease: Lease, records: Sequence[Record]) -> list[RecordOutcome]:
        asked.append(commit(lease, records[:1]))
        return commit(lease, records) if len(asked) == 1 else asked[-1]

    held.ledger.commit = losing  # type: ignore[method-assign] # a broker whose first answer is lost
    first, second = held.committer.commit([held.offers[0], replace(held.offers[0], plan_id="other")])
    assert (first.verdict, first.sequence) == ("accepted", 1)
    assert second.verdict == "unready"
    assert len(decisions(held)) == 1
    assert held.committer.lead()
    held.hear()
    assert [one.plan_id for one in held.committer.reservations] == [held.offers[0].plan_id]
    assert held.committer.commit([replace(held.offers[0], plan_id="other")])[0].verdict == "conflict"
