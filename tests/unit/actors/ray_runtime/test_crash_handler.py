"""Ray's handler for crashes is set before ours, whatever Ray that is."""

import logging
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from actors.ray_runtime import cluster


@pytest.fixture
def ours() -> Iterator[object]:
    before = signal.getsignal(signal.SIGTERM)

    def handler(*_: object) -> None:
        return

    signal.signal(signal.SIGTERM, handler)
    yield handler
    signal.signal(signal.SIGTERM, before)


def test_our_handler_stays_where_ray_is_not_known(
    ours: object, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(cluster, "_CRASH_HANDLER", "of_another_ray")
    with caplog.at_level(logging.WARNING):
        cluster._set_crash_handler()
    assert "this Ray is not known" in caplog.text
    assert signal.getsignal(signal.SIGTERM) is ours


def test_another_thread_sets_no_handler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster.ctypes, "CDLL", None)  # a call would fail
    with ThreadPoolExecutor(1) as other:
        other.submit(cluster._set_crash_handler).result()
