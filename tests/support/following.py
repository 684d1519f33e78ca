"""A reader of an ingestor's states that has them by their news alone, as another process does."""

import pickle

from actors.ingestion.known.news_log import NewsLog
from actors.ingestion.known.state import LiveState
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.updates.fold import fold
from pipeline.cluster.updates.lean import full
from tests.support.encoded import encoded


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
        assert self.snapshot.revision == state.snapshot.revision
        if self.taken % self._every == 0:
            assert encoded(self.snapshot) == encoded(state.snapshot)
        return self.snapshot
