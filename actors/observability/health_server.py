"""Answers over HTTP: whether the service lives, whether it does its work, and its figures.

The standard library's server is enough: three pages, asked for every few seconds by machines of the same network.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from actors.observability.exposition import CONTENT_TYPE

log = logging.getLogger(__name__)

#: Where health is served unless the settings name a place; at another port if this one is taken.
DEFAULT = ("127.0.0.1", 9464)
_OK, _NOT_FOUND, _UNAVAILABLE = 200, 404, 503


class HealthRefused(Exception):
    """Health cannot be served where it was asked for."""


@dataclass(frozen=True, slots=True)
class Pages:
    """What is answered.

    Attributes
    ----------
    live, ready
        Whether the service lives, and whether it does its work; each with details as plain data.
    metrics
        All figures, in Prometheus' format.
    """

    live: Callable[[], tuple[bool, Mapping[str, Any]]]
    ready: Callable[[], tuple[bool, Mapping[str, Any]]]
    metrics: Callable[[], bytes]

    def answer(self, path: str) -> tuple[int, str, bytes]:
        """Status, type of content, and content."""
        if path == "/metrics":
            return _OK, CONTENT_TYPE, self.metrics()
        asked = {"/live": self.live, "/ready": self.ready}.get(path)
        if asked is None:
            return _NOT_FOUND, "text/plain; charset=utf-8", b"expected /live, /ready or /metrics\n"
        good, said = asked()
        return _OK if good else _UNAVAILABLE, "application/json", json.dumps(said).encode() + b"\n"


class HealthServer:
    """Serves pages until it is closed.

    Parameters
    ----------
    where
        ``host:port``, ``auto`` (this machine alone, at the usual port or at another free one), or ``off``.

    Raises
    ------
    HealthRefused
        If nothing can be served at the host and port that were asked for.
    """

    def __init__(self, where: str, pages: Pages) -> None:
        self._server = None if where == "off" else _listening(where, pages)
        if self._server is not None:
            threading.Thread(target=self._server.serve_forever, name="health", daemon=True).start()
            log.info("health at %s/ready, figures at %s/metrics", self.url, self.url)

    @property
    def url(self) -> str:
        """Where it answers; empty if it does not."""
        if self._server is None:
            return ""
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}"

    def close(self) -> None:
        """Answer no more."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()


def _listening(where: str, pages: Pages) -> ThreadingHTTPServer:
    host, _, port = where.rpartition(":")
    wanted = [DEFAULT, (DEFAULT[0], 0)] if where == "auto" else [(host, int(port))]
    for at in wanted:
        try:
            return _Server(at, pages)
        except (OSError, OverflowError) as refusal:
            if at is wanted[-1]:
                raise HealthRefused(f"health: {where} cannot be served: {refusal}") from refusal
    raise AssertionError("there is always a place that is wanted")


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, at: tuple[str, int], pages: Pages) -> None:
        self.pages = pages
        super().__init__(at, _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """Log why a request was not answered; that its client has hung up is no matter of ours."""
        del request
        failure = sys.exception()
        if not isinstance(failure, OSError):
            log.error("a request of %s for health was not answered", client_address, exc_info=failure)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    server_version = "clearway"
    timeout = 10

    def do_GET(self) -> None:
        try:
            status, kind, content = self.server.pages.answer(self.path.partition("?")[0])
        except Exception:  # the answer is that there is none; the log says why
            log.exception("a health page failed")
            status, kind, content = _UNAVAILABLE, "text/plain; charset=utf-8", b"the answer failed; see the log\n"
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Requests are not logged."""
