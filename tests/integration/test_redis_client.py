"""What only a real broker can show: it goes away and comes back, refuses, and forgets."""

from __future__ import annotations

import resource
import threading
import time
from pathlib import Path

import pytest

from actors.broker.bus import DECISIONS, EVENTS, START, BrokerRefused, BrokerUnreachable, Outage
from actors.broker.embedded_broker import EmbeddedBroker
from actors.broker.ledger import Busy, Lease, Record
from actors.broker.redis_bus import RedisBus
from actors.broker.redis_client import RedisClient, broker_address
from actors.broker.redis_ledger import RedisLedger
from actors.broker.retry import RetryPolicy

EAGER = RetryPolicy(first_s=0.005, cap_s=0.01)


def test_a_reader_waits_for_a_broker_that_is_away_and_says_so(own_broker: EmbeddedBroker) -> None:
    outages: list[Outage] = []
    away = threading.Event()

    def say(outage: Outage) -> None:
        outages.append(outage)
        away.set()

    client = RedisClient(own_broker.url, retry=EAGER, say=say)
    bus = RedisBus(client, "f")
    bus.join(EVENTS, "g")
    bus.publish(EVENTS, {"batch": b"a"})
    own_broker.kill()
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.extend(e.fields["batch"] for e in bus.read(EVENTS, "g", "me")))
    reader.start()
    assert away.wait(10)
    own_broker.start()
    reader.join(20)
    assert read == [b"a"]
    assert str(outages[0]).startswith(f"broker unreachable at {client.address} (")
    client.close()


def test_a_wait_with_a_limit_ends_and_says_how_long_it_was() -> None:
    client = RedisClient("unix:///nowhere/s", retry=RetryPolicy(first_s=0.005, cap_s=0.01, limit_s=0.05))
    with pytest.raises(BrokerUnreachable, match=r"^broker unreachable at unix:/nowhere/s after \d+ tries in 0\.\d s: "):
        client.check()


def test_an_entry_is_not_repeated_unless_the_writer_insists(own_broker: EmbeddedBroker) -> None:
    client = RedisClient(own_broker.url, retry=EAGER)
    bus = RedisBus(client, "f")
    bus.publish(EVENTS, {"batch": b"a"})
    own_broker.kill()
    with pytest.raises(BrokerUnreachable):
        bus.publish(EVENTS, {"batch": b"b"})
    writer = threading.Thread(target=lambda: bus.publish(EVENTS, {"batch": b"c"}, insist=True))
    writer.start()
    own_broker.start()
    writer.join(20)
    assert [entry.fields["batch"] for entry in bus.follow(EVENTS, START)][-1] == b"c"
    client.close()


def test_a_broker_that_forgot_everything_is_used_as_a_new_one(own_broker: EmbeddedBroker) -> None:
    client = RedisClient(own_broker.url, retry=EAGER)
    bus, ledger = RedisBus(client, "f"), RedisLedger(client, "f")
    bus.join(EVENTS, "g")
    assert isinstance(ledger.acquire("me", 60_000), Lease)
    client.once(lambda connection: (connection.flushall(), connection.function_flush()))
    bus.publish(EVENTS, {"batch": b"a"})
    assert [entry.fields["batch"] for entry in bus.read(EVENTS, "g", "me")] == [b"a"]
    assert isinstance(ledger.acquire("me", 60_000), Lease)
    client.close()


def test_pending_entries_that_left_the_stream_are_passed_over_and_pend_no_more(
    client: RedisClient, fleet_name: str
) -> None:
    bus = RedisBus(client, fleet_name)
    bus.join(EVENTS, "g")
    bus.publish(EVENTS, {"batch": b"a"})
    bus.read(EVENTS, "g", "dead")
    client.once(lambda connection: connection.xtrim(f"clearway:{{{fleet_name}}}:events", maxlen=0))
    assert bus.recover(EVENTS, "g", "me", idle_ms=0) == []
    bus.publish(EVENTS, {"batch": b"b"})
    bus.read(EVENTS, "g", "me")
    client.once(lambda connection: connection.xtrim(f"clearway:{{{fleet_name}}}:events", maxlen=0))
    assert bus.read(EVENTS, "g", "me", pending=True) == []
    assert bus.lags(EVENTS)["g"].pending == 0


def test_a_clock_of_ours_that_is_days_ahead_makes_nothing_old_and_trims_nothing_that_is_unread(
    client: RedisClient, fleet_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = time.time
    monkeypatch.setattr(time, "time", lambda: ours() + 200_000.0)
    bus = RedisBus(client, fleet_name, unread_kept_s=86_400.0)
    bus.join(EVENTS, "away")
    ids = [bus.publish(EVENTS, {"batch": b"a"}) for _ in range(3)]
    assert bus.lags(EVENTS)["away"].held_ms < 100_000
    assert bus.trim(EVENTS, covered=ids[-1]) == 0


def test_the_lag_of_a_group_made_in_the_middle_is_counted(client: RedisClient, fleet_name: str) -> None:
    bus, key = RedisBus(client, fleet_name), f"clearway:{{{fleet_name}}}:events"
    ids = [bus.publish(EVENTS, {"batch": b"a"}) for _ in range(5)]
    client.once(lambda link: link.xgroup_create(key, "g", id=ids[1]))
    assert bus.lags(EVENTS)["g"].undelivered == 3
    client.once(lambda link: [link.xadd(key, {"batch": b"a"}) for _ in range(1_000)])
    assert bus.lags(EVENTS)["g"].undelivered == 1_005  # so many are not counted one by one: all there are


def test_a_block_longer_than_the_socket_waits_is_refused(client: RedisClient, fleet_name: str) -> None:
    with pytest.raises(ValueError, match="block_ms must be at most 10000, found 60000"):
        RedisBus(client, fleet_name).read(EVENTS, "g", "me", block_ms=60_000)


def test_a_broker_whose_disk_is_full_is_waited_for(own_broker: EmbeddedBroker) -> None:
    """A limit on the size of its files is what a full disk is to it: writes fail, and it refuses until one succeeds."""
    said: list[Outage] = []
    client = RedisClient(own_broker.url, retry=RetryPolicy(first_s=0.05, cap_s=0.1), say=said.append)
    client.once(lambda connection: connection.config_set("appendfsync", "everysec"))
    bus, ledger = RedisBus(client, "f"), RedisLedger(client, "f", synced=False)
    lease = ledger.acquire("me", 60_000)
    assert isinstance(lease, Lease)
    before = resource.prlimit(own_broker.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(own_broker.pid, resource.RLIMIT_FSIZE, (1, before[1]))
    bus.publish(EVENTS, {"batch": b"x"}, insist=True)  # it is noticed after it was answered, at most 2 s later
    while client.once(lambda connection: connection.info("persistence"))["aof_last_write_status"] != "err":
        time.sleep(0.01)
    done: list[object] = []
    waiting = [
        threading.Thread(target=lambda: done.append(bus.publish(EVENTS, {"batch": b"y"}, insist=True))),
        threading.Thread(target=lambda: done.append(ledger.commit(lease, [Record("p", b"v", {"batch": b"z"})]))),
    ]
    for one in waiting:
        one.start()
    while len(said) < 4 and all(one.is_alive() for one in waiting):
        time.sleep(0.01)
    assert len(said) >= 4
    assert done == []
    assert "MISCONF" in said[0].reason
    resource.prlimit(own_broker.pid, resource.RLIMIT_FSIZE, before)
    for one in waiting:
        one.join(30)
    assert len(done) == 2
    client.close()


@pytest.mark.parametrize(("setting", "value"), [("appendonly", "no"), ("appendfsync", "everysec")])
def test_a_broker_that_answers_before_its_disk_has_a_commit_gives_no_lease(
    own_broker: EmbeddedBroker, setting: str, value: str
) -> None:
    client = RedisClient(own_broker.url)
    client.once(lambda connection: connection.config_set(setting, value))
    with pytest.raises(BrokerRefused, match=rf"answers before its disk has what was written \(.*{setting} {value}"):
        RedisLedger(client, "f").acquire("me", 60_000)
    lease = RedisLedger(client, "f", synced=False).acquire("me", 60_000)
    assert isinstance(lease, Lease)
    client.close()


def test_a_broker_that_drops_keys_where_its_memory_is_full_gives_no_lease(own_broker: EmbeddedBroker) -> None:
    client = RedisClient(own_broker.url)
    ledger = RedisLedger(client, "f")
    client.once(lambda connection: connection.config_set("maxmemory-policy", "allkeys-lru"))
    with pytest.raises(BrokerRefused, match=r"drops any key where its memory is full \(maxmemory-policy allkeys-lru\)"):
        ledger.acquire("me", 60_000)
    client.close()


def test_a_broker_that_drops_what_expires_where_its_memory_is_full_drops_the_lease_alone_and_that_is_said_once(
    own_broker: EmbeddedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    client = RedisClient(own_broker.url, retry=RetryPolicy(limit_s=0.0))
    bus, ledger = RedisBus(client, "f"), RedisLedger(client, "f")
    client.once(lambda connection: connection.config_set("maxmemory-policy", "volatile-ttl"))
    lease = ledger.acquire("me", 60_000)
    assert isinstance(lease, Lease)
    ledger.commit(lease, [Record("p", b"v", {"batch": b"z"})])
    assert isinstance(ledger.acquire("another", 60_000), Busy)
    said = [line for line in caplog.messages if "drops the lease" in line]
    assert len(said) == 1
    assert "maxmemory-policy volatile-ttl" in said[0]
    used = client.once(lambda connection: connection.info("memory"))["used_memory"]
    client.once(lambda connection: connection.config_set("maxmemory", used))
    with pytest.raises(BrokerUnreachable, match="maxmemory"):
        bus.publish_all(EVENTS, [{"batch": b"x" * 10_000}] * 100)
    client.once(lambda connection: connection.config_set("maxmemory", 0))
    assert not ledger.renew(lease, 60_000)
    assert len(bus.follow(DECISIONS, START)) == 1
    client.close()


def test_a_broker_that_does_not_say_whether_it_waits_for_its_disk_gives_no_lease(own_broker: EmbeddedBroker) -> None:
    administrator = RedisClient(own_broker.url)
    administrator.once(
        lambda link: link.execute_command("ACL", "SETUSER", "u", "on", "nopass", "~*", "+@all", "-config")
    )
    client = RedisClient(own_broker.url, username="u", password="none")
    with pytest.raises(BrokerRefused, match=r"does not say whether it waits for its disk: let our user ask CONFIG GET"):
        RedisLedger(client, "f").acquire("me", 60_000)
    administrator.close()
    client.close()


def test_a_lease_is_held_no_longer_where_the_broker_waits_for_its_disk_no_more(own_broker: EmbeddedBroker) -> None:
    said: list[Outage] = []
    client = RedisClient(own_broker.url, retry=RetryPolicy(limit_s=0.5), say=said.append)
    ledger = RedisLedger(client, "f")
    lease = ledger.acquire("me", 60_000)
    assert isinstance(lease, Lease)
    client.once(lambda connection: connection.config_set("appendfsync", "everysec"))
    with pytest.raises(BrokerRefused, match=r"answers before its disk has what was written \(appendfsync everysec"):
        ledger.renew(lease, 60_000)
    client.waits_for_rights = True
    with pytest.raises(BrokerUnreachable, match=r"it answers before its disk .* set appendonly yes and appendfsync al"):
        ledger.renew(lease, 60_000)
    assert said, "it was waited for"
    client.close()


def test_a_password_is_read_from_its_file_again_for_each_connection(own_broker: EmbeddedBroker, tmp_path: Path) -> None:
    administrator, file = RedisClient(own_broker.url), tmp_path / "password"

    def user(*words: str) -> None:
        administrator.once(lambda link: link.execute_command("ACL", "SETUSER", "u", *words))
        administrator.once(lambda link: link.execute_command("CLIENT", "KILL", "USER", "u"))

    user("on", ">first", "~*", "+@all")
    client = RedisClient(own_broker.url, username="u", password="first", password_file=file)
    assert client.greet(), "without the file the password is the one that it had"
    user("resetpass", ">second")
    with pytest.raises(BrokerRefused, match="refused the credentials"):
        client.greet()
    file.write_text("second\n")
    assert client.greet()
    file.unlink()
    user()
    assert client.greet(), "while the file is replaced the last password counts"
    administrator.close()
    client.close()


def test_a_password_that_was_changed_is_said_and_nothing_of_the_disk(own_broker: EmbeddedBroker) -> None:
    administrator = RedisClient(own_broker.url)
    rules = ("ACL", "SETUSER", "u", "on", ">first", "~*", "+@all")
    administrator.once(lambda link: link.execute_command(*rules))
    client = RedisClient(own_broker.url, username="u", password="first")
    client.check_synced()
    administrator.once(lambda link: link.execute_command("ACL", "SETUSER", "u", "resetpass", ">second"))
    administrator.once(lambda link: link.execute_command("CLIENT", "KILL", "USER", "u"))
    with pytest.raises(BrokerRefused, match="refused the credentials"):
        client.check_synced()
    administrator.close()
    client.close()


def test_a_wrong_kind_of_address_is_refused() -> None:
    with pytest.raises(BrokerRefused, match=r"must begin with redis://, rediss:// or unix://"):
        RedisClient("http://somewhere")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://user:secret@there:7000/0", "there:7000"),
        ("rediss://:secret@there", "there:6379"),
        ("unix://user:secret@/run/broker.sock?db=1", "unix:/run/broker.sock"),
    ],
)
def test_an_address_never_shows_who_we_are(url: str, shown: str) -> None:
    assert broker_address(url) == shown
