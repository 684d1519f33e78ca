"""Traces and metrics: one trace a cycle across processes, and the figures an operator watches.

The only import of OpenTelemetry. Nothing is global: a process builds one `Telemetry` per role and hands it on, so tests
and several roles in one process do not mix. Trace context crosses processes as a carrier, a plain dictionary in W3C
form, never by Ray's own hook (it breaks streaming methods).
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from opentelemetry.context import Context
from opentelemetry.metrics import Counter, Histogram, Meter
from opentelemetry.metrics import _Gauge as Gauge
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import (
    ConsoleMetricExporter,
    InMemoryMetricReader,
    MetricReader,
    PeriodicExportingMetricReader,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor,
    ConsoleSpanExporter,
    SimpleSpanProcessor,
    SpanExporter,
    SpanExportResult,
)
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace import Link, Span, Status, StatusCode, get_current_span
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from actors.broker.bus import Outage
from actors.broker.retry import report_outage
from actors.configuration.settings import TelemetrySettings

log = logging.getLogger(__name__)

SPAN_CYCLE: Final = "cycle"
SPAN_INGEST: Final = "ingest"
SPAN_STARVING: Final = "starving"
SPAN_SEARCH_SPACE: Final = "search_space"
SPAN_ATTEMPT: Final = "attempt"
SPAN_JUDGE: Final = "judge"
SPAN_RECORD: Final = "record"

# A burst of one cycle over thousands of domains must fit: what overflows the queue is dropped without a word.
_QUEUE_SPANS: Final = 16_384
# Ray ends workers without notice; what is older than this has left the process.
_DELAY_MS: Final = 1_000
_METRIC_PERIOD_MS: Final = 10_000

Value = str | bool | int | float
SpanRecord = dict[str, Any]
"""A finished span as plain data: name, role, trace, span, parent (hex; parent may be None), start_ns, end_ns, ok,
reason, attributes, links (trace ids of what it was caused by)."""


@dataclass(frozen=True, slots=True)
class Figures:
    """The instruments. Durations are milliseconds; attributes are named where a figure is split."""

    cycle_ms: Histogram
    attempt_ms: Histogram
    decision_ms: Histogram
    starving: Gauge
    verdicts: Counter  # verdict, reason
    evictions: Counter  # action
    evicted_tasks: Counter  # action
    gangs_broken: Counter
    gangs_placed: Counter
    lost_work: Counter
    evicted_to_requested: Gauge  # resource
    reservations_held: Gauge
    reservations_expired: Counter
    reservations_substituted: Counter
    victims_overdue: Counter
    domains_reserved: Gauge
    stream_lag: Gauge  # stream, group
    stream_lag_s: Gauge  # stream, group
    stream_unacknowledged: Gauge  # stream, group
    dead_letters: Counter  # stream
    broker_outages: Counter

    @classmethod
    def of(cls, meter: Meter) -> Figures:
        """Every instrument, made on a meter."""
        return cls(
            cycle_ms=meter.create_histogram("clearway.cycle.duration", "ms", "From news to verdicts"),
            attempt_ms=meter.create_histogram("clearway.attempt.duration", "ms", "One gang in one batch of domains"),
            decision_ms=meter.create_histogram("clearway.decision.duration", "ms", "From starving to recorded"),
            starving=meter.create_gauge("clearway.gangs.starving", "{gang}", "Gangs that cannot start"),
            verdicts=meter.create_counter("clearway.verdicts", "{plan}", "Plans by verdict and reason"),
            evictions=meter.create_counter("clearway.evictions", "{statement}", "Statements that evict, by action"),
            evicted_tasks=meter.create_counter("clearway.evictions.tasks", "{task}", "Tasks evicted, by action"),
            gangs_broken=meter.create_counter("clearway.gangs.broken", "{gang}", "Gangs that fell below their minimum"),
            gangs_placed=meter.create_counter("clearway.gangs.placed", "{gang}", "Gangs whose room was committed"),
            lost_work=meter.create_counter("clearway.work.lost", "s", "Work that evictions threw away"),
            evicted_to_requested=meter.create_gauge(
                "clearway.evictions.ratio", "1", "Evicted resources over requested ones"
            ),
            reservations_held=meter.create_gauge("clearway.reservations.held", "{plan}", "Plans whose room is held"),
            reservations_expired=meter.create_counter("clearway.reservations.expired", "{plan}", "Given up unbound"),
            reservations_substituted=meter.create_counter(
                "clearway.reservations.substituted", "{plan}", "Replaced because victims did not end"
            ),
            domains_reserved=meter.create_gauge("clearway.domains.reserved", "{domain}", "Kept for one gang"),
            victims_overdue=meter.create_counter("clearway.victims.overdue", "{task}", "Did not end by the deadline"),
            stream_lag=meter.create_gauge("clearway.stream.lag", "{entry}", "Entries a group has not read"),
            stream_lag_s=meter.create_gauge(
                "clearway.stream.lag.age", "s", "Age of the oldest entry that a group has not done with"
            ),
            stream_unacknowledged=meter.create_gauge(
                "clearway.stream.unacknowledged", "{entry}", "Entries that a group was handed and has not done with"
            ),
            dead_letters=meter.create_counter("clearway.dead_letters", "{message}", "Refused input"),
            broker_outages=meter.create_counter("clearway.broker.outages", "{try}", "Tries that found no broker"),
        )


def counting_outages(telemetry: Telemetry) -> Callable[[Outage], None]:
    """A listener for `patience.persist` that counts outages and says them."""

    def say(outage: Outage) -> None:
        telemetry.figures.broker_outages.add(1)
        report_outage(outage)

    return say


class Work:
    """A span in progress."""

    __slots__ = ("_span",)

    def __init__(self, span: Span) -> None:
        self._span = span

    def set(self, **attributes: Value | Sequence[str] | None) -> None:
        """Add attributes; None is left out."""
        for name, value in attributes.items():
            if value is not None:
                self._span.set_attribute(name, value)

    def fail(self, reason: str) -> None:
        """Mark it as failed. An outcome such as a conflict is no failure: that is an attribute."""
        self._span.set_status(Status(StatusCode.ERROR, reason))


class Telemetry:
    """What one role of one process reports to.

    Attributes
    ----------
    figures
        The metric instruments.
    """

    def __init__(self, role: str, traces: TracerProvider, metrics: MeterProvider) -> None:
        self._traces, self._metrics = traces, metrics
        self._tracer = traces.get_tracer("clearway")
        self._propagator = TraceContextTextMapPropagator()
        self.role = role
        self.figures = Figures.of(metrics.get_meter("clearway"))

    @contextmanager
    def span(
        self,
        name: str,
        carrier: Mapping[str, str] | None = None,
        links: Sequence[Mapping[str, str]] = (),
        **attributes: Value | Sequence[str] | None,
    ) -> Iterator[Work]:
        """A span around a block; an exception marks it failed and goes on.

        Parameters
        ----------
        carrier
            Its parent, from another process. Absent or empty: the span around this one, or a new trace.
        links
            Carriers of what caused it without being its parent, such as the events' own traces.
        """
        parent = self._propagator.extract(carrier) if carrier else None
        contexts = [get_current_span(self._propagator.extract(link, Context())).get_span_context() for link in links]
        known = {key: value for key, value in attributes.items() if value is not None}
        with self._tracer.start_as_current_span(
            name, context=parent, links=[Link(context) for context in contexts if context.is_valid], attributes=known
        ) as span:
            yield Work(span)

    def carrier(self) -> dict[str, str]:
        """The context of the current span, for another process; empty outside of any."""
        carrier: dict[str, str] = {}
        self._propagator.inject(carrier)
        return carrier

    def flush(self) -> None:
        """Send what is waiting; before an actor is stopped, for it may be killed right after."""
        self._traces.force_flush()
        self._metrics.force_flush()

    def stop(self) -> None:
        """Send what is waiting and end."""
        self._traces.shutdown()
        self._metrics.shutdown()


class SpanShipper(SpanExporter):
    """Hands finished spans on as plain data, so that a program can show a cycle of all its processes."""

    def __init__(self, role: str, ship: Callable[[list[SpanRecord]], object]) -> None:
        self._role, self._ship = role, ship

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Hand on a batch; a shipper that fails costs its spans, never the work they describe."""
        try:
            self._ship([span_record(self._role, span) for span in spans])
        except Exception as refusal:  # noqa: BLE001 - telemetry must not stop what it watches; it is said
            log.warning("%d spans were not shipped: %s", len(spans), refusal)
            return SpanExportResult.FAILURE
        return SpanExportResult.SUCCESS


def span_record(role: str, span: ReadableSpan) -> SpanRecord:
    """A finished span as plain data."""
    context, parent = span.get_span_context(), span.parent
    return {
        "name": span.name, "role": role, "trace": f"{context.trace_id:032x}" if context else "",
        "span": f"{context.span_id:016x}" if context else "", "parent": f"{parent.span_id:016x}" if parent else None,
        "start_ns": span.start_time or 0, "end_ns": span.end_time or 0,
        "ok": span.status.status_code is not StatusCode.ERROR, "reason": span.status.description or "",
        "attributes": {key: list(value) if isinstance(value, tuple) else value
                       for key, value in (span.attributes or {}).items()},
        "links": [f"{link.context.trace_id:032x}" for link in span.links],
    }  # fmt: skip


def start(
    settings: TelemetrySettings,
    role: str,
    *,
    fleet: str = "",
    ship: Callable[[list[SpanRecord]], object] | None = None,
    ship_at_once: bool = False,
    reader: InMemoryMetricReader | None = None,
) -> Telemetry:
    """Build what a role reports to.

    Parameters
    ----------
    ship
        Given every finished span as plain data, besides what the settings export to.
    ship_at_once
        When the span ends instead of in batches; for tests, whose role ends at any moment.
    reader
        For tests: collects metrics in memory.
    """
    resource = Resource.create(
        {"service.name": f"clearway-{role}", "service.namespace": "clearway", "clearway.fleet": fleet}
    )
    traces = TracerProvider(
        sampler=ParentBased(TraceIdRatioBased(settings.sample_ratio)), resource=resource, shutdown_on_exit=True
    )
    exporter, metric_reader = _exporters(settings)
    if exporter is not None:
        traces.add_span_processor(_batched(exporter))
    if ship is not None:
        shipper = SpanShipper(role, ship)
        traces.add_span_processor(SimpleSpanProcessor(shipper) if ship_at_once else _batched(shipper))
    readers = [found for found in (metric_reader, reader) if found is not None]
    return Telemetry(role, traces, MeterProvider(metric_readers=readers, resource=resource))


def _batched(exporter: SpanExporter) -> BatchSpanProcessor:
    return BatchSpanProcessor(exporter, max_queue_size=_QUEUE_SPANS, schedule_delay_millis=_DELAY_MS)


def _exporters(settings: TelemetrySettings) -> tuple[SpanExporter | None, MetricReader | None]:
    """Where spans and metrics go. The wire exporters are imported only when used: they are slow to load."""
    chosen = settings.chosen_exporter
    if chosen == "none":
        return None, None
    if chosen == "console":  # to standard error: standard output belongs to results
        return ConsoleSpanExporter(out=sys.stderr), _periodic(ConsoleMetricExporter(out=sys.stderr))
    endpoint = settings.endpoint
    if settings.protocol == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter as GrpcMetrics
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcSpans

        secure = endpoint is not None and endpoint.startswith("https:")
        return (
            GrpcSpans(endpoint=endpoint, insecure=not secure),
            _periodic(GrpcMetrics(endpoint=endpoint, insecure=not secure)),
        )
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter as HttpMetrics
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpSpans

    base = endpoint.rstrip("/") if endpoint is not None else None
    return (
        HttpSpans(endpoint=f"{base}/v1/traces" if base else None),
        _periodic(HttpMetrics(endpoint=f"{base}/v1/metrics" if base else None)),
    )


def _periodic(exporter: Any) -> MetricReader:
    return PeriodicExportingMetricReader(exporter, export_interval_millis=_METRIC_PERIOD_MS)
