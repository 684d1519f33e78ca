"""A service's health over HTTP, as it starts, waits for its fleet, and leads; of a standby see `test_standby`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from actors.broker.address import BrokerAddress
from actors.broker.embedded_broker import EmbeddedBroker
from actors.observability.health_server import HealthRefused, HealthServer, Pages
from actors.ray_runtime.service_process import ServiceProcess
from deploy import healthy
from tests.integration.services import SmallFleet, asked, ready, until, url_of


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as running:
        yield running


def test_health_says_what_is_true_from_the_start_to_the_end(broker: EmbeddedBroker, tmp_path: Path) -> None:
    settings = {"fleet": "standby", "searchers": "1", "lease_ttl_s": "1.0", "health": "127.0.0.1:0"}
    service = ServiceProcess(tmp_path / "service.log", "--redis-url", broker.url, settings=settings)
    fleet = None
    try:
        url = url_of(service)
        assert asked(f"{url}/live")[0] == 200
        assert ready(url)["state"] == "starts"
        assert asked(f"{url}/elsewhere")[0] == 404
        until(lambda: "leads no longer" in service.said(), "without a fleet the lease is given back")
        code, said = asked(f"{url}/ready")
        assert code == 503
        assert json.loads(said)["state"] == "waits"
        assert "no fleet is listed" in (healthy.asked(f"{url}/ready") or "")
        fleet = SmallFleet(BrokerAddress(broker.url), "standby")
        fleet.until(lambda: bool(ready(url)["ready"]), "it leads")
        assert ready(url)["state"] == "leads"
        assert healthy.main([f"{url}/ready"]) == 0
        fleet.place("urgent", priority=5)
        families = {one.name: one for one in text_string_to_metric_families(asked(f"{url}/metrics")[1])}
        roles = {sample.labels["role"] for one in families.values() for sample in one.samples}
        assert roles >= {"run", "committer", "dispatcher", "ingestor"}
        assert any(sample.value >= 1 for sample in families["clearway_evictions_tasks"].samples)
        assert service.end() == 0
        with pytest.raises(OSError, match="refused"):
            asked(f"{url}/live")
    finally:
        service.close()
        if fleet is not None:
            fleet.close()


def test_a_port_that_is_taken_is_refused_where_it_was_asked_for_and_left_where_it_was_not() -> None:
    pages = Pages(lambda: (True, {}), lambda: (True, {}), lambda: b"")
    first = HealthServer("127.0.0.1:0", pages)
    try:
        with pytest.raises(HealthRefused, match="cannot be served"):
            HealthServer(first.url.removeprefix("http://"), pages)
        second, third = HealthServer("auto", pages), HealthServer("auto", pages)
        assert second.url != third.url
        assert [asked(f"{one.url}/live")[0] for one in (second, third)] == [200, 200]
        second.close()
        third.close()
    finally:
        first.close()
