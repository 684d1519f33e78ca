"""Reasons are written with one call for all, and nobody waits for the broker meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace

from actors.broker.bus import STARVING, Entry
from actors.broker.memory_bus import MemoryBus
from actors.contracts import PendingReport
from actors.search.pending_reasons import kept_reasons, newest
from actors.search.reasons_writer import AGAIN_S, PLACES_EVERY_S, ReasonsWriter
from pipeline.cluster.arrays import NO_ROWS
from tests.support.assembly import Assembly, Clock, gang, rack_cluster


class SlowBus(MemoryBus):
    """Notes each call, and whether names could be changed while it was under way."""

    def __init__(self, names: threading.Lock) -> None:
        super().__init__()
        self.names, self.calls = names, list[tuple[str, int, bool]]()

    def publish_all(self, stream: str, entries: Sequence[Mapping[str, bytes]], *, cap: int | None = None) -> list[str]:
        self.calls.append(("publish", len(entries), self.names.locked()))
        return super().publish_all(stream, entries, cap=cap)

    def newest(self, stream: str, *, count: int = 1, before: str | None = None) -> list[Entry]:
        self.calls.append(("read", count, self.names.locked()))
        return super().newest(stream, count=count, before=before)


def reported() -> tuple[Assembly, list[PendingReport]]:
    """Thirty gangs that are too wide, and what the dispatcher reports of them."""
    reports: list[PendingReport] = []
    assembly = Assembly(rack_cluster())
    for at in range(30):
        assembly.submit(gang(f"wide{at}", 5, 8, topology={"required": "rack"}))
    assembly.dispatcher._tell = reports.append
    assembly.cycle()
    return assembly, reports


def test_many_reasons_are_one_call_for_which_no_name_waits() -> None:
    assembly, (report,) = reported()
    names = threading.Lock()
    bus = SlowBus(names)
    ReasonsWriter(bus, assembly.directory, now_s=assembly.clock).take(report, names)
    assert [kind for kind, _, _ in bus.calls] == ["read", "publish"]
    assert bus.calls[1][1] == len(list(newest(bus))) == 30
    assert not any(locked for _, _, locked in bus.calls)


def test_nothing_is_said_of_rows_without_names() -> None:
    assembly, (report,) = reported()
    bus = MemoryBus()
    ReasonsWriter(bus, assembly.directory, now_s=assembly.clock).take(replace(report, epoch=report.epoch + 1))
    assert bus.bounds(STARVING).added == 0


def test_why_there_was_no_plan_is_still_known_once_there_is_one() -> None:
    assembly, (report,) = reported()
    bus, said = MemoryBus(), {f"default/wide{at}" for at in range(30)}
    reasons = ReasonsWriter(bus, assembly.directory, now_s=assembly.clock)
    reasons.take(report)
    nothing = replace(report, starving=(), unplaced=(), unscheduled=report.unscheduled.only(NO_ROWS))
    reasons.take(nothing)
    assert not any(one.reasons for one in newest(bus))
    assert {one.podgroup for one in kept_reasons(bus) if one.attempts} == said


def test_places_and_reasons_are_written_again_although_the_clock_was_put_back() -> None:
    assembly, (report,) = reported()
    bus, elapsed = MemoryBus(), Clock(0.0)
    reasons = ReasonsWriter(bus, assembly.directory, now_s=assembly.clock, elapsed_s=elapsed)
    reasons.take(report)
    assembly.clock.now -= 3_600.0
    elapsed.now += PLACES_EVERY_S
    changed = replace(report, starving=report.starving[::-1], unplaced=(), unscheduled=report.unscheduled.only(NO_ROWS))
    reasons.take(changed)
    assert {one.podgroup: one.place for one in newest(bus)}["default/wide0"] == (30, 30)
    before = bus.bounds(STARVING).added
    elapsed.now += AGAIN_S
    reasons.take(report)
    assert bus.bounds(STARVING).added == before + 30


def test_an_explanation_that_changes_is_written_again_but_the_more_seldom_the_more_wait() -> None:
    assembly, (report,) = reported()
    bus = MemoryBus()
    reasons = ReasonsWriter(bus, assembly.directory, now_s=assembly.clock)
    reasons.take(report)

    def told(seconds: float, minimum: int) -> int:
        """How many entries are written if, so much later, the searches fail for as many tasks."""
        assembly.clock.now += seconds
        before = bus.bounds(STARVING).added
        some = [replace(one, why=replace(one.why, minimum=minimum)) for one in report.unplaced]
        reasons.take(replace(report, unplaced=tuple(some)))
        return bus.bounds(STARVING).added - before

    assert [told(8.0, 5), told(0.0, 6), told(1.0, 7), told(7.0, 7)] == [0, 30, 0, 30]
    assert {attempt["minimum"] for one in newest(bus) for attempt in one.attempts} == {7}
