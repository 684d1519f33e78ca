"""When cycles run: on news, and only where the plans may be recorded."""

from collections.abc import Callable
from typing import Any

from actors.contracts import SnapshotUpdate
from actors.search.dispatcher import Cycled
from actors.search.loop import CycleLoop
from actors.search.wakeup import WakeUp
from tests.support.assembly import Assembly, gang, rack_cluster


class Cycles:
    """A dispatcher that only notes what it was given, and closes the wake_up after the first."""

    def __init__(self, wake_up: WakeUp) -> None:
        self.wake_up, self.seen = wake_up, list[SnapshotUpdate]()

    def cycle(self, news: SnapshotUpdate) -> Cycled:
        self.seen.append(news)
        self.wake_up.close()
        return Cycled()

    def next_at(self, snapshot: object) -> None:
        del snapshot


def looped(leads: Callable[["CycleLoop"], bool]) -> tuple[list[SnapshotUpdate], list[Any]]:
    """What is cycled on and what was fetched, of news from two states; ``leads`` is asked before every cycle."""
    assembly = Assembly(rack_cluster())
    assembly.hear()
    older = assembly.ingest.snapshot
    assembly.say(assembly.fleet.submit(gang("big", 1, 8)))
    assembly.hear()
    states, fetched = {"older": older, "newer": assembly.ingest.snapshot}, []

    def fetch(reference: str) -> Any:
        fetched.append(reference)
        return states[reference]

    wake_up = WakeUp()
    cycles = Cycles(wake_up)
    loop = CycleLoop(cycles, wake_up, fetch, 0, lambda: leads(loop))  # type: ignore[arg-type] # what it is asked is there
    loop.hear("older", ({"traceparent": "a"},) * 50, older.revision)
    loop.run()
    return cycles.seen, fetched


def test_a_standby_runs_no_cycle_and_begins_with_the_newest_state_when_it_comes_to_lead() -> None:
    asked = 0

    def leads(loop: CycleLoop) -> bool:
        nonlocal asked
        asked += 1
        if asked == 2:
            loop.hear("newer", ({"traceparent": "b"},) * 50, 10**9)
        return asked == 3

    seen, fetched = looped(leads)
    assert fetched == ["newer"]
    assert len(seen) == 1
    assert len(seen[0].links) == 64


def test_a_standby_that_is_closed_ends_without_a_cycle() -> None:
    def leads(loop: CycleLoop) -> bool:
        loop._wake_up.close()
        return False

    assert looped(leads) == ([], [])
