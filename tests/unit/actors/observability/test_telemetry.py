"""One trace a cycle, across processes; and spans as a tree."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from actors.broker.memory_bus import MemoryBus
from actors.configuration.settings import TelemetrySettings
from actors.observability.span_store import gathered, ship_to, tree
from actors.observability.telemetry import Telemetry, start
from actors.observability.traces import SPAN_ATTEMPT, SPAN_CYCLE, SPAN_INGEST, SPAN_JUDGE

NONE = TelemetrySettings(exporter="none")


def watched(role: str, spans: list[dict[str, Any]]) -> Telemetry:
    return start(NONE, role, ship=spans.extend, ship_at_once=True)


def test_one_cycle_is_one_trace_across_processes() -> None:
    spans: list[dict[str, Any]] = []
    dispatcher, searcher = watched("dispatcher", spans), watched("searcher", spans)
    with dispatcher.span(SPAN_CYCLE, gangs=3):
        carrier = dispatcher.carrier()
        with dispatcher.span(SPAN_JUDGE) as work:
            work.set(verdict="accepted", reason=None)
    with searcher.span(SPAN_ATTEMPT, carrier, domain="b1"):
        pass
    judge, cycle, attempt = spans
    assert [span["name"] for span in spans] == [SPAN_JUDGE, SPAN_CYCLE, SPAN_ATTEMPT]
    assert len({span["trace"] for span in spans}) == 1
    assert judge["parent"] == attempt["parent"] == cycle["span"]
    assert cycle["parent"] is None
    assert (attempt["role"], attempt["attributes"], judge["attributes"]) == (
        "searcher", {"domain": "b1"}, {"verdict": "accepted"}
    )  # fmt: skip


def test_a_span_is_linked_to_what_caused_it() -> None:
    spans: list[dict[str, Any]] = []
    fleet, ingestor = watched("fleet", spans), watched("ingestor", spans)
    with fleet.span("emit"):
        cause = fleet.carrier()
    with ingestor.span(SPAN_CYCLE), ingestor.span(SPAN_INGEST, links=[cause, {}, {"traceparent": "nonsense"}]):
        pass
    emit, ingest, _ = spans
    assert ingest["links"] == [emit["trace"]]
    assert ingest["trace"] != emit["trace"]


def test_a_wrong_carrier_begins_a_new_trace() -> None:
    spans: list[dict[str, Any]] = []
    telemetry = watched("searcher", spans)
    with telemetry.span(SPAN_ATTEMPT, {"traceparent": "nonsense"}):
        pass
    assert spans[0]["parent"] is None
    assert telemetry.carrier() == {}


def test_an_exception_marks_its_span_and_goes_on() -> None:
    spans: list[dict[str, Any]] = []
    telemetry = watched("searcher", spans)
    with pytest.raises(ValueError, match="broken"), telemetry.span(SPAN_ATTEMPT):
        raise ValueError("broken")
    assert [(span["ok"], span["reason"]) for span in spans] == [(False, "ValueError: broken")]


def test_a_shipper_that_fails_does_not_stop_the_work(caplog: pytest.LogCaptureFixture) -> None:
    def ship(_: list[dict[str, Any]]) -> None:
        raise ConnectionError("no broker")

    telemetry = start(NONE, "searcher", ship=ship, ship_at_once=True)
    with telemetry.span(SPAN_ATTEMPT):
        pass
    assert "1 spans were not shipped: no broker" in caplog.text


def test_flushing_ships_what_is_waiting() -> None:
    bus = MemoryBus()
    telemetry = start(NONE, "searcher", ship=ship_to(bus, 100))
    with telemetry.span(SPAN_ATTEMPT):
        pass
    telemetry.flush()
    spans, after = gathered(bus)
    assert [span["name"] for span in spans] == [SPAN_ATTEMPT]
    assert gathered(bus, after) == ([], after)
    telemetry.stop()


def test_the_broker_keeps_as_many_spans_as_it_is_told_to_however_many_come_at_once() -> None:
    """What is shipped together was one entry, and entries were counted: a busy service filled the broker with them."""
    bus = MemoryBus()
    telemetry = start(NONE, "searcher", ship=ship_to(bus, 100))
    for batch in range(5):
        for at in range(120):
            with telemetry.span(f"{batch}-{at}"):
                pass
        telemetry.flush()
    names = [span["name"] for span in gathered(bus)[0]]
    assert 50 <= len(names) <= 100
    assert names == [f"4-{at}" for at in range(120)][-len(names) :]
    telemetry.stop()


def test_a_role_ends_although_its_spans_are_not_taken(caplog: pytest.LogCaptureFixture) -> None:
    taken = threading.Event()
    telemetry = start(NONE, "searcher", ship=lambda _: taken.wait(60.0))
    with telemetry.span(SPAN_ATTEMPT):
        pass
    telemetry.stop(limit_s=0.0)
    assert not taken.is_set()
    assert caplog.messages == ["the last spans or metrics were not taken within 0 s"]
    taken.set()


def test_a_role_that_is_stopped_ships_its_last_spans(caplog: pytest.LogCaptureFixture) -> None:
    spans: list[dict[str, Any]] = []
    telemetry = start(NONE, "searcher", ship=spans.extend)
    with telemetry.span(SPAN_ATTEMPT):
        pass
    telemetry.stop(limit_s=30.0)
    assert [span["name"] for span in spans] == [SPAN_ATTEMPT]
    assert caplog.messages == []


def test_each_process_is_an_instance_and_all_searchers_are_one_service() -> None:
    found = []
    for role in ("searcher-0", "searcher-12", "searcher-12", "committer"):
        reader = InMemoryMetricReader()
        telemetry = start(NONE, role, fleet="prod", reader=reader)
        telemetry.figures.starving.set(1)
        data = reader.get_metrics_data()
        assert data is not None
        found.append(data.resource_metrics[0].resource.attributes)
        telemetry.stop()
    assert [one["service.name"] for one in found] == [*["clearway-searcher"] * 3, "clearway-committer"]
    assert [one["clearway.role"] for one in found] == ["searcher-0", "searcher-12", "searcher-12", "committer"]
    assert len({one["service.instance.id"] for one in found}) == 4
    assert all(one["service.version"] and one["host.name"] for one in found)
    assert {one["clearway.fleet"] for one in found} == {"prod"}


def test_figures_are_recorded_with_what_they_are_split_by() -> None:
    reader = InMemoryMetricReader()
    telemetry = start(NONE, "committer", reader=reader)
    telemetry.figures.verdicts.add(2, {"verdict": "stale", "reason": "a victim is gone"})
    telemetry.figures.cycle_s.record(1.5)
    telemetry.figures.starving.set(4)
    data = reader.get_metrics_data()
    assert data is not None
    found = {metric.name: metric for metric in data.resource_metrics[0].scope_metrics[0].metrics}
    assert set(found) == {"clearway.verdicts", "clearway.cycle.duration", "clearway.gangs.starving"}
    (point,) = found["clearway.verdicts"].data.data_points
    assert dict(point.attributes or {}) == {"verdict": "stale", "reason": "a victim is gone"}
    assert data.resource_metrics[0].resource.attributes["service.name"] == "clearway-committer"
    telemetry.stop()


def test_nothing_is_sampled_when_nothing_is_wanted() -> None:
    spans: list[dict[str, Any]] = []
    telemetry = start(TelemetrySettings(sample_ratio=0.0), "x", ship=spans.extend, ship_at_once=True)
    with telemetry.span(SPAN_CYCLE):
        pass
    assert spans == []


def span(name: str, parent: str | None, start_ms: int, **more: Any) -> dict[str, Any]:
    return {
        "name": name, "role": "r", "trace": "t", "span": name, "parent": parent, "start_ns": start_ms * 1_000_000,
        "end_ns": (start_ms + 2) * 1_000_000, "ok": True, "reason": "", "attributes": {}, "links": [], **more,
    }  # fmt: skip


def test_a_trace_is_shown_as_a_tree() -> None:
    spans = [
        span("record", "judge", 6),
        span("judge", "cycle", 5, ok=False, reason="no lease"),
        span("attempt", "cycle", 3, attributes={"gang": "default/a", "bound": 0.123456}),
        span("cycle", None, 1, links=["x", "y"]),
        span("orphan", "missing", 9),
        span("elsewhere", None, 1, trace="other"),
    ]
    assert tree(spans, "t") == [
        "cycle [r] 2.00 ms (2 links)",
        "├─ attempt [r] 2.00 ms bound=0.123 gang=default/a",
        "└─ judge [r] 2.00 ms FAILED no lease",
        "   └─ record [r] 2.00 ms",
        "orphan [r] 2.00 ms",
    ]
