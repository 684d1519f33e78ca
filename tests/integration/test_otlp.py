"""Traces and metrics arrive at an OTLP receiver, by gRPC and by HTTP."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import grpc
import pytest
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2, metrics_service_pb2_grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc

from actors.configuration.settings import TelemetrySettings
from actors.observability.telemetry import STOP_S, start
from actors.observability.traces import SPAN_ATTEMPT, SPAN_CYCLE

Received = list[Any]


@pytest.fixture
def grpc_receiver() -> Iterator[tuple[str, Received]]:
    received: Received = []

    class Traces(trace_service_pb2_grpc.TraceServiceServicer):
        def Export(self, request: Any, context: Any) -> Any:  # noqa: N802, ARG002 - the generated interface's names
            received.append(request)
            return trace_service_pb2.ExportTraceServiceResponse()

    class Metrics(metrics_service_pb2_grpc.MetricsServiceServicer):
        def Export(self, request: Any, context: Any) -> Any:  # noqa: N802, ARG002 - the generated interface's names
            received.append(request)
            return metrics_service_pb2.ExportMetricsServiceResponse()

    server = grpc.server(ThreadPoolExecutor(2))
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(Traces(), server)
    metrics_service_pb2_grpc.add_MetricsServiceServicer_to_server(Metrics(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield f"http://127.0.0.1:{port}", received
    server.stop(None).wait()


@pytest.fixture
def http_receiver() -> Iterator[tuple[str, Received]]:
    received: Received = []
    kinds = {
        "/v1/traces": trace_service_pb2.ExportTraceServiceRequest,
        "/v1/metrics": metrics_service_pb2.ExportMetricsServiceRequest,
    }

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.append(kinds[self.path].FromString(body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}", received
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_a_cycle_of_two_processes_arrives_as_one_trace(request: pytest.FixtureRequest, protocol: Any) -> None:
    endpoint, received = request.getfixturevalue(f"{protocol}_receiver")
    settings = TelemetrySettings(protocol=protocol, endpoint=endpoint)
    dispatcher, searcher = start(settings, "dispatcher", fleet="f"), start(settings, "searcher", fleet="f")
    with dispatcher.span(SPAN_CYCLE), searcher.span(SPAN_ATTEMPT, dispatcher.carrier(), gang="default/a"):
        pass
    dispatcher.figures.cycle_s.record(1.0)
    dispatcher.stop()
    searcher.stop()
    spans = {
        span.name: (span.trace_id, resource.resource.attributes)
        for message in received
        for resource in getattr(message, "resource_spans", ())
        for scope in resource.scope_spans
        for span in scope.spans
    }
    assert set(spans) == {SPAN_CYCLE, SPAN_ATTEMPT}
    assert spans[SPAN_CYCLE][0] == spans[SPAN_ATTEMPT][0]
    assert "clearway-searcher" in str(spans[SPAN_ATTEMPT][1])
    metrics = [
        metric.name
        for message in received
        for resource in getattr(message, "resource_metrics", ())
        for scope in resource.scope_metrics
        for metric in scope.metrics
    ]
    assert "clearway.cycle.duration" in metrics


@pytest.mark.parametrize("protocol", ["grpc", "http"])
@pytest.mark.parametrize("listens", [True, False])
def test_a_collector_that_does_not_answer_holds_up_no_end(protocol: Any, listens: bool) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        if listens:  # and takes no connection
            silent.listen()
        telemetry = start(
            TelemetrySettings(protocol=protocol, endpoint=f"http://127.0.0.1:{silent.getsockname()[1]}"), "committer"
        )
        with telemetry.span(SPAN_CYCLE):
            telemetry.figures.cycle_s.record(1.0)
        began = time.monotonic()
        telemetry.stop()
        assert time.monotonic() - began < 4 * STOP_S


def test_the_console_is_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    telemetry = start(TelemetrySettings(exporter="console"), "searcher")
    with telemetry.span(SPAN_ATTEMPT):
        pass
    telemetry.stop()
    said = capsys.readouterr()
    assert said.out == ""
    assert f'"name": "{SPAN_ATTEMPT}"' in said.err
