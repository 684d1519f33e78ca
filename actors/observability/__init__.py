"""Traces, figures, logs and health pages; the only folder that knows OpenTelemetry."""
