"""What every ledger does, asked of the one in memory and of a real broker alike."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from actors.broker.bus import DECISIONS, EVENTS, START, Bus
from actors.broker.ledger import REFUSALS_KEPT, Busy, Duplicate, Fenced, Lease, Ledger, Record, Recorded, RecordOutcome
from actors.broker.memory_bus import MemoryBus
from actors.broker.memory_ledger import MemoryLedger
from actors.broker.redis_bus import RedisBus
from actors.broker.redis_client import RedisClient
from actors.broker.redis_ledger import RedisLedger

TTL_MS = 60_000


@dataclass
class Bench:
    bus: Bus
    ledger: Ledger
    let_the_lease_run_out: Callable[[], object]
    turn_the_clock_back: Callable[[], object]
    forget_everything: Callable[[], object]
    lease_left_ms: Callable[[], float]


@pytest.fixture(params=["memory", "redis"])
def bench(request: pytest.FixtureRequest, fleet_name: str) -> Bench:
    if request.param == "memory":
        now = [1_700_000_000.0]
        bus = MemoryBus(fleet_name, lambda: now[0])

        def later() -> None:
            now[0] += TTL_MS / 1000

        def earlier() -> None:
            now[0] -= 10 * TTL_MS / 1000

        ledger = MemoryLedger(bus, lambda: now[0])

        def forget() -> None:
            now[0] += 0.002
            ledger.__init__(bus, lambda: now[0])  # type: ignore[misc]

        def left_ms() -> float:
            assert ledger._held is not None
            return (ledger._held.until_s - now[0]) * 1000

        return Bench(bus, ledger, later, earlier, forget, left_ms)
    client: RedisClient = request.getfixturevalue("client")

    def expire(connection: Any) -> object:
        return connection.pexpire(f"clearway:{{{fleet_name}}}:ledger:lease", 0)

    def prolong(connection: Any) -> object:
        return connection.pexpire(f"clearway:{{{fleet_name}}}:ledger:lease", 11 * TTL_MS)

    def forget_all(connection: Any) -> None:
        time.sleep(0.002)
        for name in ("lease", "epoch", "revision", "verdicts", "accepted", "refused"):
            connection.delete(f"clearway:{{{fleet_name}}}:ledger:{name}")

    ledger = RedisLedger(client, fleet_name, synced=False)
    return Bench(
        RedisBus(client, fleet_name), ledger, lambda: client.once(expire), lambda: client.once(prolong),
        lambda: client.once(forget_all),
        lambda: client.once(lambda connection: connection.pttl(f"clearway:{{{fleet_name}}}:ledger:lease")),
    )  # fmt: skip


def held(ledger: Ledger, owner: str = "a") -> Lease:
    lease = ledger.acquire(owner, TTL_MS)
    assert isinstance(lease, Lease)
    return lease


def record(key: str, verdict: bytes = b"accepted", text: bytes = b"plan") -> Record:
    return Record(key, verdict, {"batch": text})


def commit(bench: Bench, lease: Lease, one: Record) -> RecordOutcome:
    (outcome,) = bench.ledger.commit(lease, [one])
    return outcome


def test_the_lease_has_one_owner_at_a_time(bench: Bench) -> None:
    lease = held(bench.ledger)
    refused = bench.ledger.acquire("b", TTL_MS)
    assert refused == Busy("a", lease.epoch)


def test_an_epoch_is_never_given_twice(bench: Bench) -> None:
    epochs = [held(bench.ledger).epoch]
    epochs.append(held(bench.ledger).epoch)  # the same owner, started again
    bench.let_the_lease_run_out()
    epochs.append(held(bench.ledger, "b").epoch)
    assert bench.ledger.release(Lease("b", epochs[-1]))
    epochs.append(held(bench.ledger, "a").epoch)
    assert epochs == sorted(set(epochs))


def test_a_lease_is_renewed_and_given_back_only_by_its_epoch(bench: Bench) -> None:
    old = held(bench.ledger)
    new = held(bench.ledger)
    assert [bench.ledger.renew(old, TTL_MS), bench.ledger.renew(new, TTL_MS)] == [False, True]
    assert [bench.ledger.release(old), bench.ledger.release(new), bench.ledger.release(new)] == [False, True, False]


def test_a_lease_that_ran_out_is_not_renewed(bench: Bench) -> None:
    lease = held(bench.ledger)
    bench.let_the_lease_run_out()
    assert not bench.ledger.renew(lease, TTL_MS)


def test_a_lease_whose_last_record_the_broker_has_lost_is_not_renewed(bench: Bench) -> None:
    lease = held(bench.ledger)
    commit(bench, lease, record("p"))
    assert [bench.ledger.renew(lease, TTL_MS, recorded) for recorded in (0, 1, 2)] == [True, True, False]


def test_a_record_appends_its_decision_with_its_revision(bench: Bench) -> None:
    lease = held(bench.ledger)
    outcomes = [commit(bench, lease, record(f"p{n}", text=f"plan {n}".encode())) for n in (1, 2)]
    entries = bench.bus.follow(DECISIONS, START)
    assert outcomes == [Recorded(1, entries[0].id, b"accepted"), Recorded(2, entries[1].id, b"accepted")]
    assert [entry.fields for entry in entries] == [
        {"revision": b"1", "after": b"0-0", "batch": b"plan 1"},
        {"revision": b"2", "after": b"0-0", "batch": b"plan 2"},
    ]


def test_a_record_names_the_event_behind_which_it_stands(bench: Bench) -> None:
    lease = held(bench.ledger)
    first = bench.bus.publish(EVENTS, {"batch": b"a"})
    commit(bench, lease, record("p1"))
    second = bench.bus.publish(EVENTS, {"batch": b"b"})
    commit(bench, lease, record("p2"))
    bench.bus.trim(EVENTS, covered=second)
    commit(bench, lease, record("p3"))
    after = [entry.fields["after"].decode() for entry in bench.bus.follow(DECISIONS, START)]
    assert after == [first, second, second]


def test_a_lease_lasts_no_longer_when_the_clock_goes_back(bench: Bench) -> None:
    held(bench.ledger)
    bench.turn_the_clock_back()
    for _ in range(2):
        assert isinstance(bench.ledger.acquire("b", TTL_MS), Busy)
        assert 0 < bench.lease_left_ms() <= TTL_MS
    bench.let_the_lease_run_out()
    assert held(bench.ledger, "b")


def test_records_are_written_together_up_to_the_first_that_is_known(bench: Bench) -> None:
    lease = held(bench.ledger)
    assert bench.ledger.commit(lease, []) == []
    first, second = bench.ledger.commit(lease, [record("p1"), Record("p2", b"stale")])
    third, known = bench.ledger.commit(lease, [record("p3"), record("p1"), record("p4")])
    assert [one.revision for one in (first, second, third) if isinstance(one, Recorded)] == [1, 2, 3]
    assert known == Duplicate(first)
    assert bench.bus.bounds(DECISIONS).length == 2
    again = held(bench.ledger)
    assert again.recorded == 3
    assert bench.ledger.commit(lease, [record("p4"), record("p5")]) == [Fenced(again.epoch)]
    assert isinstance(commit(bench, again, record("p4")), Recorded)


def test_another_owner_under_the_same_epoch_does_not_hold_the_lease(bench: Bench) -> None:
    """A broker that lost the newest lease with its power may have given its number to another."""
    lease = held(bench.ledger)
    other = Lease("b", lease.epoch)
    assert not bench.ledger.renew(other, TTL_MS)
    assert commit(bench, other, record("p")) == Fenced(lease.epoch)
    assert bench.ledger.forget(other) == -1
    assert not bench.ledger.release(other)


def test_a_broker_that_forgot_everything_gives_no_epoch_twice(bench: Bench) -> None:
    before = held(bench.ledger).epoch
    bench.forget_everything()
    assert held(bench.ledger, "b").epoch > before


def test_a_retry_gets_the_first_verdict_and_writes_nothing(bench: Bench) -> None:
    lease = held(bench.ledger)
    first = commit(bench, lease, record("p", b"first\n\x00 verdict"))
    again = commit(bench, lease, record("p", b"another", b"other plan"))
    assert again == Duplicate(first)
    assert bench.bus.bounds(DECISIONS).length == 1


def test_a_retry_is_answered_even_when_the_lease_is_lost(bench: Bench) -> None:
    lease = held(bench.ledger)
    first = commit(bench, lease, record("p"))
    bench.let_the_lease_run_out()
    held(bench.ledger, "b")
    assert commit(bench, lease, record("p")) == Duplicate(first)


def test_who_lost_the_lease_writes_nothing(bench: Bench) -> None:
    lease = held(bench.ledger)
    bench.let_the_lease_run_out()
    assert commit(bench, lease, record("p")) == Fenced(lease.epoch)
    other = held(bench.ledger, "b")
    assert commit(bench, lease, record("p")) == Fenced(other.epoch)
    assert bench.bus.bounds(DECISIONS).length == 0
    assert isinstance(commit(bench, other, record("p")), Recorded)


def test_no_owner_writes_before_the_first_lease(bench: Bench) -> None:
    assert commit(bench, Lease("a", 0), record("p")) == Fenced(0)


def test_a_refusal_is_remembered_and_goes_to_no_stream(bench: Bench) -> None:
    lease = held(bench.ledger)
    first = commit(bench, lease, Record("p", b"stale"))
    assert first == Recorded(1, None, b"stale")
    assert commit(bench, lease, record("p")) == Duplicate(first)
    assert bench.bus.bounds(DECISIONS).length == 0


def test_only_the_newest_refusals_are_remembered(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("actors.broker.memory_ledger", "actors.broker.redis_ledger"):
        monkeypatch.setattr(f"{module}.REFUSALS_KEPT", 3)
    lease = held(bench.ledger)
    for n in range(5):
        commit(bench, lease, Record(f"p{n}", b"stale"))
    known = [isinstance(commit(bench, lease, Record(f"p{n}", b"stale")), Duplicate) for n in (4, 3, 2)]
    assert known == [True, True, True]
    assert isinstance(commit(bench, lease, Record("p0", b"stale")), Recorded)


def test_verdicts_are_forgotten_with_their_trimmed_decisions(bench: Bench) -> None:
    lease = held(bench.ledger)
    for n in range(6):
        last = commit(bench, lease, record(f"p{n}"))
    assert bench.ledger.forget(lease, keep=0) == 0
    assert isinstance(last, Recorded)
    assert last.entry is not None
    bench.bus.trim(DECISIONS, covered=last.entry)
    assert bench.ledger.forget(lease, keep=REFUSALS_KEPT) == 0
    assert bench.ledger.forget(lease, keep=3) == 3
    assert isinstance(commit(bench, lease, record("p3")), Duplicate)
    assert isinstance(commit(bench, lease, record("p2")), Recorded)


def test_who_lost_the_lease_forgets_nothing(bench: Bench) -> None:
    lease = held(bench.ledger)
    bench.let_the_lease_run_out()
    assert bench.ledger.forget(lease, keep=0) == -1
