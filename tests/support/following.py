"""A reader of an ingestor's states that has them by their news alone, as another process does."""

import pickle
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from actors.ingestion.known.news_log import NewsLog
from actors.ingestion.known.state import LiveState
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.updates.fold import fold
from pipeline.cluster.updates.lean import full
from pipeline.cluster.vocabulary import Vocabulary
from tests.support.encoded import encoded


def columns(table: Any) -> Iterator[np.ndarray]:
    """All arrays of a table, or of a snapshot's tables."""
    for field in fields(table):
        value = getattr(table, field.name)
        if isinstance(value, np.ndarray):
            yield value
        elif is_dataclass(value) and not isinstance(value, Vocabulary):
            yield from columns(value)


class Follower:
    """Gets a state whole where it lacks news; else it folds the news that was sent, which must give the same bytes.

    Parameters
    ----------
    every
        Every how many states the bytes are compared.
    """

    def __init__(self, every: int = 1) -> None:
        self._log: NewsLog | None = None
        self._count, self._every, self.taken = 0, every, 0
        self.snapshot: Snapshot | None = None

    def take(self, state: LiveState) -> Snapshot:
        since = state.log.since(self._count) if state.log is self._log else None
        self._log, self._count = state.log, state.log.count
        if self.snapshot is None or since is None:
            self.snapshot = state.snapshot
            return self.snapshot
        for said in pickle.loads(pickle.dumps(since)):
            self.snapshot = fold(self.snapshot, full(said, self.snapshot))
        self.taken += 1
        assert not any(column.flags.writeable for column in columns(self.snapshot))
        assert self.snapshot.revision == state.snapshot.revision
        if self.taken % self._every == 0:
            assert encoded(self.snapshot) == encoded(state.snapshot)
        return self.snapshot
