"""What our user may not do is found at the start, by its name, and not days later; on a real broker."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from actors.broker.address import BrokerAddress
from actors.broker.bus import DEAD, DECISIONS, EVENTS, START, BrokerRefused, DeadLetter
from actors.broker.embedded_broker import EmbeddedBroker
from actors.broker.functions import LIBRARY
from actors.broker.ledger import Lease, Record, Recorded
from actors.broker.redis_bus import RedisBus
from actors.broker.redis_client import RedisClient
from actors.broker.redis_ledger import RedisLedger
from actors.health.rights import COMMANDS, check_rights
from tests.integration.services import LIMIT_S, Command, until
from tests.support.broker_doors import rules

FLEET = "guarded"
#: What is noticed before any function is called, or is not for a service: a connector's part, and another database.
ELSEWHERE = {
    "+client|setname", "+client|setinfo", "+fcall", "+function|load", "+config|get", "+select", "+xreadgroup",
    "+xautoclaim",
}  # fmt: skip
ALL = rules("clearway", FLEET)


Named = Callable[[list[str]], RedisClient]


@pytest.fixture
def user(broker: EmbeddedBroker) -> Iterator[Named]:
    """A connection as a user with these rights."""
    administrator = BrokerAddress(broker.url, wait_s=5.0).connect("administrator")
    links: list[RedisClient] = []

    def made(words: list[str]) -> RedisClient:
        rights = ("ACL", "SETUSER", "narrow", "reset", "on", "nopass", *words)
        administrator.once(lambda link: link.execute_command(*rights))
        links.append(BrokerAddress(broker.url, "narrow", "any", 5.0).connect("test"))
        return links[-1]

    yield made
    for link in (administrator, *links):
        link.close()


def test_the_user_of_the_deployment_lacks_nothing(user: Named) -> None:
    link = user(ALL)
    check_rights(link, FLEET)
    check_rights(link, FLEET, shadow=True)


@pytest.mark.parametrize("right", [word for word in ALL if word[0] == "+" and word not in ELSEWHERE])
def test_a_right_that_is_lacking_is_named_at_the_start(user: Named, right: str) -> None:
    link = user([word for word in ALL if word != right])
    with pytest.raises(BrokerRefused) as refusal:
        check_rights(link, FLEET)
    name = right[1:]
    assert f"does not let our user run {name}, which this service needs: add {right} to its rights" in str(
        refusal.value
    )


def test_a_right_on_some_keys_alone_is_named_with_those_where_it_is_lacking(user: Named) -> None:
    events = f"clearway:{{{FLEET}}}:events"
    link = user([*(word for word in ALL if word != "+xtrim"), f"(+xtrim ~{events})"])
    with pytest.raises(BrokerRefused, match=re.escape(f"run xtrim on clearway:{{{FLEET}}}:decisions and ")) as refusal:
        check_rights(link, FLEET)
    assert events not in str(refusal.value)


def test_the_keys_of_another_fleet_are_told_from_commands_that_are_lacking(user: Named) -> None:
    link = user(ALL)
    with pytest.raises(
        BrokerRefused, match=r"touch keys that begin with clearway:\{other\}:.* add ~clearway:\{other\}"
    ):
        check_rights(link, "other")


def test_every_command_that_a_function_runs_is_asked_for() -> None:
    called = {name for name, _ in re.findall(r"redis\.call\('(\w+)', (?:'(\w+)')?", LIBRARY)} - {"TIME"}
    assert called <= {command.split()[0] for commands in COMMANDS.values() for command in commands}


@pytest.mark.parametrize("right", ["xadd", "zadd", "hset", "incr", "xrevrange", "xinfo|stream", "zpopmin", "hdel"])
def test_a_commit_that_lacks_one_of_its_rights_writes_nothing_and_succeeds_once_it_has_it(
    user: Named, right: str, fleet_name: str
) -> None:
    """A number that no decision has would be waited for without end, and a decision without a verdict come twice."""
    granted = rules("clearway", fleet_name)
    ledger = RedisLedger(user(granted), fleet_name)
    lease = ledger.acquire("me", 60_000)
    assert isinstance(lease, Lease)
    narrow = RedisLedger(user([word for word in granted if word != f"+{right}"]), fleet_name)
    record = Record("plan", b"accepted", {"batch": b"z"})
    with pytest.raises(BrokerRefused, match=rf"it may not run (?i:{right.replace('|', ' ')}) "):
        narrow.commit(lease, [record])
    whole = user(granted)
    assert RedisBus(whole, fleet_name).bounds(DECISIONS).length == 0
    (outcome,) = RedisLedger(whole, fleet_name).commit(lease, [record])
    assert isinstance(outcome, Recorded)
    assert outcome.revision == 1


def test_a_lease_is_not_given_out_where_the_right_to_let_it_run_out_is_lacking(user: Named, fleet_name: str) -> None:
    granted = rules("clearway", fleet_name)
    narrow = RedisLedger(user([word for word in granted if word != "+pexpire"]), fleet_name)
    with pytest.raises(BrokerRefused, match="it may not run PEXPIRE"):
        narrow.acquire("me", 60_000)
    assert isinstance(RedisLedger(user(granted), fleet_name).acquire("another", 60_000), Lease)


def test_a_refused_message_is_buried_once_though_the_right_to_remember_it_was_lacking(
    user: Named, fleet_name: str
) -> None:
    granted, letter = rules("clearway", fleet_name), DeadLetter(EVENTS, "1-1", 0, "why", b"raw")
    narrow = RedisBus(user([word for word in granted if word != "+zadd"]), fleet_name)
    with pytest.raises(BrokerRefused, match="it may not run ZADD"):
        narrow.bury([letter])
    whole = RedisBus(user(granted), fleet_name)
    assert whole.bury([letter]) == 1
    assert len(whole.follow(DEAD, START)) == 1


def test_a_fleet_waits_for_a_right_that_is_taken_away_once_it_has_listed(
    broker: EmbeddedBroker, tmp_path: Path
) -> None:
    granted, administrator = rules("fleet", "connected"), BrokerAddress(broker.url).connect("administrator")
    bus = RedisBus(administrator, "connected")

    def may(words: list[str]) -> None:
        rights = ("ACL", "SETUSER", "connector", "reset", "on", "nopass", *words)
        administrator.once(lambda link: link.execute_command(*rights))

    may(granted)
    fleet = Command(
        tmp_path, "fleet", "--redis-url", broker.url, "--fleet", "connected",
        CLEARWAY_REDIS_USERNAME="connector", CLEARWAY_REDIS_PASSWORD="any",
    )  # fmt: skip
    try:
        until(lambda: "nodes listed" in fleet.complained(), "it has listed")
        may(rules("fleet", "another"))
        until(lambda: "it refuses our user" in fleet.complained(), "it says so")
        there = bus.bounds(EVENTS).added
        may(granted)
        until(lambda: bus.bounds(EVENTS).added > there, "it goes on")
    finally:
        assert fleet.end() == 0, fleet.complained()
        administrator.close()


def test_a_service_without_a_right_ends_before_it_starts_anything(
    broker: EmbeddedBroker, user: Named, tmp_path: Path
) -> None:
    user([word for word in ALL if word != "+zpopmin"])
    service = Command(
        tmp_path, "run", "--redis-url", broker.url, "--fleet", FLEET,
        CLEARWAY_REDIS_USERNAME="narrow", CLEARWAY_REDIS_PASSWORD="any",
    )  # fmt: skip
    try:
        assert service.process.wait(LIMIT_S) == 2
    finally:
        service.end()
    assert "run zpopmin, which this service needs: add +zpopmin to its rights" in service.complained()
    assert service.complained().count("\n") == 1
