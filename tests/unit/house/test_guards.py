"""The guards of ``conftest`` are themselves tested: each must fail a test that does what it forbids."""

import socket
import sys
import time
from types import ModuleType

import pytest


def core_module(source: str) -> ModuleType:
    """A module that believes it is part of the core."""
    module = ModuleType("pipeline.invented")
    exec(compile(source, "invented.py", "exec"), module.__dict__)
    return module


def test_a_core_that_reads_a_clock_fails_the_test() -> None:
    module = core_module("import time\ndef now(): return time.monotonic()")
    with pytest.raises(pytest.fail.Exception, match=r"pipeline\.invented asked time\.monotonic"):
        module.now()


def test_others_may_read_the_clock() -> None:
    assert time.monotonic() > 0


def test_a_pure_test_opens_no_socket() -> None:
    with socket.socket() as mine, pytest.raises(pytest.fail.Exception, match="reached for the network"):
        mine.connect(("127.0.0.1", 9))


def test_a_pure_test_asks_no_name_server() -> None:
    with pytest.raises(pytest.fail.Exception, match="reached for the network"):
        socket.getaddrinfo("localhost", 80)


def test_a_pure_test_does_not_import_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "ray", raising=False)
    with pytest.raises(pytest.fail.Exception, match="imported Ray"):
        import ray  # noqa: F401  the import is the point
