"""The committer's lease: nothing is judged or written without it, and it is never trusted for too long."""

from collections.abc import Callable

import pytest

from actors.broker.bus import BrokerUnreachable, Entry
from actors.commit.committer import Committer, TimeLimits
from tests.support.assembly import Clock, HeldBack, decisions


def test_without_the_lease_nothing_is_judged(held: HeldBack) -> None:
    other = held.new_committer("second")
    assert not other.lead()
    other.hear(held.ingest.snapshot)
    (answer,) = other.commit(held.offers)
    assert (answer.verdict, answer.reason) == ("unready", "another service holds the lease")
    assert decisions(held) == []


def test_it_says_who_leads_and_for_how_long_it_is_sure_of_it(held: HeldBack) -> None:
    other = held.new_committer("second")
    assert not other.leadership.is_news(None)
    other.lead()
    epoch = held.committer.leadership.epoch
    assert (other.leadership.leads, other.leadership.epoch, other.leadership.leader) == (False, epoch, "first")
    assert other.leadership.is_news(None)
    held.clock.now += 2.0
    assert held.committer.leadership.leads_s == pytest.approx(3.0)
    assert held.committer.lead()
    assert held.committer.leadership.leads_s == pytest.approx(5.0)
    held.clock.now += 5.0
    assert not held.committer.leadership.leads  # it was silent for so long: until it has asked, it knows nothing
    assert not held.committer.leadership.is_news(True)
    assert other.lead()
    held.committer.lead()
    assert (held.committer.leadership.leads, held.committer.leadership.leader) == (False, "second")


def test_a_lease_is_good_no_longer_because_the_clock_was_put_back(held: HeldBack) -> None:
    elapsed = Clock(50.0)
    committer = Committer(
        held.ledger, held.bus, held.policy, held.directory, held.telemetry,
        owner="other", now_s=held.clock, elapsed_s=elapsed,
    )  # fmt: skip
    held.committer.resign()
    assert committer.lead()
    held.clock.now -= 3_600
    elapsed.now += TimeLimits().lease_ttl_s
    assert not committer.leadership.leads


def test_who_lost_the_lease_can_write_nothing(held: HeldBack) -> None:
    held.clock.now += 6.0
    successor = held.new_committer("second")
    assert successor.lead()
    (answer,) = held.committer.commit(held.offers)
    assert answer.verdict == "unready"
    assert not held.committer.leads
    assert decisions(held) == []


def test_a_lease_counts_from_when_it_was_asked_for(held: HeldBack, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("acquire", "renew"):
        ask = getattr(held.ledger, name)

        def slow(*asked: object, ask: Callable[..., object] = ask) -> object:
            answer = ask(*asked)
            held.clock.now += 2.0
            return answer

        monkeypatch.setattr(held.ledger, name, slow)
    other = held.new_committer("other", TimeLimits(lease_ttl_s=5.0))
    held.committer.resign()
    for _ in range(2):  # taken, then renewed
        assert other.lead()
        assert other.leadership.leads_s == pytest.approx(3.0)


def test_a_lease_is_no_lease_before_what_is_recorded_was_read(held: HeldBack, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_asked: object, **_more: object) -> list[Entry]:
        raise BrokerUnreachable("away")

    held.committer.resign()
    successor = held.new_committer("second")
    with monkeypatch.context() as patched:
        patched.setattr(held.bus, "follow", away)
        with pytest.raises(BrokerUnreachable):
            successor.lead()
    assert not successor.leads
    assert successor.lead()
