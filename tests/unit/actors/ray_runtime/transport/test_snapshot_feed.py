"""A reader follows by news; where something is missing it says so, and gets all."""

from typing import Any

import pytest

from actors.ingestion.known.news_log import NewsLog
from actors.ray_runtime.transport import snapshot_feed
from actors.ray_runtime.transport.snapshot_feed import SnapshotFeed, SnapshotReader, Told
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import RUNNING
from pipeline.cluster.updates.events import Changes
from pipeline.cluster.updates.fold import fold
from tests.support.encoded import encoded
from tests.support.small_states import small_state, task_news

LIMIT_S = 1.0


class Lost(Exception):
    """What a store raises for a snapshot that is gone."""


class Store:
    """A store of this process: a reference is the snapshot itself."""

    gone = False

    def __init__(self) -> None:
        self.fetched = 0

    def publish(self, snapshot: Snapshot) -> Any:
        return snapshot

    def fetch(self, reference: Snapshot, limit_s: float) -> Snapshot:
        del limit_s
        if self.gone:
            raise Lost
        self.fetched += 1
        return reference


class Source:
    """A state that changes, and a reader of it."""

    def __init__(self) -> None:
        self.log, self.snapshot, self.store = NewsLog(), small_state(), Store()
        self.feed, self.reader = SnapshotFeed("one"), SnapshotReader(self.store)  # type: ignore[arg-type] # it stores too
        self.starts = 0

    def start(self) -> None:
        self.starts += 1
        news = Changes(tasks=task_news((self.starts % 3, RUNNING, 0, self.starts, self.starts, float(self.starts))))
        self.log.add(news, self.snapshot)
        self.snapshot = fold(self.snapshot, news)

    def told(self, reader: str = "mine") -> Told:
        return self.feed.told(reader, self)

    @property
    def revision(self) -> int:
        return self.snapshot.revision

    def tell(self) -> Told:
        told = self.told()
        self.feed.heard("mine", told, known=self.reader.hear(told))
        return told


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> Source:
    monkeypatch.setattr(snapshot_feed, "SnapshotStore", Store)
    return Source()


def test_a_reader_is_told_all_at_first_and_news_after_that(source: Source) -> None:
    first = source.tell()
    assert first.whole
    source.start()
    second = source.tell()
    assert not second.whole
    assert len(second.news) == 1
    there = source.reader.fetch(second.mark, LIMIT_S)
    assert there is not None
    assert encoded(there) == encoded(source.snapshot)
    assert source.store.fetched == 1


def test_news_is_folded_when_it_is_needed(source: Source) -> None:
    source.tell()
    for _ in range(4):
        source.start()
        told = source.tell()
    assert source.store.fetched == 0
    there = source.reader.fetch(told.mark, LIMIT_S)
    assert there is not None
    assert there.revision == source.snapshot.revision
    assert source.reader.fetch(told.mark, LIMIT_S) is there


def test_a_reader_that_came_later_says_that_it_lacks_the_state_before(source: Source) -> None:
    source.tell()
    source.start()
    source.reader = SnapshotReader(source.store)  # type: ignore[arg-type] # it was started anew
    source.tell()
    third = source.tell()
    assert third.whole
    assert source.reader.fetch(third.mark, LIMIT_S) is source.snapshot


def test_news_that_did_not_arrive_is_missed_with_the_next(source: Source) -> None:
    source.tell()
    source.start()
    lost = source.told()
    source.feed.heard("mine", lost, known=True)  # the answer came, and a frozen reader thaws in an older state
    source.start()
    told = source.told()
    assert not source.reader.hear(told)
    source.feed.heard("mine", told, known=False)
    assert source.told().whole


def test_a_reader_that_heard_nothing_new_is_told_nothing_new(source: Source) -> None:
    source.tell()
    again = source.tell()
    assert not again.whole
    assert again.news == ()
    assert source.reader.hear(again)


def test_readers_follow_each_at_their_own_pace(source: Source) -> None:
    other = SnapshotReader(source.store)  # type: ignore[arg-type] # it fetches
    source.tell()
    told = source.told("other")
    source.feed.heard("other", told, known=other.hear(told))
    for _ in range(3):
        source.start()
        source.tell()
    told = source.told("other")
    assert len(told.news) == 3
    assert other.hear(told)
    assert encoded(other.fetch(told.mark, LIMIT_S) or small_state()) == encoded(source.snapshot)
    source.feed.heard("other", told, known=True)
    assert source.log.since(2) is None  # both have it


def test_another_log_is_told_whole_whatever_was_known(source: Source) -> None:
    source.tell()
    source.log = NewsLog()
    assert source.tell().whole


def test_an_answer_about_an_earlier_log_says_nothing_of_this_one(source: Source) -> None:
    early = source.told()
    source.log = NewsLog()
    source.told()
    source.feed.heard("mine", early, known=True)
    assert source.told().whole


def test_a_state_that_was_replaced_by_a_whole_one_is_not_there_any_more(source: Source) -> None:
    source.tell()
    source.start()
    news = source.tell()
    source.feed.heard("mine", news, known=False)
    whole = source.tell()
    assert whole.mark == news.mark  # the same state, which it has by news
    source.start()
    source.feed.heard("mine", news, known=False)
    newer = source.tell()
    assert newer.whole
    assert source.reader.fetch(news.mark, LIMIT_S) is None
    assert source.reader.fetch(newer.mark, LIMIT_S) is source.snapshot


def test_after_a_loss_a_reader_lacks_everything(source: Source) -> None:
    told = source.tell()
    source.store.gone = True
    with pytest.raises(Lost):
        source.reader.fetch(told.mark, LIMIT_S)
    source.store.gone = False
    source.start()
    assert not source.reader.hear(source.told())


def test_snapshots_are_let_go_once_every_reader_has_one(source: Source) -> None:
    source.told("other")
    source.tell()
    store = source.feed._store
    source.feed.heard("other", source.told("other"), known=True)
    assert source.feed._store is not store
