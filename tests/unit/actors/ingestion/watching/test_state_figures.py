"""How full the fleet is, and what each queue deserves, holds and waits for, as metrics."""

from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from actors.configuration.settings import TelemetrySettings
from actors.ingestion.watching.state_figures import set_figures
from actors.observability.telemetry import start
from tests.support.assembly import Assembly, gang, rack_cluster
from tests.support.measured import recorded


def test_a_queue_says_what_it_deserves_holds_and_who_waits() -> None:
    cluster = rack_cluster(racks=1)
    cluster["podgroups"] = [gang(f"low{at}", 1, 8, nodes=[f"n{at}"]) for at in range(3)]
    cluster["podgroups"].append(gang("wide", 9, 8, queue="b"))
    assembly = Assembly(cluster)
    assembly.hear()
    reader = InMemoryMetricReader()
    set_figures(start(TelemetrySettings(), "test", reader=reader).figures, assembly.ingest.ingestor.state)
    found = recorded(reader)
    assert found["clearway.fleet.used"]["gpu"] == 0.75
    assert found["clearway.queue.held"]["a,gpu"] == 24
    assert found["clearway.queue.held"]["a,cpu"] == 3
    assert found["clearway.queue.held"]["b,gpu"] == 0
    assert found["clearway.queue.deserved"] == {"a,gpu": 16, "b,gpu": 16}
    assert found["clearway.queue.waiting"] == {"a": 0, "b": 1}


def test_a_queue_that_is_gone_has_no_figures_any_more() -> None:
    reader = InMemoryMetricReader()
    figures = start(TelemetrySettings(), "test", reader=reader).figures
    cluster = rack_cluster(racks=1)
    for queues in (cluster["queues"], cluster["queues"][:1]):
        assembly = Assembly({**cluster, "queues": queues})
        assembly.hear()
        set_figures(figures, assembly.ingest.ingestor.state)
    found = recorded(reader)
    assert set(found["clearway.queue.waiting"]) == {"a"}
    assert {name.split(",")[0] for name in found["clearway.queue.held"]} == {"a"}
    assert set(found["clearway.queue.deserved"]) == {"a,gpu"}
