"""Where spans and metrics go: to a collector, to the console, or nowhere."""

from __future__ import annotations

import sys
from typing import Final

from opentelemetry.sdk.metrics.export import ConsoleMetricExporter, MetricExporter, PeriodicExportingMetricReader
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SpanExporter

from actors.configuration.settings import TelemetrySettings

# The spans of one cycle over thousands of domains must fit: the queue drops what overflows, silently.
_QUEUE_SPANS: Final = 16_384
# Ray ends workers without notice; spans older than this have left the process.
_DELAY_MS: Final = 1_000
_METRIC_PERIOD_MS: Final = 10_000


def batched(exporter: SpanExporter) -> BatchSpanProcessor:
    """A processor that sends finished spans in batches."""
    return BatchSpanProcessor(exporter, max_queue_size=_QUEUE_SPANS, schedule_delay_millis=_DELAY_MS)


def periodic(exporter: MetricExporter) -> PeriodicExportingMetricReader:
    """A reader that sends metrics from time to time."""
    return PeriodicExportingMetricReader(exporter, export_interval_millis=_METRIC_PERIOD_MS)


def exporters(settings: TelemetrySettings) -> tuple[SpanExporter | None, MetricExporter | None]:
    """Exporters of spans and metrics. Those for the wire are imported only when used: they are slow to load."""
    chosen = settings.chosen_exporter
    if chosen == "none":
        return None, None
    if chosen == "console":  # to standard error: standard output belongs to results
        return ConsoleSpanExporter(out=sys.stderr), ConsoleMetricExporter(out=sys.stderr)
    endpoint = settings.endpoint
    if settings.protocol == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter as GrpcMetrics
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcSpans

        secure = endpoint is not None and endpoint.startswith("https:")
        return GrpcSpans(endpoint=endpoint, insecure=not secure), GrpcMetrics(endpoint=endpoint, insecure=not secure)
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter as HttpMetrics
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpSpans

    base = endpoint.rstrip("/") if endpoint is not None else None
    return (
        HttpSpans(endpoint=f"{base}/v1/traces" if base else None),
        HttpMetrics(endpoint=f"{base}/v1/metrics" if base else None),
    )
