"""A broker that is restored from an older copy while all roles run: the system decides again, on what the fleet has."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.chaos.memory_checks import _lively, _rest, _truth, come_to_rest
from tests.chaos.memory_faults import copied, restored
from tests.chaos.memory_world import KAI, Parts, World
from tests.chaos.schedule import Schedule, drawn
from tests.support.assembly import Assembly, gang, rack_cluster

#: In the last two the ingestor reads on before it notices: it asks for a list, or writes a checkpoint.
SEEDS = (2, 5, 4, 10)


class Restored(World):
    """A world whose broker is copied at one turn, and is that copy from a later turn on."""

    def __init__(self, schedule: Schedule, parts: Parts) -> None:
        draw = random.Random(schedule.seed * 13 + 5)
        self._copied_at = draw.randrange(3, 25)
        self._restored_at = self._copied_at + draw.randrange(1, 10)
        self._lists = draw.random() < 0.7
        self._turns, self._copy = 0, dict[str, Any]()
        super().__init__(schedule, parts)

    def turn(self, seconds: float = 1.0, *, dispatch: bool = True) -> None:
        super().turn(seconds, dispatch=dispatch)
        if self._nested:
            return
        self._turns += 1
        if self._turns == self._copied_at:
            self._copy = copied(self)
        if self._turns == self._restored_at:
            restored(self, self._copy)
            if self._lists:  # its connector notices as well
                self.connector.list_fleet()


@pytest.mark.parametrize("parts", [Parts(), Parts(policy=KAI)], ids=["default", "kai"])
@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_copy_it_is_restored_from_the_system_comes_to_rest_with_the_state_of_the_fleet(
    seed: int, parts: Parts
) -> None:
    world = Restored(drawn(seed, turns=36, most=4), parts)
    world.play()
    assert come_to_rest(world) == []
    assert [*_truth(world), *_rest(world), *_lively(world)] == []


def test_a_state_with_decisions_that_the_broker_lost_begins_anew_without_the_checkpoint_that_has_them() -> None:
    assembly = Assembly(rack_cluster())
    assembly.hear()
    copy = copied(assembly)
    assembly.submit(gang("big", 1, 8))
    assembly.cycle()
    assembly.hear()
    assert assembly.ingest.snapshot.decided > 0
    restored(assembly, copy)
    assembly.clock.now += 20.0  # its lease has run out
    assembly.ingest.ingestor.checkpoint()
    assembly.committer.lead()
    assert assembly.committer.lost_behind == 0
    assembly.ingest.lost_behind(0)
    assembly.ingest.turn(0)
    assert assembly.ingest.snapshot.decided == 0


def test_a_decision_that_the_broker_lost_before_it_was_read_is_made_again() -> None:
    """Rows are numbered anew meanwhile, so the one that the committer still counts on could not be folded any more."""
    assembly = Assembly(rack_cluster())
    assembly.submit(gang("big", 1, 8))
    assembly.hear()
    copy = copied(assembly)
    assembly.committer.lead()
    assert assembly.dispatcher.cycle(assembly.news).answers[0].accepted
    lease = assembly.ledger._held
    restored(assembly, copy)
    assembly.ledger._held = lease  # it is good for as long, as in a replica that was a moment behind
    assembly.say(assembly.fleet.listing("again"))
    assembly.clock.now += 1.0
    assembly.committer.lead()
    assert assembly.cycle().answers[0].accepted


@pytest.mark.parametrize("lists", [False, True])
def test_nothing_is_decided_on_an_older_state_before_the_fleet_has_listed_again(lists: bool) -> None:
    assembly = Assembly(rack_cluster())
    assembly.hear()
    assembly.ingest.ingestor.checkpoint()
    copy = copied(assembly)
    assembly.submit(gang("big", 1, 8))
    assembly.hear()
    restored(assembly, copy)
    if lists:  # its connector notices first
        assembly.say(assembly.fleet.listing("at once"))
    assembly.clock.now += 3.0
    for _ in range(2):
        assembly.ingest.turn(0)
    assert assembly.ingest.unlisted is not lists
    assembly.say(assembly.fleet.listing("again"))
    assert assembly.hear()
    assert "default/big" in assembly.ingest.ingestor.state.names.podgroups


@pytest.mark.parametrize("lists", [False, True])
def test_a_restart_between_a_loss_and_the_list_that_was_asked_for_decides_nothing(lists: bool) -> None:
    """The state in the broker's checkpoint looks whole: that a later one was lost is known by the request alone."""
    assembly = Assembly(rack_cluster())
    assembly.hear()
    assembly.ingest.ingestor.checkpoint()
    copy = copied(assembly)
    assembly.say(assembly.fleet.submit(gang("big", 1, 8)))
    assembly.hear()
    restored(assembly, copy)
    assembly.clock.now += 3.0
    for _ in range(2):
        assembly.ingest.turn(0)
    assert assembly.ingest.unlisted
    if lists:
        assembly.say(assembly.fleet.listing("again"))
    for _ in range(2):
        assembly.restart_ingestor()
        assembly.clock.now += 1.0
        assert assembly.hear() is lists
    assert ("default/big" in assembly.ingest.ingestor.state.names.podgroups) is lists


def test_a_standby_that_began_on_the_older_copy_hears_of_the_loss_by_the_request() -> None:
    assembly = Assembly(rack_cluster())
    assembly.hear()
    assembly.ingest.ingestor.checkpoint()
    copy = copied(assembly)
    assembly.say(assembly.fleet.submit(gang("big", 1, 8)))
    assembly.say(assembly.fleet.listing("lost"))
    assembly.hear()
    restored(assembly, copy)
    noticing = assembly.ingest
    assembly.restart_ingestor()
    assert assembly.hear()
    assembly.clock.now += 3.0
    for _ in range(2):
        noticing.turn(0)
    assert not assembly.hear()
    assembly.say(assembly.fleet.listing("again"))
    assert assembly.hear()
    assert noticing.turn(0) is not None
