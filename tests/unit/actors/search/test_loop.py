"""When cycles run: on news, and only where the plans may be recorded."""

import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from actors.contracts import SnapshotUpdate, TurnTold
from actors.search import loop as loops
from actors.search.dispatcher import Cycled
from actors.search.loop import CycleLoop
from actors.search.wakeup import WakeUp
from tests.support.assembly import Assembly, gang, rack_cluster


class Cycles:
    """A dispatcher that only notes what it was given, and closes the wake_up after the first."""

    def __init__(self, wake_up: WakeUp) -> None:
        self.wake_up, self.seen, self.stood_by = wake_up, list[SnapshotUpdate](), 0

    def cycle(self, news: SnapshotUpdate) -> Cycled:
        self.seen.append(news)
        self.wake_up.close()
        return Cycled()

    def stand_by(self) -> None:
        self.stood_by += 1

    def next_at(self, snapshot: object) -> None:
        del snapshot


def looped(leads: Callable[["CycleLoop"], bool]) -> tuple[list[SnapshotUpdate], list[Any]]:
    """What is cycled on and what was fetched, of news from two states; ``leads`` is asked before every cycle."""
    assembly = Assembly(rack_cluster())
    assembly.hear()
    older = assembly.ingest.snapshot
    assembly.submit(gang("big", 1, 8))
    assembly.hear()
    states, fetched = {"older": older, "newer": assembly.ingest.snapshot}, []

    def fetch(reference: str) -> Any:
        fetched.append(reference)
        return states[reference]

    wake_up = WakeUp()
    cycles = Cycles(wake_up)
    loop = CycleLoop(cycles, wake_up, fetch, 0, lambda: leads(loop))  # type: ignore[arg-type] # what it is asked is there
    loop.hear("older", older.revision, TurnTold(({"traceparent": "a"},) * 50))
    loop.run()
    return cycles.seen, fetched


def test_a_standby_runs_no_cycle_but_keeps_up_and_begins_with_the_newest_state_when_it_comes_to_lead() -> None:
    asked = 0

    def leads(loop: CycleLoop) -> bool:
        nonlocal asked
        asked += 1
        if asked == 2:
            loop.hear("newer", 10**9, TurnTold(({"traceparent": "b"},) * 50))
        assert loop._dispatcher.stood_by == asked - 1
        return asked == 3

    seen, fetched = looped(leads)
    assert fetched == ["older", "newer", "newer"]
    assert len(seen) == 1
    assert len(seen[0].turn.links) == 64


def test_a_standby_that_is_closed_ends_without_a_cycle() -> None:
    def leads(loop: CycleLoop) -> bool:
        loop._wake_up.close()
        return False

    assert looped(leads) == ([], [])


class Scripted:
    """A dispatcher whose cycles end as they are told, and that closes the wake-up with its last."""

    def __init__(self, wake_up: WakeUp, *results: Cycled) -> None:
        self.wake_up, self.results, self.seen = wake_up, list(results), list[Any]()
        self.meanwhile: Callable[[], object] = lambda: None

    def cycle(self, news: SnapshotUpdate) -> Cycled:
        self.seen.append(news.snapshot)
        result = self.results.pop(0)
        self.meanwhile()
        if not self.results:
            self.wake_up.close()
        return result

    def next_at(self, snapshot: object) -> None:
        del snapshot


def scripted(*results: Cycled) -> tuple[Scripted, CycleLoop, dict[str, Any], list[str]]:
    """A loop over snapshots by reference; it is closed after some seconds, whatever happens."""
    wake_up, states, fetched = WakeUp(), dict[str, Any](), list[str]()
    dispatcher = Scripted(wake_up, *results)

    def fetch(reference: str) -> Any:
        fetched.append(reference)
        found = states[reference]
        return found() if callable(found) else found

    loop = CycleLoop(dispatcher, wake_up, fetch, 0)  # type: ignore[arg-type] # what it is asked is there
    guard = threading.Timer(5.0, wake_up.close)
    guard.daemon = True
    guard.start()
    return dispatcher, loop, states, fetched


def test_a_cycle_waits_for_a_snapshot_with_the_decisions_of_the_one_before() -> None:
    dispatcher, loop, states, fetched = scripted(Cycled(sequence=1), Cycled())

    def lacks() -> Any:
        loop.hear("has", 3)
        return SimpleNamespace(decided=0)

    states |= {"first": SimpleNamespace(decided=0), "lacks": lacks, "has": SimpleNamespace(decided=1)}
    dispatcher.meanwhile = lambda: loop.hear("lacks", 2)
    loop.hear("first", 1)
    loop.run()
    assert fetched == ["first", "lacks", "has"]
    assert dispatcher.seen == [states["first"], states["has"]]


def test_a_cycle_does_not_wait_without_end_for_decisions_that_the_broker_has_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loops, "FOLDED_WITHIN_S", 0.05)
    dispatcher, loop, states, fetched = scripted(Cycled(sequence=7), Cycled(sequence=8), Cycled())
    states |= {"first": SimpleNamespace(decided=6), "older": SimpleNamespace(decided=4)}
    dispatcher.meanwhile = lambda: loop.hear("older", 1)
    loop.hear("first", 2)
    loop.run()
    assert fetched[:2] == ["first", "older"]
    assert dispatcher.seen == [states["first"], states["older"], states["older"]]


def test_a_snapshot_that_was_lost_is_fetched_when_it_is_told_again() -> None:
    dispatcher, loop, states, fetched = scripted(Cycled())
    states |= {"lost": lambda: None, "again": SimpleNamespace(decided=0)}
    loop.hear("lost", 1)
    threading.Timer(0.2, loop.hear, ("again", 1)).start()
    loop.run()
    assert fetched == ["lost", "again"]
    assert dispatcher.seen == [states["again"]]


def test_what_was_not_judged_is_tried_again_without_news() -> None:
    dispatcher, loop, states, fetched = scripted(Cycled(again=True), Cycled())
    states["only"] = SimpleNamespace(decided=0)
    loop.hear("only", 1)
    loop.run()
    assert fetched == ["only"]
    assert len(dispatcher.seen) == 2


def test_who_tells_the_news_may_wait_until_the_cycle_on_it_is_over() -> None:
    dispatcher, loop, states, _ = scripted(Cycled())
    states["only"] = SimpleNamespace(decided=0)
    begun, ends, over = threading.Event(), threading.Event(), threading.Event()
    dispatcher.meanwhile = lambda: (begun.set(), ends.wait(5.0))
    cycles = threading.Thread(target=loop.run)
    cycles.start()
    loop.hear("only", 1)
    waits = threading.Thread(target=lambda: (loop.await_end(5.0), over.set()))
    waits.start()
    assert begun.wait(5.0)
    assert not over.wait(0.1)
    ends.set()
    assert over.wait(5.0)
    for one in (waits, cycles):
        one.join(5.0)


def test_a_cycle_that_takes_long_is_not_waited_for_any_longer() -> None:
    dispatcher, loop, states, _ = scripted(Cycled())
    states["only"] = SimpleNamespace(decided=0)
    begun, ends = threading.Event(), threading.Event()
    dispatcher.meanwhile = lambda: (begun.set(), ends.wait(5.0))
    cycles = threading.Thread(target=loop.run)
    cycles.start()
    loop.hear("only", 1)
    assert begun.wait(5.0)
    loop.await_end(0.01)
    assert not ends.is_set()
    ends.set()
    cycles.join(5.0)


def test_news_that_no_loop_takes_is_not_waited_for() -> None:
    _, loop, _, fetched = scripted()
    loop.hear("only", 1)
    loop.await_end(5.0)
    assert fetched == []


def test_how_long_a_cycle_has_run_is_known_while_it_runs_and_only_then() -> None:
    assembly = Assembly(rack_cluster())
    assembly.hear()
    snapshot, wake_up, during = assembly.ingest.snapshot, WakeUp(), list[float]()

    class Watched(Cycles):
        def cycle(self, news: SnapshotUpdate) -> Cycled:
            during.append(loop.cycling_s)
            return super().cycle(news)

    loop = CycleLoop(Watched(wake_up), wake_up, lambda _: snapshot, 0)  # type: ignore[arg-type] # as above
    assert loop.cycling_s == 0.0
    loop.hear("state", snapshot.revision)
    loop.run()
    assert len(during) == 1
    assert during[0] > 0.0
    assert loop.cycling_s == 0.0
