"""Every figure that an operator is told to watch is recorded where it happens."""

import re
from pathlib import Path
from typing import Any

import yaml
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from actors.broker.bus import DECISIONS, EVENTS, BrokerUnreachable
from actors.broker.retry import RetryPolicy, persist
from actors.configuration.settings import TelemetrySettings
from actors.observability.telemetry import counting_outages, start
from tests.support.assembly import Assembly, full_racks, gang, rack_cluster
from tests.support.measured import recorded

ACTORS = Path(__file__).parents[4] / "actors"


def watched(cluster: dict[str, Any]) -> tuple[Assembly, InMemoryMetricReader]:
    reader = InMemoryMetricReader()
    return Assembly(cluster, telemetry=start(TelemetrySettings(), "test", reader=reader)), reader


def full_rack() -> tuple[Assembly, InMemoryMetricReader]:
    """A rack that work of low priority fills, listed."""
    assembly, reader = watched(full_racks(1))
    assembly.hear()
    return assembly, reader


def test_a_decision_that_evicts_says_how_much_for_how_much() -> None:
    assembly, reader = full_rack()
    assembly.submit(gang("big", 2, 4, priority=5))
    assembly.turn()
    found = recorded(reader)
    assert found["clearway.evictions.ratio"] == {"cpu": 0.5, "gpu": 1.0, "pods": 0.5}
    assert found["clearway.evictions.tasks"] == {"preempt": 1}
    assert found["clearway.gangs.placed"] == {"": 1}


def test_refused_input_is_counted_once_however_often_it_is_read() -> None:
    assembly, reader = watched(rack_cluster())
    for _ in range(2):
        assembly.bus.publish(EVENTS, {"batch": b"\xc1 not msgpack"})
    assembly.hear()
    assembly.restart_ingestor()
    assembly.hear()
    assert recorded(reader)["clearway.dead_letters"] == {EVENTS: 2, DECISIONS: 0}


def test_what_an_alert_counts_the_rise_of_is_there_before_the_first_one() -> None:
    rules = yaml.safe_load((ACTORS.parent / "deploy/alerts.yaml").read_text())["groups"][0]["rules"]
    said = " ".join(rule["expr"] for rule in rules)
    asked = set(re.findall(r"(?:increase|rate)\(clearway_(\w+)_total", said))
    assert asked == {"dead_letters", "tasks_elsewhere", "victims_overdue", "verdicts"}
    _, reader = watched(rack_cluster())
    assert asked <= {name.removeprefix("clearway.").replace(".", "_") for name in recorded(reader)}
    assert recorded(reader)["clearway.verdicts"] == {"accepted,": 0}


def test_every_try_that_finds_no_broker_is_counted_and_said() -> None:
    reader = InMemoryMetricReader()
    telemetry = start(TelemetrySettings(), "test", reader=reader)
    answers = iter([BrokerUnreachable("refused"), BrokerUnreachable("refused"), "PONG"])

    def ask() -> str:
        answer = next(answers)
        if isinstance(answer, BrokerUnreachable):
            raise answer
        return answer

    say = counting_outages(telemetry)
    assert persist(ask, where="here", retry=RetryPolicy(), say=say, pause=lambda _: None) == "PONG"
    assert recorded(reader)["clearway.broker.outages"] == {"": 2}


def test_what_is_gone_or_not_said_any_more_has_no_figure() -> None:
    reader = InMemoryMetricReader()
    figures = start(TelemetrySettings(), "test", reader=reader).figures
    figures.queue_waiting.set(1, {"queue": "a"})
    figures.queue_waiting.set(2, {"queue": "b"})
    figures.queue_waiting.set(3, {"queue": "a"})
    assert recorded(reader)["clearway.queue.waiting"] == {"a": 3, "b": 2}
    figures.queue_waiting.only([(4, {"queue": "b"})])
    assert recorded(reader)["clearway.queue.waiting"] == {"b": 4}
    figures.queue_waiting.drop()
    figures.starving.set(0)
    assert set(recorded(reader)) == {"clearway.gangs.starving"}


def test_a_service_that_lost_the_lease_says_nothing_of_what_another_decides() -> None:
    assembly, reader = full_rack()
    assembly.submit(gang("big", 2, 8, priority=5))
    assembly.turn()
    assembly.hear()
    of_the_leader = {
        "clearway.gangs.starving", "clearway.podgroups.unschedulable", "clearway.tasks.unschedulable",
        "clearway.reservations.held", "clearway.domains.reserved",
    }  # fmt: skip
    assert recorded(reader)["clearway.reservations.held"] == {"": 1}
    assert of_the_leader <= set(recorded(reader))
    assembly.committer.resign()
    assembly.committer.tend()
    assembly.dispatcher.stand_by()
    assert not of_the_leader & set(recorded(reader))


def test_no_figure_is_made_and_never_recorded() -> None:
    sources = "".join(path.read_text() for path in sorted(ACTORS.rglob("*.py")))
    missing = [name for name in vars(start(TelemetrySettings(), "test").figures) if f"figures.{name}." not in sources]
    assert missing == []
