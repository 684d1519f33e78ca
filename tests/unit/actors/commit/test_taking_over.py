"""How many steps lie between the end of a lease and the first decision of the next leader."""

import pytest

from actors.broker.bus import DECISIONS, Entry
from actors.broker.ledger import Busy, Lease
from actors.broker.memory_bus import MemoryBus
from actors.commit.committer import Committer, TimeLimits
from actors.ray_runtime.limits import STANDBY_S
from tests.support.assembly import HeldBack

TTL_S = 5.0


@pytest.fixture
def held(held: HeldBack) -> HeldBack:
    """An offer that makes room for a gang, and a leader that has just renewed."""
    held.committer.lead()
    return held


def standby(held: HeldBack) -> Committer:
    made = held.new_committer("standby", TimeLimits(lease_ttl_s=TTL_S))
    made.hear(held.news.snapshot)
    return made


def questions(held: HeldBack, asks: Committer) -> int:
    """How many times a standby asks, as often as one does, until it leads."""
    for asked in range(1, 100):
        if asks.lead():
            return asked
        held.clock.now += STANDBY_S
    raise AssertionError("it never leads")


def test_a_standby_leads_with_its_first_question_after_the_lease_has_run_out(held: HeldBack) -> None:
    assert questions(held, standby(held)) == TTL_S / STANDBY_S + 1


def test_a_standby_asks_four_times_a_second() -> None:
    assert STANDBY_S <= 0.25


def test_a_lease_that_was_given_back_is_taken_with_the_next_question(held: HeldBack) -> None:
    held.committer.resign()
    assert questions(held, standby(held)) == 1


def test_its_first_decision_needs_no_news(held: HeldBack) -> None:
    successor = standby(held)
    questions(held, successor)
    (answer,) = successor.commit(held.offers)
    assert answer.accepted


def test_it_reads_the_decisions_once_and_asks_the_ledger_no_more_than_that(
    held: HeldBack, monkeypatch: pytest.MonkeyPatch
) -> None:
    held.committer.commit(held.offers)
    held.hear()
    successor, read, asked = standby(held), list[str](), list[Lease | Busy]()
    follow, acquire = MemoryBus.follow, held.ledger.acquire

    def noted(bus: MemoryBus, stream: str, after: str, *, count: int = 100, block_ms: int = 0) -> list[Entry]:
        read.append(stream)
        return follow(bus, stream, after, count=count, block_ms=block_ms)

    def noted_too(owner: str, ttl_ms: int) -> Lease | Busy:
        asked.append(acquire(owner, ttl_ms))
        return asked[-1]

    held.clock.now += TTL_S
    monkeypatch.setattr(MemoryBus, "follow", noted)
    monkeypatch.setattr(held.ledger, "acquire", noted_too)
    assert successor.lead()
    assert read == [DECISIONS, DECISIONS]  # the second finds nothing more
    assert len(asked) == 1
