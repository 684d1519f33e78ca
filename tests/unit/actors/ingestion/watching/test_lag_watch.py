"""Who is behind is said: in figures, and in the log once in a while."""

import logging

import pytest
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from actors.broker.bus import DECISIONS, EVENTS
from actors.broker.memory_bus import MemoryBus
from actors.configuration.settings import TelemetrySettings
from actors.ingestion.group_notes import GROUP
from actors.ingestion.watching.lag_watch import Lags
from actors.observability.telemetry import start as start_telemetry
from tests.support.assembly import Clock


def figures(reader: InMemoryMetricReader) -> dict[tuple[str, str, str], float]:
    """The newest value of each gauge by name, stream and group."""
    data = reader.get_metrics_data()
    assert data is not None
    return {
        (metric.name, point.attributes["stream"], point.attributes["group"]): point.value
        for resource in data.resource_metrics for scope in resource.scope_metrics for metric in scope.metrics
        for point in metric.data.data_points
    }  # fmt: skip


def test_every_group_is_measured_and_who_is_too_far_behind_is_named(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    clock, reader = Clock(), InMemoryMetricReader()
    bus = MemoryBus("test", clock)
    lags = Lags(bus, start_telemetry(TelemetrySettings(), "test", reader=reader), warn_s=30.0)
    bus.join(EVENTS, GROUP)
    bus.join(DECISIONS, "fleet")
    bus.publish(EVENTS, {"batch": b"a"})
    ids = [bus.publish(DECISIONS, {"batch": b"a"}) for _ in range(3)]
    bus.read(EVENTS, GROUP, "me")
    bus.read(DECISIONS, "fleet", "me", count=2)
    for seconds in (20.0, 20.0, 1.0, 60.0):
        clock.now += seconds
        lags.look(clock.now)
    found = figures(reader)
    assert found["clearway.stream.lag", DECISIONS, "fleet"] == 1
    assert found["clearway.stream.unacknowledged", DECISIONS, "fleet"] == 2
    assert found["clearway.stream.lag.age", DECISIONS, "fleet"] == 101.0
    assert found["clearway.stream.lag.age", EVENTS, GROUP] == 0.0  # folded, and acknowledged with a checkpoint
    bus.read(DECISIONS, "fleet", "me")
    bus.acknowledge(DECISIONS, "fleet", ids)
    lags.look(clock.now)
    lags.look(clock.now)
    assert [record.getMessage() for record in caplog.records] == [
        "group fleet of decisions is 40 s behind: 1 entries not read, 2 not acknowledged",
        "group fleet of decisions is 101 s behind: 1 entries not read, 2 not acknowledged",
        "group fleet of decisions has caught up",
    ]


def test_a_group_that_is_gone_has_no_figures_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, reader = Clock(), InMemoryMetricReader()
    bus, later = MemoryBus("test", clock), MemoryBus("test", clock)
    lags = Lags(bus, start_telemetry(TelemetrySettings(), "test", reader=reader), warn_s=30.0)
    for group in ("fleet", "former"):
        bus.join(DECISIONS, group)
    later.join(DECISIONS, "fleet")
    lags.look(clock.now)
    assert {group for _, _, group in figures(reader)} == {"fleet", "former"}
    monkeypatch.setattr(bus, "lags", later.lags)
    lags.look(clock.now)
    assert {group for _, _, group in figures(reader)} == {"fleet"}
