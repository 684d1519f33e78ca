"""A broker that becomes a replica, or lacks its own: it is waited for, and its successor is found."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from actors.broker.bus import DECISIONS, EVENTS, START, BrokerUnreachable, Outage
from actors.broker.embedded_broker import EmbeddedBroker
from actors.broker.redis_bus import RedisBus
from actors.broker.redis_client import RedisClient
from actors.broker.retry import RetryPolicy

EAGER = RetryPolicy(first_s=0.005, cap_s=0.01)
ONCE = RetryPolicy(limit_s=0.0)
NOWHERE = ("127.0.0.1", "1")


@pytest.fixture
def administrator(own_broker: EmbeddedBroker) -> Iterator[RedisClient]:
    client = RedisClient(own_broker.url)
    yield client
    client.close()


def command(client: RedisClient, *words: str) -> None:
    client.once(lambda link: link.execute_command(*words))


def test_who_reads_while_the_broker_becomes_a_replica_waits(
    own_broker: EmbeddedBroker, administrator: RedisClient
) -> None:
    said: list[Outage] = []
    client = RedisClient(own_broker.url, retry=EAGER, say=said.append)
    bus, found = RedisBus(client, "f"), list[object]()
    reader = threading.Thread(
        target=lambda: found.extend(bus.follow_any({EVENTS: START, DECISIONS: START}, block_ms=10_000)[EVENTS])
    )
    reader.start()
    while not administrator.once(lambda link: link.info("clients"))["blocked_clients"]:
        reader.join(0.01)
    command(administrator, "REPLICAOF", *NOWHERE)
    while not said and reader.is_alive():
        reader.join(0.01)
    assert "UNBLOCKED" in said[0].reason
    command(administrator, "REPLICAOF", "NO", "ONE")
    RedisBus(administrator, "f").publish(EVENTS, {"batch": b"a"})
    reader.join(20)
    assert len(found) == 1
    client.close()


def test_a_replica_that_has_lost_its_broker_is_waited_for(
    own_broker: EmbeddedBroker, administrator: RedisClient
) -> None:
    bus = RedisBus(RedisClient(own_broker.url, retry=ONCE), "f")
    command(administrator, "CONFIG", "SET", "replica-serve-stale-data", "no")
    command(administrator, "REPLICAOF", *NOWHERE)
    with pytest.raises(BrokerUnreachable, match="Link with MASTER is down"):
        bus.newest(EVENTS)


def test_entries_that_go_together_wait_for_a_broker_without_its_replicas(
    own_broker: EmbeddedBroker, administrator: RedisClient
) -> None:
    bus = RedisBus(RedisClient(own_broker.url, retry=ONCE), "f")
    command(administrator, "CONFIG", "SET", "min-replicas-to-write", "1")
    with pytest.raises(BrokerUnreachable, match=r"tries in 0\.0 s: NOREPLICAS"):
        bus.publish_all(EVENTS, [{"batch": b"a"}, {"batch": b"b"}])


def test_the_successor_of_a_broker_is_found_where_the_address_leads_to_it(
    own_broker: EmbeddedBroker, administrator: RedisClient, tmp_path: Path
) -> None:
    address = tmp_path / "s"
    address.symlink_to(own_broker.url.removeprefix("unix://"))
    client = RedisClient(f"unix://{address}", retry=EAGER, say=lambda _: None)
    bus = RedisBus(client, "f")
    bus.publish(EVENTS, {"batch": b"a"})
    command(administrator, "REPLICAOF", *NOWHERE)
    with EmbeddedBroker() as successor:
        address.unlink()
        address.symlink_to(successor.url.removeprefix("unix://"))
        writer = threading.Thread(target=lambda: bus.publish(EVENTS, {"batch": b"b"}, insist=True), daemon=True)
        writer.start()
        writer.join(20)
        assert not writer.is_alive()
        assert [entry.fields["batch"] for entry in bus.follow(EVENTS, START)] == [b"b"]
        client.close()
