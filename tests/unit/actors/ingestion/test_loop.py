"""Who is told of news, and when: the dispatcher between its cycles, the committer a few times a second meanwhile."""

from __future__ import annotations

from collections.abc import Mapping

from actors.broker.bus import EVENTS
from actors.contracts import TurnTold
from actors.ingestion.loop import GATHER_S, REPEAT_S
from actors.protocol.envelopes import pack
from tests.support.assembly import Assembly, gang, rack_cluster


class Told(Assembly):
    """An ingestor, and a dispatcher that is busy or not."""

    def __init__(self) -> None:
        super().__init__(rack_cluster())
        self.busy, self._arrived = False, 0
        assert self.turn_once() is not None

    def arrive(self, carrier: Mapping[str, str] | None = None, **fields: object) -> None:
        """A gang arrives, as a part of a trace, in an entry with these fields."""
        self._arrived += 1
        more = {name: str(said).encode() for name, said in fields.items()}
        for entry in pack(self.fleet.submit(gang(f"gang-{self._arrived}", 1, 8)), carrier):
            self.bus.publish(EVENTS, {**entry, **more})

    def turn_once(self) -> TurnTold | None:
        """What one turn of the ingestor tells."""
        return self.ingest.turn(0, lambda: self.busy)

    def groups(self, news: TurnTold | None) -> int:
        """How many podgroups an update that the dispatcher gets has."""
        assert news is not None
        assert news.for_cycles
        return len(self.ingest.snapshot.podgroups)


def test_news_is_told_at_once_while_the_dispatcher_waits() -> None:
    told = Told()
    told.arrive()
    assert told.groups(told.turn_once()) == 1
    assert told.turn_once() is None


def test_news_gathers_while_a_cycle_runs_and_is_told_together_at_its_end() -> None:
    told = Told()
    told.busy = True
    for _ in range(3):
        told.arrive()
        assert told.turn_once() is None
    told.busy = False
    assert told.groups(told.turn_once()) == 3
    assert told.turn_once() is None


def test_in_a_long_cycle_the_committer_alone_is_told_and_the_dispatcher_at_its_end() -> None:
    told = Told()
    told.busy = True
    told.arrive()
    told.clock.now += GATHER_S
    alone = told.turn_once()
    assert alone is not None
    assert not alone.for_cycles
    assert len(told.ingest.snapshot.podgroups) == 1
    assert told.turn_once() is None
    told.clock.now += GATHER_S
    assert told.turn_once() is None, "nothing is new since"
    told.busy = False
    assert told.groups(told.turn_once()) == 1
    assert told.turn_once() is None


def test_what_led_to_the_news_is_not_lost_to_the_dispatcher() -> None:
    told = Told()
    told.busy = True
    told.arrive({"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"})
    told.clock.now += GATHER_S
    first = told.turn_once()
    told.busy = False
    second = told.turn_once()
    assert first is not None
    assert second is not None
    assert first.links == ()
    assert len(second.links) == 1
    assert second.fold_ms >= first.fold_ms


def test_turns_without_news_are_no_part_of_what_an_update_took() -> None:
    told = Told()
    told.clock.now += REPEAT_S
    again = told.turn_once()
    assert again is not None
    assert again.fold_ms == 0.0
    told.arrive()
    news = told.turn_once()
    assert news is not None
    assert news.fold_ms > 0.0


def test_the_newest_state_is_told_again_after_a_while() -> None:
    told = Told()
    told.clock.now += REPEAT_S
    assert told.groups(told.turn_once()) == 0
    told.busy = True
    told.clock.now += REPEAT_S
    alone = told.turn_once()
    assert alone is not None
    assert not alone.for_cycles


def test_between_a_hole_in_the_fleets_count_and_a_list_behind_it_nothing_is_told_to_decide_on() -> None:
    told = Told()
    for number in (1, 3):
        told.arrive(sequence=number)
    assert told.turn_once() is None
    assert told.ingest.unlisted
    told.restart_ingestor()
    assert told.turn_once() is None, "a restart does not make up for what is lost"
    told.say(told.fleet.listing("again"))
    assert told.groups(told.turn_once()) == 2
    assert not told.ingest.unlisted


def test_what_another_writer_says_is_refused_and_decisions_go_on() -> None:
    told = Told()
    told.arrive(writer="first")
    assert told.groups(told.turn_once()) == 1
    told.arrive(writer="second")
    told.arrive(writer="first")
    assert told.groups(told.turn_once()) == 2
    assert not told.ingest.unlisted
