"""Which decisions are fulfilled: each is written once, and no more are remembered than are kept."""

import pytest

from actors.broker.bus import FULFILLED
from actors.broker.memory_bus import MemoryBus
from actors.protocol import outcomes
from actors.protocol.outcomes import Fulfilled, Reports, fulfilled


def write(reports: Reports, *plans: str) -> None:
    reports.write(Fulfilled(plan_id=plan, decision=at, at=float(at)) for at, plan in enumerate(plans, 1))


def test_a_decision_is_written_once_by_whichever_committer_leads() -> None:
    bus = MemoryBus()
    first = Reports(bus)
    write(first, "a", "b", "a")
    write(Reports(bus), "b", "c")
    assert list(fulfilled(bus)) == ["c", "b", "a"]
    assert bus.bounds(FULFILLED).added == 3


def test_what_the_stream_keeps_no_longer_is_not_remembered_either(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcomes, "KEPT", 2)
    bus = MemoryBus()
    write(Reports(bus), "a", "b")
    successor = Reports(bus)
    write(successor, "b", "c")
    write(successor, "b", "c")
    assert bus.bounds(FULFILLED).added == 3
    write(successor, "a")
    assert (bus.bounds(FULFILLED).added, list(fulfilled(bus))) == (4, ["a", "c"])
