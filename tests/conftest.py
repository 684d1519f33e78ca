"""What holds for every test: pure tests stay pure, and a generated example is the same one everywhere.

Tests under ``unit`` and ``property`` may not open a socket, touch Ray, or let the core read a clock. The import rules
say so of the sources; the guards here catch what reaches a socket or a clock by way of something imported.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.__main__ import COMPUTING, REAL_ONLY, SERVICES_ONLY

PURE = frozenset({"unit", "property"})
REAL = ("integration", "chaos/test_real.py")
#: Those that start one service after another, which takes as long as all other real tests: `make services` runs them.
SERVICES = (
    "test_standby.py", "test_ending.py", "test_raylets.py", "test_hostile_broker.py", "test_compose_native.py",
    "test_ending_early.py",
)  # fmt: skip
#: Those that take longest. They begin first, the longest first, so that no process is left alone with one of them.
LONGEST = (*SERVICES, "test_service.py", "test_real.py", "test_check_connector.py", "test_warm.py")
# Not `socket.bind`: urllib3 binds one while it is imported, to learn whether the machine speaks IPv6.
NETWORK_EVENTS = frozenset({"socket.connect", "socket.getaddrinfo", "socket.sendto"})
CLOCKS = (
    "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "process_time", "process_time_ns", "sleep", "time",
    "time_ns",
)  # fmt: skip

# `make test` takes a sample, and `make properties` takes all; see also `tests/support/depth.py`. How long examples take
# to be made says how busy the machine is, and nothing of what is tested.
settings.register_profile(
    "house", derandomize=True, deadline=None, print_blob=True, max_examples=25,
    suppress_health_check=[HealthCheck.too_slow],
)  # fmt: skip
settings.register_profile("deep", parent=settings.get_profile("house"), max_examples=100)
settings.register_profile("wide", parent=settings.get_profile("house"), derandomize=False, max_examples=2_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "house"))


class Guard:
    """The audit hook of this process. A hook cannot be taken back, so it is armed for the length of a pure test."""

    def __init__(self) -> None:
        self.armed = False
        sys.addaudithook(self.hear)

    def hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Fail the running test over what only an impure test may do."""
        if not self.armed:
            return
        if event in NETWORK_EVENTS:
            pytest.fail(f"a pure test reached for the network: {event}{arguments[1:]}")
        if event == "import" and arguments[0] == "ray":
            pytest.fail("a pure test imported Ray")


GUARD = Guard()


def guarded(name: str, clock: Callable[..., Any]) -> Callable[..., Any]:
    """The same clock, which fails the test when the core asks it."""

    def ask(*arguments: Any) -> Any:
        caller = str(sys._getframe(1).f_globals.get("__name__", ""))
        if caller.partition(".")[0] == "pipeline":
            pytest.fail(f"{caller} asked time.{name}: the core is told the time, it does not look")
        return clock(*arguments)

    return ask


def is_real(path: Path) -> bool:
    """Whether a file's tests start brokers or Ray, see `tests/__main__.py`."""
    return path.relative_to(Path(__file__).parent).as_posix().startswith(REAL)


def markers_of(path: Path) -> set[str]:
    """The markers of a file's tests."""
    return {"real", *(["services"] if path.name in SERVICES else [])} if is_real(path) else set()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no file of which a marker that `tests/__main__.py` asks for leaves nothing."""
    kept = {COMPUTING: set[str](), REAL_ONLY: {"real"}, SERVICES_ONLY: {"real", "services"}}
    asked = kept.get(config.option.markexpr)
    return True if asked is not None and collection_path.is_file() and markers_of(collection_path) != asked else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what starts brokers or Ray or one service after another, and let what takes longest begin."""
    rank = {name: at for at, name in enumerate(LONGEST)}
    items.sort(key=lambda item: rank.get(item.path.name, len(rank)))
    for item in items:
        for marker in sorted(markers_of(item.path)):
            item.add_marker(marker)


@pytest.fixture(autouse=True)
def purity(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No socket, no Ray and no clock in the tests under `PURE`."""
    here = Path(request.path).relative_to(Path(__file__).parent).parts[0]
    if here not in PURE:
        yield
        return
    for name in CLOCKS:
        monkeypatch.setattr(time, name, guarded(name, getattr(time, name)))
    if "ray" in sys.modules:
        monkeypatch.setattr("ray.init", lambda *_, **__: pytest.fail("a pure test started Ray"))
    GUARD.armed = True
    yield
    GUARD.armed = False
