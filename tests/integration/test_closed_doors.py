"""The broker as deploy/ sets it up: TLS before it, a user each for pipeline and fleet, and none has more rights."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import trustme

from actors.broker import checkpoints
from actors.broker.address import BrokerAddress, broker_for
from actors.broker.bus import (
    DEAD,
    DECISIONS,
    EVENTS,
    SNAPSHOTS,
    SPANS,
    START,
    BrokerRefused,
    BrokerUnreachable,
    DeadLetter,
    stream_key,
)
from actors.broker.functions import LIBRARY
from actors.broker.ledger import Lease, Record, Recorded
from actors.broker.redis_bus import RedisBus
from actors.broker.redis_client import RedisClient
from actors.broker.redis_credentials import Certificates
from actors.broker.redis_ledger import RedisLedger
from actors.cli.live import explain
from actors.cli.live.reading import reading
from actors.configuration.settings import Settings
from actors.configuration.settings_sources import load_settings
from actors.fleets.inventory import load_inventory
from actors.fleets.process import FleetLoop, FleetPace
from actors.fleets.simulated import SimulatedFleet
from actors.observability.span_store import gathered, ship_to
from actors.observability.telemetry import start as start_telemetry
from tests.support.assembly import gang, rack_cluster
from tests.support.broker_doors import Deployed, Papers, deployed, rules
from tests.support.proxies import behind_tls

FLEET = "guarded"
SPAN = {
    "name": "cycle", "role": "test", "trace": "t", "span": "s", "parent": None, "start_ns": 1, "end_ns": 2, "ok": True,
    "reason": "", "attributes": {}, "links": [],
}  # fmt: skip
ADMINISTRATION = (
    "FLUSHALL", "FLUSHDB", "CONFIG SET maxmemory 1", "CONFIG REWRITE", "CONFIG RESETSTAT", "KEYS *", "SCAN 0",
    "EVAL return{} 0", "RANDOMKEY",
    "EVALSHA 0 0", "SCRIPT FLUSH", "FUNCTION FLUSH", "FUNCTION DELETE x", "FUNCTION LIST", "FUNCTION DUMP", "SHUTDOWN",
    "MONITOR", "ACL LIST", "ACL SETUSER x", "ACL WHOAMI", "CLIENT LIST", "CLIENT KILL ID 1", "SAVE",
    "CLIENT PAUSE 1", "REPLICAOF NO ONE", "SYNC", "MODULE LIST", "SLOWLOG GET", "LATENCY DOCTOR", "INFO", "SWAPDB 0 1",
    "MEMORY DOCTOR", "DBSIZE", "BGREWRITEAOF", "SUBSCRIBE x", "PUBLISH x y", "MIGRATE h 1 k 0 1", "CLUSTER INFO",
    "COMMAND COUNT", "RESTORE k 0 x", "WAIT 0 0",
)  # fmt: skip


@pytest.fixture(scope="module")
def broker() -> Iterator[Deployed]:
    with deployed(FLEET) as running:
        yield running


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Papers:
    return Papers(tmp_path_factory.mktemp("papers"))


@pytest.fixture(scope="module")
def port(broker: Deployed, papers: Papers) -> Iterator[int]:
    with behind_tls(broker.socket, papers.server(asks=True)) as listening:
        yield listening


def settings_of(broker: Deployed, papers: Papers, port: int, user: str) -> Settings:
    return load_settings(
        fleet=FLEET, redis_url=f"rediss://localhost:{port}/0", redis_username=user, broker_wait_s=5.0,
        redis_password_file=broker.folder / user, redis_ca_file=papers.ca, redis_cert_file=papers.own,
        redis_key_file=papers.key,
    )  # fmt: skip


def connection_of(name: str, user: str) -> Any:
    """A fixture: a user's connection, by its settings, over TLS."""

    @pytest.fixture(name=name)
    def connected(broker: Deployed, papers: Papers, port: int) -> Iterator[RedisClient]:
        with broker_for(settings_of(broker, papers, port, user)) as address:
            client = address.connect("test", functions=user == "clearway")
            yield client
            client.close()

    return connected


of_the_pipeline, of_a_connector = connection_of("pipeline", "clearway"), connection_of("connector", "fleet")
of_people, of_people_who_read_letters = connection_of("reader", "reader"), connection_of("letters", "letters")


def refused(client: RedisClient, *words: str | bytes) -> bool:
    """Whether the broker says that this user may not; any other answer would mean that it may."""
    try:
        client.once(lambda link: link.execute_command(*words))
    except BrokerRefused as refusal:
        return "permission" in str(refusal)
    return False


def test_the_pipeline_may_do_all_that_it_does(pipeline: RedisClient) -> None:
    bus, ledger = RedisBus(pipeline, FLEET), RedisLedger(pipeline, FLEET)
    assert bus.lags("events") == {}
    bus.join(EVENTS, "g")
    ids = [bus.publish(EVENTS, {"batch": b"x"}, cap=1_000) for _ in range(3)]
    assert [one.id for one in bus.read(EVENTS, "g", "me", count=2, block_ms=10)] == ids[:2]
    assert [one.id for one in bus.read(EVENTS, "g", "me", pending=True)] == ids[:2]
    assert bus.acknowledge(EVENTS, "g", ids[:1]) == 1
    assert [one.id for one in bus.recover(EVENTS, "g", "other", idle_ms=0)] == ids[1:2]
    assert bus.bury([DeadLetter(EVENTS, ids[0], 0, "why", b"raw")]) == 1
    assert len(bus.follow(DEAD, START, block_ms=10)) == 1
    assert bus.newest(EVENTS)[0].id == ids[2]
    assert bus.trim(EVENTS, covered=ids[1]) == 1
    assert bus.bounds(EVENTS).length == 2
    assert bus.lags(EVENTS)["g"].pending == 1
    checkpoints.save(bus, checkpoints.packed([b"state" * 1_000]), schema="s", covers={EVENTS: ids[2]})
    found = checkpoints.newest(bus, schema="s")
    assert found is not None
    assert found[1] == b"state" * 1_000
    ship_to(bus, 10)([SPAN])
    assert gathered(bus)[0] == [SPAN]
    lease = ledger.acquire("me", 60_000)
    assert isinstance(lease, Lease)
    assert ledger.renew(lease, 60_000)
    records = [Record("p", b"accepted", {"batch": b"plan"}), Record("q", b"stale")]
    assert [type(one) for one in ledger.commit(lease, records)] == [Recorded, Recorded]
    assert ledger.forget(lease, keep=0) >= 0
    assert ledger.release(lease)
    pipeline.check_synced()


def test_the_functions_use_no_command_that_the_pipeline_may_not() -> None:
    words = {word.removeprefix("+") for word in rules("clearway", FLEET)}
    called = re.findall(r"redis\.call\('(\w+)', (?:'(\w+)')?", LIBRARY)
    used = {f"{name}|{sub}".lower() if name in ("XINFO", "XGROUP") else name.lower() for name, sub in called}
    assert len(used) > 15
    assert used <= words


@pytest.mark.parametrize("user", ["pipeline", "connector", "reader", "letters"])
def test_no_user_of_ours_may_look_at_or_end_what_is_not_the_fleets(user: str, request: pytest.FixtureRequest) -> None:
    client: RedisClient = request.getfixturevalue(user)
    allowed = [line for line in ADMINISTRATION if not refused(client, *line.split())]
    assert allowed == []
    other = stream_key("other", EVENTS)
    for words in (("XADD", other, "*", "a", "b"), ("XRANGE", other, "-", "+"), ("XREAD", "STREAMS", other, "0"),
                  ("XGROUP", "CREATE", other, "g", "0", "MKSTREAM"), ("EXISTS", "secret"),
                  ("XREVRANGE", "clearway:{guarded2}:events", "+", "-")):  # fmt: skip
        assert refused(client, *words), words


def test_a_function_has_no_more_rights_than_who_calls_it(pipeline: RedisClient, connector: RedisClient) -> None:
    other = stream_key("other", EVENTS)
    RedisBus(pipeline, FLEET).publish(EVENTS, {"batch": b"x"})
    with pytest.raises(BrokerRefused, match=r"(?i)permission|access"):
        pipeline.call("trim", [other], ["0-0"])
    assert refused(connector, "FCALL", "x", "0")
    assert refused(connector, "FUNCTION", "LOAD", "REPLACE", LIBRARY)


@pytest.mark.parametrize(
    "words",
    [
        ("XADD", stream_key(FLEET, DECISIONS), "*", "batch", "mine"),
        ("XTRIM", stream_key(FLEET, DECISIONS), "MAXLEN", "0"),
        ("XDEL", stream_key(FLEET, DECISIONS), "1-1"),
        ("DEL", stream_key(FLEET, DECISIONS)),
        ("XGROUP", "DESTROY", stream_key(FLEET, DECISIONS), "fleet"),
        ("XGROUP", "SETID", stream_key(FLEET, DECISIONS), "fleet", "0"),
        ("RENAME", stream_key(FLEET, EVENTS), stream_key(FLEET, DECISIONS)),
        ("COPY", stream_key(FLEET, EVENTS), stream_key(FLEET, DECISIONS)),
        ("XADD", stream_key(FLEET, SNAPSHOTS), "*", "manifest", "mine"),
        ("XADD", stream_key(FLEET, DEAD), "*", "a", "b"),
        ("XADD", stream_key(FLEET, SPANS), "*", "a", "b"),
        ("XRANGE", stream_key(FLEET, SNAPSHOTS), "-", "+"),
        ("HSET", f"clearway:{{{FLEET}}}:ledger:lease", "epoch", "9"),
        ("INCR", f"clearway:{{{FLEET}}}:ledger:epoch"),
        ("GET", f"clearway:{{{FLEET}}}:ledger:revision"),
        ("XACK", stream_key(FLEET, EVENTS), "ingestor", "1-1"),
        ("XREADGROUP", "GROUP", "ingestor", "me", "STREAMS", stream_key(FLEET, EVENTS), ">"),
        ("XTRIM", stream_key(FLEET, EVENTS), "MAXLEN", "0"),
        ("SELECT", "1"),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_the_fleets_connector_can_write_no_decision_and_undo_none(
    connector: RedisClient, words: tuple[str, ...]
) -> None:
    assert refused(connector, *words)


def test_the_fleets_connector_can_do_its_work(connector: RedisClient, pipeline: RedisClient) -> None:
    bus = RedisBus(connector, FLEET)
    cluster = rack_cluster(racks=1)
    cluster["podgroups"] = [gang("low", 1, 1, nodes=["n0"])]
    telemetry = start_telemetry(Settings().telemetry, "fleet")
    loop = FleetLoop(SimulatedFleet(cluster, seed=1), load_inventory(), bus, telemetry, FleetPace(every_s=0.0))
    loop.open()
    ledger = RedisLedger(pipeline, FLEET)
    lease = ledger.acquire("me", 60_000)
    assert isinstance(lease, Lease)
    ledger.commit(lease, [Record("for the fleet", b"accepted", {"batch": b"\x90"})])
    loop.turn(block_ms=10)
    assert RedisBus(pipeline, FLEET).lags(DECISIONS)["fleet"].pending == 0
    assert ledger.release(lease)
    again = FleetLoop(SimulatedFleet(cluster, seed=1), load_inventory(), bus, telemetry, FleetPace(every_s=0.0))
    again.open()
    assert again._sent > 0
    assert RedisBus(pipeline, FLEET).lags(DECISIONS)["fleet"].undelivered == 0
    assert bus.reached(EVENTS, "nobody") == START
    assert bus.bounds(DECISIONS).length > 0
    assert connector.once(lambda link: link.exists(stream_key(FLEET, EVENTS))) == 1


def test_explain_reads_as_a_user_who_can_write_nothing(
    broker: Deployed, papers: Papers, port: int, reader: RedisClient, capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    settings = settings_of(broker, papers, port, "reader").model_copy(update={"fleet": FLEET})
    assert explain.run(settings, "default/nobody", count=5) == 1
    assert "no decision and no reason to wait" in capsys.readouterr().out
    with reading(settings, "top") as (_, now_s):
        assert now_s() == pytest.approx(time.time(), abs=60.0)
    assert caplog.text == "", "it may ask for the time"
    for stream in (EVENTS, DECISIONS, SNAPSHOTS, SPANS, "starving"):
        assert refused(reader, "XADD", f"clearway:{{{FLEET}}}:{stream}", "*", "a", "b"), stream
        assert refused(reader, "XTRIM", f"clearway:{{{FLEET}}}:{stream}", "MAXLEN", "0"), stream
    assert refused(reader, "XRANGE", stream_key(FLEET, DEAD), "-", "+")


def test_refused_input_is_read_by_the_connector_that_sent_it_and_by_a_user_for_nothing_else(
    pipeline: RedisClient, connector: RedisClient, letters: RedisClient
) -> None:
    RedisBus(pipeline, FLEET).bury([DeadLetter(EVENTS, "1-1", 0, "told why", b"raw")])
    for client in (connector, letters):
        reasons = [one.fields["reason"] for one in RedisBus(client, FLEET).newest(DEAD, count=100)]
        assert b"told why" in reasons
        assert refused(client, "XTRIM", stream_key(FLEET, DEAD), "MAXLEN", "0")
    assert refused(letters, "XRANGE", stream_key(FLEET, DECISIONS), "-", "+")


def test_without_a_password_one_may_ask_whether_the_broker_lives_and_nothing_else(broker: Deployed) -> None:
    asked = ["PING", *ADMINISTRATION, f"XRANGE {stream_key(FLEET, EVENTS)} - +", "FUNCTION LOAD x", "FCALL x 0"]
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(str(broker.socket))
        line.sendall("".join(f"{one}\r\n" for one in [*asked, "QUIT"]).encode())
        answers = b"".join(iter(lambda: line.recv(4096), b"")).split(b"\r\n")[:-2]
    assert answers[0] == b"+PONG"
    wrong = [one for one, answer in zip(asked[1:], answers[1:], strict=True) if not answer.startswith(b"-NOPERM")]
    assert wrong == []
    client = RedisClient(f"unix://{broker.socket}")
    with pytest.raises(BrokerRefused, match="permission"):
        client.greet()
    client.close()


def test_a_wrong_password_is_refused_at_once_and_not_told(broker: Deployed) -> None:
    client = RedisClient(f"unix://{broker.socket}", username="fleet", password="wrong secret")
    with pytest.raises(BrokerRefused, match="refused the credentials") as refusal:
        client.greet()
    assert "wrong secret" not in str(refusal.value)
    client.close()


def test_neither_passwords_nor_their_digests_stand_on_the_brokers_command_line(broker: Deployed) -> None:
    shown = Path(f"/proc/{broker.process.pid}/cmdline").read_text()
    assert shown.startswith("valkey-server")
    assert not any(password in shown for password in broker.passwords.values())
    assert "#" not in shown
    assert not any(password in (broker.folder / "log").read_text() for password in broker.passwords.values())


def connecting(port: int, host: str = "localhost", wait_s: float = 5.0, **files: Any) -> RedisClient:
    url = f"rediss://{host}:{port}/0"
    address = BrokerAddress(url, "clearway", "pipeline's %/secret", wait_s, Certificates(**files))
    return address.connect("test")


def test_a_broker_without_a_trusted_certificate_is_refused_and_not_waited_for(port: int, papers: Papers) -> None:
    with pytest.raises(BrokerRefused, match=r"broker at localhost:\d+ is not who it should be") as refusal:
        connecting(port, own=papers.own, key=papers.key)
    assert "secret" not in str(refusal.value)


def test_a_broker_of_another_name_is_refused(port: int, papers: Papers) -> None:
    with pytest.raises(BrokerRefused, match=r"127\.0\.0\.1:\d+ is not who it should be"):
        connecting(port, "127.0.0.1", ca=papers.ca, own=papers.own, key=papers.key)


def test_a_client_without_papers_is_not_let_in_where_they_are_asked_for(port: int, papers: Papers) -> None:
    with pytest.raises(BrokerUnreachable, match="if it asks for certificates, we have none: redis_cert_file"):
        connecting(port, wait_s=0.5, ca=papers.ca)


def test_a_certificate_of_ours_that_has_expired_is_named_where_the_broker_closes_the_connection(
    port: int, papers: Papers, tmp_path: Path
) -> None:
    own, key = tmp_path / "old.pem", tmp_path / "old.key"
    expired = papers.authority.issue_cert("clearway@localhost", not_after=datetime(2026, 1, 31, tzinfo=UTC))
    expired.cert_chain_pems[0].write_to_path(str(own))
    expired.private_key_pem.write_to_path(str(key))
    with pytest.raises(BrokerUnreachable, match=f"our certificate in {own} expired at 2026-01-31T00:00:00Z"):
        connecting(port, wait_s=0.5, ca=papers.ca, own=own, key=key)


def test_the_authority_is_enough_where_no_papers_are_asked_for(broker: Deployed, papers: Papers) -> None:
    with behind_tls(broker.socket, papers.server(asks=False)) as port:
        client = connecting(port, ca=papers.ca)
        assert client.greet() == f"localhost:{port}"
        client.close()


def test_certificates_that_are_replaced_in_place_are_read_with_the_next_connection(
    broker: Deployed, tmp_path: Path
) -> None:
    papers, renewed = Papers(tmp_path), trustme.CA()
    context = papers.server(asks=False)
    with behind_tls(broker.socket, context) as port:
        client = connecting(port, ca=papers.ca)
        renewed.issue_cert("localhost").configure_cert(context)
        assert client.greet() == f"localhost:{port}", "a connection that stands goes on"
        client.once(lambda link: link.connection_pool.disconnect())
        with pytest.raises(BrokerRefused, match="is not who it should be"):
            client.greet()
        renewed.cert_pem.write_to_path(str(papers.ca))
        assert client.greet() == f"localhost:{port}"
        client.close()


def test_who_speaks_plainly_to_tls_gets_no_answer(port: int) -> None:
    address = BrokerAddress(f"redis://localhost:{port}/0", "clearway", "secret", 0.5)
    with pytest.raises(Exception, match=r"broker unreachable at localhost:\d+ after") as refusal:
        address.connect("test")
    assert "secret" not in str(refusal.value)


def test_readers_block_and_wake_over_tls(pipeline: RedisClient) -> None:
    bus = RedisBus(pipeline, FLEET)
    last = bus.newest(EVENTS)[0].id
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.extend(one.id for one in bus.follow(EVENTS, last, block_ms=9_000)))
    reader.start()
    entry = bus.publish(EVENTS, {"batch": b"woken"})
    reader.join(20)
    assert read == [entry]
