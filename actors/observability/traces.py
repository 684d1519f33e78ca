"""Spans: their names, a span in progress, and finished spans as plain data."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, Final

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.trace import Span, StatusCode

log = logging.getLogger(__name__)

SPAN_CYCLE: Final = "cycle"
SPAN_INGEST: Final = "ingest"
SPAN_SEARCH_SPACE: Final = "search_space"
SPAN_ATTEMPT: Final = "attempt"
SPAN_JUDGE: Final = "judge"
SPAN_RECORD: Final = "record"
#: Events of the span that waits for searchers.
EVENT_LOST: Final = "searcher lost"
EVENT_LATE: Final = "searcher late"

AttributeValue = str | bool | int | float
#: A finished span as plain data: name, role, trace, span, parent (hex; parent may be None), start_ns, end_ns, ok,
#: reason, attributes, links (trace ids of what it was caused by).
SpanRecord = dict[str, Any]


class Work:
    """A span in progress."""

    __slots__ = ("_span",)

    def __init__(self, span: Span) -> None:
        self._span = span

    def set(self, **attributes: AttributeValue | Sequence[str] | None) -> None:
        """Add attributes; None is left out."""
        self._span.set_attributes({name: value for name, value in attributes.items() if value is not None})


class SpanShipper(SpanExporter):
    """Passes finished spans on as plain data, so that a program can show a cycle across its processes."""

    def __init__(self, role: str, ship: Callable[[list[SpanRecord]], object]) -> None:
        self._role, self._ship = role, ship

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Pass on a batch. If the shipper fails, the spans are lost and the work goes on."""
        try:
            self._ship([span_record(self._role, span) for span in spans])
        except Exception as refusal:  # noqa: BLE001 - telemetry must not stop what it watches; it is logged
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
