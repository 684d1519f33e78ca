"""What a broker has confirmed outlasts the loss of power: it is killed, and its files cut to their last real sync."""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path

import pytest

from actors.broker.bus import DECISIONS, START, BrokerUnreachable
from actors.broker.ledger import Busy, Fenced, Lease, Record, Recorded
from actors.broker.redis_bus import RedisBus
from actors.broker.redis_client import RedisClient
from actors.broker.redis_ledger import RedisLedger
from actors.broker.retry import RetryPolicy
from tests.support.power_loss import Machine

TRIALS = 6
IMPATIENT = RetryPolicy(first_s=0.005, cap_s=0.01, limit_s=0.02)


@pytest.mark.parametrize("trial", range(TRIALS))
def test_no_decision_that_was_confirmed_is_lost_with_the_power(tmp_path: Path, trial: int) -> None:
    machine = Machine(tmp_path)
    machine.start()
    with machine.broker:
        client = RedisClient(machine.broker.url, retry=IMPATIENT)
        ledger = RedisLedger(client, "f")
        lease = ledger.acquire("me", 600_000)
        assert isinstance(lease, Lease)
        confirmed: dict[str, Recorded] = {}

        def write() -> None:
            try:
                while True:
                    key = f"p{len(confirmed)}"
                    (outcome,) = ledger.commit(lease, [Record(key, b"accepted", {"batch": key.encode()})])
                    assert isinstance(outcome, Recorded)
                    confirmed[key] = outcome
            except BrokerUnreachable:
                pass

        writer = threading.Thread(target=write)
        writer.start()
        while writer.is_alive() and len(confirmed) <= 3:
            time.sleep(0.01)
        time.sleep(random.Random(trial).uniform(0.05, 0.5))
        machine.lose_power()
        writer.join(20)
        client.close()
        machine.start()
        again = RedisClient(machine.broker.url)
        entries = RedisBus(again, "f").follow(DECISIONS, START, count=100_000)
        standing = {entry.fields["batch"].decode(): entry.id for entry in entries}
        assert len(confirmed) > 3
        assert {key: standing.get(key) for key in confirmed} == {key: one.entry for key, one in confirmed.items()}
        again.close()


def test_a_lease_that_was_given_out_just_before_the_power_was_lost_is_not_given_to_another(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.start()
    with machine.broker:
        client = RedisClient(machine.broker.url)
        first = RedisLedger(client, "f").acquire("first", 1)
        assert isinstance(first, Lease)
        time.sleep(0.01)
        second = RedisLedger(client, "f").acquire("second", 600_000)
        assert isinstance(second, Lease)
        machine.lose_power()
        client.close()
        machine.start()
        again = RedisClient(machine.broker.url)
        ledger = RedisLedger(again, "f")
        assert isinstance(ledger.acquire("first", 600_000), Busy)
        (refused,) = ledger.commit(first, [Record("p", b"accepted", {"batch": b"p"})])
        assert isinstance(refused, Fenced)
        (recorded,) = ledger.commit(second, [Record("q", b"accepted", {"batch": b"q"})])
        assert isinstance(recorded, Recorded)
        again.close()
