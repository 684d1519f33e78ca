"""A real broker for the whole session, and a fleet of its own for every test."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from actors.broker.bus import Bus
from actors.broker.embedded_broker import EmbeddedBroker
from actors.broker.memory_bus import MemoryBus
from actors.broker.redis_bus import RedisBus
from actors.broker.redis_client import RedisClient
from tests.support.broker_doors import rules

USER = "clearway"


@pytest.fixture(scope="session")
def broker() -> Iterator[EmbeddedBroker]:
    """The embedded broker, started once."""
    with EmbeddedBroker(binary=os.environ.get("CLEARWAY_BROKER_BINARY")) as running:
        administrator = RedisClient(running.url)
        administrator.once(lambda link: link.execute_command("ACL", "SETUSER", USER, "nopass", *rules(USER, "*")))
        administrator.close()
        yield running


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    """One that the test may change, freeze and kill."""
    with EmbeddedBroker(tmp_path) as running:
        yield running


@pytest.fixture
def client(broker: EmbeddedBroker) -> Iterator[RedisClient]:
    """A connection to it, with no more rights than deploy/redis.conf gives the pipeline."""
    link = RedisClient(broker.url, username=USER, password="none")
    yield link
    link.close()


@pytest.fixture
def fleet_name() -> str:
    """A name nobody else has, so that tests share the broker and nothing in it."""
    return f"t{uuid.uuid4().hex[:12]}"


@pytest.fixture(params=["memory", "redis"])
def bus(request: pytest.FixtureRequest, fleet_name: str) -> Bus:
    """A bus of either kind, for what holds of both."""
    if request.param == "memory":
        return MemoryBus(fleet_name)
    return RedisBus(request.getfixturevalue("client"), fleet_name)
