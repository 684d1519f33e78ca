"""What was measured."""

from typing import Any

from opentelemetry.sdk.metrics.export import InMemoryMetricReader


def recorded(reader: InMemoryMetricReader) -> dict[str, dict[str, Any]]:
    """Figure to value by what it is split by; histograms are counted."""
    data = reader.get_metrics_data()
    assert data is not None
    return {
        metric.name: {
            ",".join(map(str, (point.attributes or {}).values())): getattr(
                point, "value", getattr(point, "count", None)
            )
            for point in metric.data.data_points
        }
        for metric in data.resource_metrics[0].scope_metrics[0].metrics
    }


def figure(reader: InMemoryMetricReader, name: str) -> float:
    """The newest value of the gauge ``name``, of its first series."""
    return float(next(iter(recorded(reader)[name].values())))
