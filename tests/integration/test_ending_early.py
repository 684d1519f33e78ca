"""Roles that are told to stop while some of them still start: what they hold is given back, and none is waited for."""

import threading
import time
from collections.abc import Iterator

import pytest

from actors.broker.address import BrokerAddress, broker_for
from actors.broker.ledger import Lease
from actors.broker.redis_ledger import RedisLedger
from actors.broker.retry import ToldToStop
from actors.configuration.profiles import load_profile
from actors.configuration.settings import Settings
from actors.ray_runtime import role_actors as roles
from actors.ray_runtime.cluster import ray_cluster
from actors.ray_runtime.process import Wiring
from actors.ray_runtime.role_actors import RoleActors
from tests.integration.services import LIMIT_S

#: A lease that is not given back lasts for longer than a test.
SETTINGS = Settings(fleet="early", searchers=1, lease_ttl_s=60.0)
#: Seconds that the roles may take to end; a service that takes three is killed.
QUICK_S = 2.5


class Slow:
    """A role on a machine that is too busy to start it."""

    def __init__(self, wiring: Wiring) -> None:
        del wiring
        time.sleep(600.0)

    def ready(self) -> int:
        return 0

    def hear(self, *_: object) -> None:
        return

    stop = unlisted = leadership = ready


@pytest.fixture(scope="module")
def address() -> Iterator[BrokerAddress]:
    with broker_for(SETTINGS) as address, ray_cluster(None, "early"):
        yield address


@pytest.mark.parametrize("late", ["IngestorActor", "DispatcherActor", "CommitterActor"])
def test_the_lease_is_given_back_and_the_role_that_still_starts_is_not_waited_for(
    address: BrokerAddress, late: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(roles, late, Slow)
    pipeline = RoleActors(Wiring(SETTINGS, address, load_profile("default"), late))
    others = [call for call, name in pipeline._starts.items() if name not in late.lower()]
    assert roles.ray.wait(others, num_returns=len(others), timeout=LIMIT_S)[1] == []
    link = address.connect("test")
    ledger = RedisLedger(link, SETTINGS.fleet)
    until = time.monotonic() + LIMIT_S
    while late == "IngestorActor" and not leads(pipeline):
        assert time.monotonic() < until
        time.sleep(0.05)
    told = threading.Event()
    told.set()
    with pytest.raises(ToldToStop):
        pipeline.await_ready(stop=told)
    began = time.monotonic()
    pipeline.stop()
    took_s = time.monotonic() - began
    taken = ledger.acquire("next", 1_000)
    for one in pipeline.actors:
        roles.ray.kill(one)
    assert isinstance(taken, Lease), taken
    ledger.release(taken)
    link.close()
    assert took_s < QUICK_S


def leads(pipeline: RoleActors) -> bool:
    found = pipeline.leadership(None, 0.5)
    return found is not None and found.leads
