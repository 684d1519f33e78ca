"""A standby on the leader's own Ray cluster: their roles do not meet, and when that Ray ends, the standby says so.

A standby that is to outlive the leader's machine needs a Ray of its own (`test_standby.py`).
"""

import re
from pathlib import Path

import pytest

from actors.broker.address import BrokerAddress
from actors.broker.embedded_broker import EmbeddedBroker
from actors.processes.tree import descendants
from actors.ray_runtime.service_process import ServiceProcess
from tests.integration.services import SmallFleet

_REFUSED = 2


def joined(leader: ServiceProcess) -> tuple[str, str]:
    """Address and token file of the Ray that a service has started."""
    lines = "\n".join(
        Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        for pid in descendants(leader.process.pid)
    )
    address, folder = re.search(r"--gcs-address=(\S+)", lines), re.search(r"/tmp/cw-\w+", lines)
    assert address is not None
    assert folder is not None
    return address.group(1), f"{folder.group()}/token"


def test_a_standby_on_the_leaders_ray_stands_by_and_ends_with_one_sentence_when_that_ray_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"fleet": "shared", "searchers": "1", "lease_ttl_s": "2", "health": "off"}
    services: list[ServiceProcess] = []
    with EmbeddedBroker() as broker:
        fleet = SmallFleet(BrokerAddress(broker.url), "shared")
        try:
            options = ("--redis-url", broker.url)
            leader = ServiceProcess(tmp_path / "leader.log", *options, settings=settings)
            services.append(leader)
            fleet.until(lambda: bool(leader.leads), "the first service leads")
            address, token = joined(leader)
            monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", token)
            standby = ServiceProcess(tmp_path / "standby.log", *options, "--ray-address", address, settings=settings)
            services.append(standby)
            fleet.until(lambda: standby.leads is False, "the second one stands by")
            fleet.place("beside", priority=3)
            assert leader.leads
            assert not standby.leads
            leader.kill()
            fleet.until(lambda: standby.process.poll() is not None, "the standby ends")
        finally:
            for one in services:
                one.close()
            fleet.close()
        assert standby.process.poll() == _REFUSED
        assert standby.said().strip().splitlines()[-1].startswith("clearway: the Ray cluster has ended, and our roles")
        assert "Traceback" not in standby.said()
        assert fleet.report().broken == []
