"""Traces and figures; the only folder that knows OpenTelemetry."""
