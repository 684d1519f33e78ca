"""What the committer remembers of recorded decisions, and a successor reads again."""

from __future__ import annotations

import pytest

from actors.broker.bus import BrokerUnreachable
from actors.broker.ledger import Lease, Record
from actors.broker.memory_bus import MemoryBus
from actors.broker.memory_ledger import MemoryLedger
from actors.commit.decision_book import DecisionBook
from actors.protocol.bodies import Nomination, Overdue, PlanCommitted, PlanWithdrawn
from actors.protocol.envelopes import Outgoing, pack_decision

NOW = 1_700_000_000.0
LATE = Overdue(task="default/slow-0", incarnation=0, avoided_until=NOW + 60.0)


def made(plan: str, *tasks: str, replaces: str | None = None, overdue: tuple[Overdue, ...] = ()) -> PlanCommitted:
    places = [Nomination(task=task, node="n0") for task in tasks]
    return PlanCommitted(
        plan_id=plan, epoch=1, action="preempt", purpose="preempt", evictions=[], nominations=places,
        replaces=replaces, overdue=overdue,
    )  # fmt: skip


def read_again(*decisions: PlanCommitted | PlanWithdrawn) -> DecisionBook:
    """The book of a successor."""
    bus = MemoryBus(clock_s=lambda: NOW)
    ledger = MemoryLedger(bus, clock_s=lambda: NOW)
    lease = ledger.acquire("first", 60_000)
    assert isinstance(lease, Lease)
    for number, body in enumerate(decisions):
        kind = "plan_committed" if isinstance(body, PlanCommitted) else "plan_withdrawn"
        ledger.commit(lease, [Record(f"{number}", b"", pack_decision(Outgoing(kind, body.plan_id, 0, body)))])
    book = DecisionBook(10.0, 30.0, lambda: NOW)
    book.read_again(bus)
    return book


def test_a_decision_that_takes_anothers_place_holds_the_room_alone() -> None:
    book = read_again(made("one", "default/a-0"), made("two", "default/b-0", replaces="one"))
    assert [held.plan_id for held in book.reservations] == ["two"]


@pytest.mark.parametrize("by", ["a withdrawal", "a replacement"])
def test_a_successor_knows_victims_that_did_not_end(by: str) -> None:
    first = made("one", "default/a-0")
    withdrawn = PlanWithdrawn(plan_id="one", epoch=1, reason="victims did not end", overdue=(LATE,))
    instead = made("two", "default/a-0", replaces="one", overdue=(LATE,))
    book = read_again(first, withdrawn if by == "a withdrawal" else instead)
    assert book.overdue == {LATE.task: LATE}
    assert book.last == 2


def test_a_book_that_cannot_be_read_is_an_error_and_not_an_empty_book() -> None:
    class Away(MemoryBus):
        def follow(self, *_asked: object, **_more: object) -> list:  # type: ignore[override, type-arg]
            raise BrokerUnreachable("away")

    with pytest.raises(BrokerUnreachable):
        DecisionBook(10.0, 30.0, lambda: NOW).read_again(Away())


def test_a_decision_that_cannot_be_read_is_named_in_the_log_and_the_others_are_read(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bus = MemoryBus(clock_s=lambda: NOW)
    ledger = MemoryLedger(bus, clock_s=lambda: NOW)
    lease = ledger.acquire("first", 60_000)
    assert isinstance(lease, Lease)
    later = Outgoing("plan_committed", "two", 0, made("two", "default/b-0"))
    ledger.commit(lease, [Record("0", b"", {"batch": b"of a later version"}), Record("1", b"", pack_decision(later))])
    book = DecisionBook(10.0, 30.0, lambda: NOW)
    book.read_again(bus)
    assert [held.plan_id for held in book.reservations] == ["two"]
    assert [line.levelname for line in caplog.records] == ["ERROR"]
    assert "cannot be read" in caplog.text


def test_victims_whose_time_is_over_are_forgotten() -> None:
    now = [NOW]
    book = DecisionBook(10.0, 30.0, lambda: now[0])
    book.withdrawn(PlanWithdrawn(plan_id="one", reason="", overdue=(LATE,)))
    other = LATE.model_copy(update={"task": "default/slow-1", "avoided_until": NOW + 200.0})
    now[0] += 50.0
    book.withdrawn(PlanWithdrawn(plan_id="two", reason="", overdue=(other,)))
    assert set(book.overdue) == {LATE.task, other.task}
    now[0] += 50.0
    book.withdrawn(PlanWithdrawn(plan_id="three", reason=""))
    assert set(book.overdue) == {other.task}
