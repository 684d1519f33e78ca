"""New rows are told to readers before they are folded here, and are folded as soon as anybody looks."""

import pytest

from actors.ingestion.ingestor import Ingestor
from actors.ingestion.known import state as live_state
from actors.ingestion.known.state import LiveState
from actors.ray_runtime.transport import snapshot_feed
from actors.ray_runtime.transport.snapshot_feed import SnapshotFeed
from pipeline.cluster.snapshot import Snapshot
from tests.support.encoded import encoded
from tests.support.following import Follower
from tests.support.told_world import World, drained


class Store:
    """A store of this process: a reference is the snapshot itself."""

    def publish(self, snapshot: Snapshot) -> Snapshot:
        return snapshot


def gang_arrives(world: World, ingestor: Ingestor, name: str = "late") -> LiveState:
    """The state once a gang has come, which nobody has looked at."""
    world.tell(
        "podgroup_upserted",
        name=name, namespace="other", queue="ml", min_available=2, created=1.0,
        tasks=[{"name": name, "count": 2, "request": {"cpu": 1}}],
    )  # fmt: skip
    assert ingestor.poll()
    return ingestor.state


def test_its_news_and_its_revision_are_there_before_it_is_folded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    ingestor, reader = drained(world.ingestor()), Follower()
    before = reader.take(ingestor.state)
    monkeypatch.setattr(live_state, "fold", None)  # a call would fail
    state = gang_arrives(world, ingestor)
    assert state.log.since(state.log.count - 1)
    assert state.revision == before.revision + 1
    monkeypatch.undo()
    assert encoded(reader.take(state)) == encoded(state.snapshot)
    assert state.revision == state.snapshot.revision
    assert len(state.snapshot.podgroups) == len(before.podgroups) + 1


def test_a_feed_folds_nothing_for_a_reader_that_has_the_state_before(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot_feed, "SnapshotStore", Store)
    ingestor = drained(world.ingestor())
    feed = SnapshotFeed("one")
    feed.heard("mine", feed.told("mine", ingestor.state), known=True)
    state = gang_arrives(world, ingestor)
    monkeypatch.setattr(live_state, "fold", None)
    told = feed.told("mine", state)
    assert (told.whole, len(told.news), told.revision) == ((), 1, state.revision)


def test_one_gang_after_the_other_is_the_same_as_looking_each_time(world: World) -> None:
    looking, ingestor = drained(world.ingestor()), drained(world.ingestor())
    for name in ("one", "other", "third"):
        gang_arrives(world, ingestor, name)
    assert ingestor.state.ahead is not None
    drained(looking)
    assert encoded(ingestor.snapshot) == encoded(looking.snapshot)
    assert ingestor.state.ahead is None
    assert not ingestor.poll(), "to look is no news"


def test_a_copy_goes_its_own_way(world: World) -> None:
    state = gang_arrives(world, drained(world.ingestor()))
    copy = state.copied()
    assert copy.snapshot is state.snapshot
    assert copy.log.count == 0
