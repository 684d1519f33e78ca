"""The smallest connector of the docs keeps every rule, and each way of breaking one is named."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from actors.broker.bus import DECISIONS, BrokerUnreachable
from actors.broker.embedded_broker import EmbeddedBroker
from actors.broker.redis_bus import RedisBus
from actors.broker.redis_client import RedisClient
from actors.broker.redis_ledger import RedisLedger
from actors.configuration.settings import SettingsRefused
from actors.configuration.settings_sources import load_settings
from actors.verification.connector_check import run

SMALLEST = Path(__file__).parents[2] / "docs" / "smallest_connector.py"
RULES = 11
#: By what is done wrong: a line of the connector, what stands in its place, and the words of the check that sees it.
FAULTS = {
    "lists nothing": ('    if kind == "resync_requested":\n        list_fleet()', "    pass", "no whole fleet_listed"),
    "does not evict": ('for one in body["evictions"]:', "for one in []:", "no task_ended of default/job-0"),
    "does not bind": ('for one in body["bindings"]:', "for one in []:", "no task_started of default/job-0"),
    "starts elsewhere": ('"node": one["node"], "inc', '"node": "n1", "inc', "bound to n0 and started on n1"),
    "ends another life": ('and task["incarnation"] == life:', "or True:", "it said task_ended of default/job-0"),
    "starts another life": ('in (None, task["incarnation"])', "or True", "it said task_started of default/job-0"),
    "says what is not known": ('"outcome": "Evicted"', '"outcome": "Vanished"', "outcome: "),
    "does not acknowledge": ("broker.xack(DECISIONS, GROUP, entry)", "pass", "not acknowledged: "),
    "forgets what it said": ('task["node"] = one["node"]', "task.update(node=None)", "by its list"),
}  # fmt: skip


@contextmanager
def connector(source: str, folder: Path, url: str, fleet: str) -> Iterator[None]:
    """A connector that reads decisions: how long Python takes to start is no matter of the check."""
    script = folder / "connector.py"
    script.write_text(source)
    process = subprocess.Popen([sys.executable, str(script), url, fleet], stderr=subprocess.PIPE, text=True)
    client = RedisClient(url)
    try:
        while process.poll() is None and not RedisBus(client, fleet).lags(DECISIONS):
            time.sleep(0.01)
        yield
        assert process.poll() is None, process.communicate()[1]
    finally:
        process.kill()
        process.communicate()
        client.close()


def test_the_smallest_connector_keeps_every_rule(broker: EmbeddedBroker, fleet_name: str, tmp_path: Path) -> None:
    command = ["check-connector", "--redis-url", broker.url, "--fleet", fleet_name]
    with connector(SMALLEST.read_text(), tmp_path, broker.url, fleet_name):
        done = subprocess.run(
            [sys.executable, "-m", "actors", *command], cwd=SMALLEST.parents[1], text=True, capture_output=True,
            check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["right"] * RULES
    page = (SMALLEST.parent / "protocol.md").read_text()
    assert "\n".join(lines) in page


def test_the_smallest_connector_is_small() -> None:
    lines = [
        line for line in SMALLEST.read_text().splitlines() if line.strip() and not line.startswith(('"""', "import"))
    ]
    assert len(lines) <= 50


@pytest.mark.parametrize("fault", FAULTS)
def test_a_connector_that_breaks_a_rule_is_told_which(
    fault: str, broker: EmbeddedBroker, fleet_name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line, instead, said = FAULTS[fault]
    source = SMALLEST.read_text()
    assert source.count(line) == 1
    with connector(source.replace(line, instead), tmp_path, broker.url, fleet_name):
        assert run(load_settings(redis_url=broker.url, fleet=fleet_name), 2.0) == 1
    wrong = [one for one in capsys.readouterr().out.splitlines() if one.startswith("wrong")]
    assert any(said in one for one in wrong), wrong


def test_a_fleet_that_a_service_decides_for_is_refused(
    broker: EmbeddedBroker, client: RedisClient, fleet_name: str
) -> None:
    RedisLedger(client, fleet_name).acquire("the service", 60_000)
    with pytest.raises(SettingsRefused, match="the service decides for it; stop that service first"):
        run(load_settings(redis_url=broker.url, fleet=fleet_name), 1.0)


def test_a_broker_that_is_not_there_is_waited_for_no_longer_than_an_answer_may_take(tmp_path: Path) -> None:
    with pytest.raises(BrokerUnreachable, match="No such file or directory"):
        run(load_settings(redis_url=f"unix://{tmp_path}/no.sock", fleet="trial"), 0.2)
