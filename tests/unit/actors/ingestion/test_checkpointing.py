"""News is folded while a checkpoint is compressed; it covers what was folded when it began."""

from __future__ import annotations

from concurrent.futures import Future

import pytest

from actors.broker.bus import EVENTS, SNAPSHOTS, BrokerUnreachable
from actors.broker.checkpoints import PackedState, packed
from actors.ingestion.checkpointing import State
from actors.ingestion.group_notes import GROUP, NOTE_EVERY_S
from actors.ingestion.ingestor import Ingestor
from tests.support.told_world import World, drained, state_of


class Packer:
    """Compresses when it is told to."""

    def __init__(self) -> None:
        self.asked: list[tuple[State, Future[PackedState]]] = []

    def __call__(self, state: State) -> Future[PackedState]:
        self.asked.append((state, Future()))
        return self.asked[-1][1]

    def finish(self) -> None:
        """Answer what was asked last."""
        state, answer = self.asked[-1]
        answer.set_result(packed(state))


class UnseenFuture(Future[PackedState]):
    """Ends when nobody looks: it is waited for."""

    def done(self) -> bool:
        return False


@pytest.fixture
def packer() -> Packer:
    return Packer()


def told(world: World, ingestor: Ingestor, node: str) -> None:
    """A task starts on a node, and the ingestor hears it."""
    world.now += 2.0
    world.tell("task_started", task="default/train-0", node=node)
    drained(ingestor)


def written(world: World) -> int:
    return world.bus.bounds(SNAPSHOTS).added


def test_news_is_folded_meanwhile_and_a_start_reads_it_after_the_checkpoint(world: World, packer: Packer) -> None:
    ingestor = world.ingestor(packs=packer, checkpoint_every_s=1.0)
    told(world, ingestor, "n0")
    at_first = state_of(ingestor)
    told(world, ingestor, "n1")
    assert written(world) == 0
    assert state_of(ingestor) != at_first
    packer.finish()
    ingestor.poll()
    assert written(world) > 0
    assert len(packer.asked) == 1
    assert state_of(world.ingestor("second")) == state_of(ingestor)


def test_what_it_does_not_cover_stays_unacknowledged(world: World, packer: Packer) -> None:
    """The group has not followed yet when the checkpoint is written."""
    ingestor = world.ingestor(packs=packer, checkpoint_every_s=1.0)
    told(world, ingestor, "n0")
    world.tell("task_started", task="default/train-0", node="n1")
    drained(ingestor)
    assert world.bus.lags(EVENTS)[GROUP].undelivered == 1
    packer.finish()
    ingestor.poll()
    world.now += 2 * NOTE_EVERY_S
    ingestor.poll()
    assert (world.bus.lags(EVENTS)[GROUP].pending, world.bus.lags(EVENTS)[GROUP].undelivered) == (1, 0)


def test_one_that_is_under_way_when_another_service_leads_is_not_written(world: World, packer: Packer) -> None:
    ingestor = world.ingestor(packs=packer, checkpoint_every_s=1.0)
    told(world, ingestor, "n0")
    ingestor.leads = False
    packer.finish()
    ingestor.poll()
    assert written(world) == 0
    ingestor.leads = True
    told(world, ingestor, "n1")
    packer.finish()
    ingestor.poll()
    assert written(world) > 0


def test_one_that_the_broker_did_not_take_is_written_at_a_later_turn(
    world: World, packer: Packer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object, **__: object) -> None:
        raise BrokerUnreachable("away")

    ingestor = world.ingestor(packs=packer, checkpoint_every_s=1.0)
    told(world, ingestor, "n0")
    packer.finish()
    with monkeypatch.context() as patched:
        patched.setattr("actors.broker.checkpoints.save", away)
        with pytest.raises(BrokerUnreachable):
            ingestor.poll()
    ingestor.poll()
    assert written(world) > 0
    assert len(packer.asked) == 1


def test_the_last_one_waits_for_the_one_that_is_under_way(world: World) -> None:
    asked: list[State] = []

    def later(state: State) -> Future[PackedState]:
        asked.append(state)
        answer = UnseenFuture()
        answer.set_result(packed(state))
        return answer

    ingestor = world.ingestor(packs=later, checkpoint_every_s=1.0)
    told(world, ingestor, "n0")
    assert written(world) == 0
    told(world, ingestor, "n1")
    ingestor.checkpoint()
    assert len(asked) == 2
    assert world.bus.lags(EVENTS)[GROUP].pending == 0
    assert state_of(world.ingestor("second")) == state_of(ingestor)


def test_a_state_that_cannot_be_packed_is_no_silent_loss(world: World, packer: Packer) -> None:
    ingestor = world.ingestor(packs=packer, checkpoint_every_s=1.0)
    told(world, ingestor, "n0")
    packer.asked[-1][1].set_exception(MemoryError("no room to compress"))
    with pytest.raises(MemoryError, match="no room to compress"):
        ingestor.poll()
