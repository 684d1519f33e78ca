"""What every ledger does, asked of the one in memory and of a real broker alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from actors.broker.bus import DECISIONS, START, Bus
from actors.broker.ledger import REFUSALS_KEPT, Busy, Duplicate, Fenced, Lease, Ledger, Record, Recorded
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


@pytest.fixture(params=["memory", "redis"])
def bench(request: pytest.FixtureRequest, fleet_name: str) -> Bench:
    if request.param == "memory":
        now = [1_700_000_000.0]
        bus = MemoryBus(fleet_name, lambda: now[0])

        def later() -> None:
            now[0] += TTL_MS / 1000

        return Bench(bus, MemoryLedger(bus, lambda: now[0]), later)
    client: RedisClient = request.getfixturevalue("client")

    def expire(connection: Any) -> object:
        return connection.pexpire(f"clearway:{{{fleet_name}}}:ledger:lease", 0)

    return Bench(RedisBus(client, fleet_name), RedisLedger(client, fleet_name), lambda: client.once(expire))


def held(ledger: Ledger, owner: str = "a") -> Lease:
    lease = ledger.acquire(owner, TTL_MS)
    assert isinstance(lease, Lease)
    return lease


def record(key: str, lease: Lease, verdict: bytes = b"accepted", text: bytes = b"plan") -> Record:
    return Record(key, lease.epoch, verdict, {"batch": text})


def test_the_lease_has_one_owner_at_a_time(bench: Bench) -> None:
    lease = held(bench.ledger)
    refused = bench.ledger.acquire("b", TTL_MS)
    assert isinstance(refused, Busy)
    assert (refused.owner, refused.epoch) == ("a", lease.epoch)
    assert 0 < refused.ttl_ms <= TTL_MS


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


def test_a_record_appends_its_decision_with_its_revision(bench: Bench) -> None:
    lease = held(bench.ledger)
    outcomes = [bench.ledger.commit(record(f"p{n}", lease, text=f"plan {n}".encode())) for n in (1, 2)]
    entries = bench.bus.follow(DECISIONS, START)
    assert outcomes == [Recorded(1, entries[0].id, b"accepted"), Recorded(2, entries[1].id, b"accepted")]
    assert [entry.fields for entry in entries] == [
        {"revision": b"1", "batch": b"plan 1"}, {"revision": b"2", "batch": b"plan 2"}
    ]  # fmt: skip


def test_a_retry_gets_the_first_verdict_and_writes_nothing(bench: Bench) -> None:
    lease = held(bench.ledger)
    first = bench.ledger.commit(record("p", lease, b"first\n\x00 verdict"))
    again = bench.ledger.commit(record("p", lease, b"another", b"other plan"))
    assert again == Duplicate(first)
    assert bench.bus.bounds(DECISIONS).length == 1


def test_a_retry_is_answered_even_when_the_lease_is_lost(bench: Bench) -> None:
    lease = held(bench.ledger)
    first = bench.ledger.commit(record("p", lease))
    bench.let_the_lease_run_out()
    held(bench.ledger, "b")
    assert bench.ledger.commit(record("p", lease)) == Duplicate(first)


def test_who_lost_the_lease_writes_nothing(bench: Bench) -> None:
    lease = held(bench.ledger)
    bench.let_the_lease_run_out()
    assert bench.ledger.commit(record("p", lease)) == Fenced(lease.epoch)
    other = held(bench.ledger, "b")
    assert bench.ledger.commit(record("p", lease)) == Fenced(other.epoch)
    assert bench.bus.bounds(DECISIONS).length == 0
    assert isinstance(bench.ledger.commit(record("p", other)), Recorded)


def test_nobody_writes_before_the_first_lease(bench: Bench) -> None:
    assert bench.ledger.commit(record("p", Lease("a", 0))) == Fenced(0)


def test_a_refusal_is_remembered_and_goes_to_no_stream(bench: Bench) -> None:
    lease = held(bench.ledger)
    first = bench.ledger.commit(Record("p", lease.epoch, b"stale"))
    assert first == Recorded(1, None, b"stale")
    assert bench.ledger.commit(record("p", lease)) == Duplicate(first)
    assert bench.bus.bounds(DECISIONS).length == 0


def test_only_the_newest_refusals_are_remembered(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("actors.broker.memory_ledger", "actors.broker.redis_ledger"):
        monkeypatch.setattr(f"{module}.REFUSALS_KEPT", 3)
    lease = held(bench.ledger)
    for n in range(5):
        bench.ledger.commit(Record(f"p{n}", lease.epoch, b"stale"))
    known = [isinstance(bench.ledger.commit(Record(f"p{n}", lease.epoch, b"stale")), Duplicate) for n in (4, 3, 2)]
    assert known == [True, True, True]
    assert isinstance(bench.ledger.commit(Record("p0", lease.epoch, b"stale")), Recorded)


def test_verdicts_are_forgotten_with_their_trimmed_decisions(bench: Bench) -> None:
    lease = held(bench.ledger)
    for n in range(6):
        last = bench.ledger.commit(record(f"p{n}", lease))
    assert bench.ledger.forget(lease, keep=0) == 0
    assert isinstance(last, Recorded)
    assert last.entry is not None
    bench.bus.trim(DECISIONS, covered=last.entry)
    assert bench.ledger.forget(lease, keep=REFUSALS_KEPT) == 0
    assert bench.ledger.forget(lease, keep=3) == 3
    assert isinstance(bench.ledger.commit(record("p3", lease)), Duplicate)
    assert isinstance(bench.ledger.commit(record("p2", lease)), Recorded)


def test_who_lost_the_lease_forgets_nothing(bench: Bench) -> None:
    lease = held(bench.ledger)
    bench.let_the_lease_run_out()
    assert bench.ledger.forget(lease, keep=0) == -1
