"""What gauges say."""

from opentelemetry.sdk.metrics.export import InMemoryMetricReader


def figure(reader: InMemoryMetricReader, name: str) -> float:
    """The newest value of the gauge ``name``, of its first series."""
    data = reader.get_metrics_data()
    assert data is not None
    found = [
        metric.data.data_points[0].value
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
        if metric.name == name
    ]
    return float(found[0])
