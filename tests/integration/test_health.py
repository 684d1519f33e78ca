"""Where health is served over HTTP. What it says of a service see `test_service` and `test_standby`."""

import socket
import struct
import threading

import pytest

from actors.observability.health_server import HealthRefused, HealthServer, Pages
from tests.integration.services import asked


def test_a_port_that_is_taken_is_refused_where_it_was_asked_for_and_left_where_it_was_not() -> None:
    pages = Pages(lambda: (True, {}), lambda: (True, {}), lambda: b"")
    first = HealthServer("127.0.0.1:0", pages)
    try:
        with pytest.raises(HealthRefused, match="cannot be served"):
            HealthServer(first.url.removeprefix("http://"), pages)
        second, third = HealthServer("auto", pages), HealthServer("auto", pages)
        assert second.url != third.url
        assert [asked(f"{one.url}/live")[0] for one in (second, third)] == [200, 200]
        second.close()
        third.close()
    finally:
        first.close()


def test_a_page_that_fails_is_answered_and_the_log_says_why(caplog: pytest.LogCaptureFixture) -> None:
    def failing() -> bytes:
        raise ValueError("no figures")

    server = HealthServer("127.0.0.1:0", Pages(lambda: (True, {}), lambda: (True, {}), failing))
    try:
        assert asked(f"{server.url}/metrics") == (503, "the answer failed; see the log\n")
    finally:
        server.close()
    assert "no figures" in caplog.text


def test_a_client_that_hangs_up_before_its_answer_leaves_no_traceback(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    wanted, gone = threading.Event(), threading.Event()

    def slow() -> bytes:
        wanted.set()
        gone.wait(10)
        return b"x" * (1 << 24)

    server = HealthServer("127.0.0.1:0", Pages(lambda: (True, {}), lambda: (True, {}), slow))
    try:
        with socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2])), timeout=10) as client:
            client.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            assert wanted.wait(10)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # it is reset at once
        (worker,) = (one for one in threading.enumerate() if "process_request_thread" in one.name)
        gone.set()
        worker.join(10)
        assert asked(f"{server.url}/live")[0] == 200
    finally:
        server.close()
    assert (capfd.readouterr().err, caplog.text) == ("", "")
