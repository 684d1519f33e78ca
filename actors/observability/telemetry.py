"""The telemetry of one role of one process: spans and metrics together.

Nothing is global: a process builds one `Telemetry` per role and passes it on, so tests and several roles in one process
do not mix. Trace context crosses processes as a carrier, a plain dictionary in W3C form, never by Ray's own hook (it
breaks streaming methods).
"""

from __future__ import annotations

import logging
import os
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from typing import Final
from uuid import uuid4

from opentelemetry.context import Context, attach, detach
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, MetricExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace import Link, get_current_span, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from actors.broker.bus import Outage
from actors.broker.retry import report_outage
from actors.configuration.settings import TelemetrySettings
from actors.observability.exporters import batched, exporters, periodic
from actors.observability.exposition import Exposed
from actors.observability.metrics import Figures
from actors.observability.traces import AttributeValue, SpanRecord, SpanShipper, Work

log = logging.getLogger(__name__)

#: Seconds that the end of a role waits for what takes its spans and metrics. A service ends within 3 s, and three waits
#: follow each other meanwhile; the library would wait for half a minute.
STOP_S: Final = 0.5


class Telemetry:
    """What one role of one process reports to.

    Attributes
    ----------
    figures
        The metric instruments.
    exposed
        What was recorded, read when it is asked for.
    """

    def __init__(
        self,
        role: str,
        traces: TracerProvider,
        metrics: MeterProvider,
        exposed: Exposed,
        processors: Sequence[SpanProcessor] = (),
        outlets: Sequence[SpanExporter | MetricExporter] = (),
    ) -> None:
        self._traces, self._metrics, self._processors, self._outlets = traces, metrics, processors, outlets
        self._tracer = traces.get_tracer("clearway")
        self._propagator = TraceContextTextMapPropagator()
        self.role, self.exposed = role, exposed
        self.figures = Figures(metrics.get_meter("clearway"))

    @contextmanager
    def span(
        self,
        name: str,
        carrier: Mapping[str, str] | None = None,
        links: Sequence[Mapping[str, str]] = (),
        **attributes: AttributeValue | Sequence[str] | None,
    ) -> Iterator[Work]:
        """A span around a block; an exception marks it failed and is raised further.

        Parameters
        ----------
        carrier
            Its parent, from another process. Absent or empty: the span around this one, or a new trace.
        links
            Carriers of its causes other than the parent, such as the events' own traces.
        """
        parent = self._propagator.extract(carrier) if carrier else None
        contexts = [get_current_span(self._propagator.extract(link, Context())).get_span_context() for link in links]
        known = {key: value for key, value in attributes.items() if value is not None}
        caused = [Link(context) for context in contexts if context.is_valid]
        # What ``start_as_current_span`` does, without its two generators: there are a dozen spans in each decision.
        with self._tracer.start_span(name, context=parent, links=caused, attributes=known) as span:
            token = attach(set_span_in_context(span))
            try:
                yield Work(span)
            finally:
                detach(token)

    def event(self, name: str, **attributes: AttributeValue) -> None:
        """Note on the current span that something happened now; nothing outside a span."""
        get_current_span().add_event(name, attributes)

    def carrier(self) -> dict[str, str]:
        """The context of the current span, for another process; empty outside a span."""
        carrier: dict[str, str] = {}
        self._propagator.inject(carrier)
        return carrier

    def flush(self) -> None:
        """Send waiting spans and metrics; called before an actor is stopped, since it may be killed right after."""
        self._traces.force_flush()
        self._metrics.force_flush()

    def stop(self, limit_s: float = STOP_S) -> None:
        """Send waiting spans and metrics, and end; what is not taken within ``limit_s`` seconds is lost."""
        ends = [one.shutdown for one in self._processors]
        threads = [threading.Thread(target=end, daemon=True) for end in (*ends, self._metrics.shutdown)]
        until = time.monotonic() + limit_s
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))
        if any(thread.is_alive() for thread in threads):
            log.warning("the last spans or metrics were not taken within %g s", limit_s)
            for outlet in self._outlets:  # it gives up its tries, so that no thread is left
                outlet.shutdown()


def start(
    settings: TelemetrySettings,
    role: str,
    *,
    fleet: str = "",
    ship: Callable[[list[SpanRecord]], object] | None = None,
    ship_at_once: bool = False,
    reader: InMemoryMetricReader | None = None,
) -> Telemetry:
    """The telemetry of a role.

    Parameters
    ----------
    ship
        Receives every finished span as plain data, in addition to the exporters.
    ship_at_once
        Each span when it ends, not in batches; for tests, which may end a role at any moment.
    reader
        For tests: collects metrics in memory.
    """
    resource = _resource(role, fleet)
    # Not at the interpreter's exit: that has no limit, and every role is stopped before.
    traces = TracerProvider(
        sampler=ParentBased(TraceIdRatioBased(settings.sample_ratio)), resource=resource, shutdown_on_exit=False
    )
    spans_to, metrics_to = exporters(settings)
    processors: list[SpanProcessor] = [] if spans_to is None else [batched(spans_to)]
    if ship is not None:
        shipper = SpanShipper(role, ship)
        processors.append(SimpleSpanProcessor(shipper) if ship_at_once else batched(shipper))
    for processor in processors:
        traces.add_span_processor(processor)
    exposed = Exposed()
    sent = periodic(metrics_to) if metrics_to is not None else None
    readers = [exposed.reader, *(found for found in (sent, reader) if found is not None)]
    metrics = MeterProvider(metric_readers=readers, resource=resource, shutdown_on_exit=False)
    outlets = [found for found in (spans_to, metrics_to) if found is not None]
    return Telemetry(role, traces, metrics, exposed, processors, outlets)


def _resource(role: str, fleet: str) -> Resource:
    """Who reports. Searchers are one service; each process of it, also of a standby, is an instance of its own."""
    return Resource.create(
        {
            "service.name": f"clearway-{re.sub(r'-[0-9]+$', '', role)}",
            "service.namespace": "clearway",
            "service.version": version("clearway"),
            "service.instance.id": str(uuid4()),
            "host.name": socket.gethostname(),
            "process.pid": os.getpid(),
            "clearway.role": role,
            "clearway.fleet": fleet,
        }
    )


def counting_outages(telemetry: Telemetry) -> Callable[[Outage], None]:
    """A listener for `retry.persist` that counts and logs outages."""

    def say(outage: Outage) -> None:
        telemetry.figures.broker_outages.add(1)
        report_outage(outage)

    return say
