"""How a process follows the newest snapshot: it gets one whole, and after that the news that was folded since.

News is a few rows, and folding it is the only way in which state comes to be: so every reader that folds the same news
on the same snapshot has the same state, to the byte, without a column having been sent. A reader that does not have
the snapshot that news follows says so, and gets the newest one whole, by way of the object store.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass
from typing import Any, Protocol

from actors.ingestion.known.news_log import NewsLog
from actors.ray_runtime.transport.snapshot_store import SnapshotStore
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.updates.fold import fold
from pipeline.cluster.updates.lean import LeanNews, full

#: A state: the name of its log, and how much of that was folded.
Mark = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Told:
    """A state, for a reader.

    Attributes
    ----------
    mark, revision
        Which state.
    follows
        The state on which the news is to be folded; None: it is sent whole.
    whole
        The reference of the snapshot; in a tuple, because Ray would fetch a bare one with the message.
    """

    mark: Mark
    revision: int
    follows: Mark | None = None
    news: tuple[LeanNews, ...] = ()
    whole: tuple[Any, ...] = ()


class Followed(Protocol):
    """A state with the news of it. Its snapshot may have to be made first, so it is asked for only where it is sent."""

    log: NewsLog

    @property
    def revision(self) -> int:
        """Of the snapshot."""
        ...

    @property
    def snapshot(self) -> Snapshot:
        """The state itself."""
        ...


class SnapshotFeed:
    """What one process tells its readers.

    Parameters
    ----------
    name
        Unlike that of any other feed that the readers may have heard.
    """

    def __init__(self, name: str) -> None:
        self._name, self._logs = name, 0
        self._store, self._log = SnapshotStore(), NewsLog()
        #: By reader, how much it is known to have; None: it needs a whole snapshot.
        self._known: dict[str, int | None] = {}

    def told(self, reader: str, state: Followed) -> Told:
        """The newest state, for a reader: what it lacks, as far as is known."""
        news = state.log
        if news is not self._log:
            self._log, self._logs, self._known = news, self._logs + 1, {}
        known = self._known.setdefault(reader, None)
        since = news.since(known) if known is not None else None
        if known is None or since is None:
            return Told(self._mark(news.count), state.revision, whole=(self._store.publish(state.snapshot),))
        return Told(self._mark(news.count), state.revision, self._mark(known), since)

    def heard(self, reader: str, told: Told, *, known: bool) -> None:
        """Whether a reader has what it was told; if not, it is told all next time."""
        if told.mark[0] != self._mark(0)[0]:
            return
        self._known[reader] = told.mark[1] if known else None
        if None not in self._known.values():
            self._store = SnapshotStore()  # who has not fetched a snapshot yet keeps its reference
        self._log.forget(min((one for one in self._known.values() if one is not None), default=0))

    def _mark(self, number: int) -> Mark:
        return f"{self._name}/{self._logs}", number


class SnapshotReader:
    """The newest snapshot that a process was told. One thread hears, and one fetches."""

    def __init__(self, store: SnapshotStore) -> None:
        self._store, self._lock = store, threading.Lock()
        self._waiting = deque[Told]()
        self._heard: Mark | None = None
        self._folded: tuple[Mark, Snapshot] | None = None

    def hear(self, told: Told) -> bool:
        """Take a newer state; False if what it follows is not known here."""
        with self._lock:
            if told.mark == self._heard:
                return True
            if told.whole:
                self._waiting.clear()
            elif told.follows != self._heard:
                return False
            self._waiting.append(told)
            self._heard = told.mark
        return True

    def fetch(self, mark: Mark, limit_s: float) -> Snapshot | None:
        """The snapshot of a state that was heard; None if it was replaced by a newer one, or was lost.

        Raises
        ------
        ray.exceptions.RayError
            When it is lost with the process that had it, or does not arrive in time.
        """
        try:
            while self._folded is None or self._folded[0] != mark:
                with self._lock:
                    if all(told.mark != mark for told in self._waiting):
                        return None
                    told = self._waiting.popleft()
                self._folded = told.mark, self._taken(told, limit_s)
        except BaseException:
            with self._lock:
                self._waiting.clear()
                self._heard = self._folded = None
            raise
        return self._folded[1]

    def _taken(self, told: Told, limit_s: float) -> Snapshot:
        if told.whole:
            return self._store.fetch(told.whole[0], limit_s)
        assert self._folded is not None
        snapshot = self._folded[1]
        for said in told.news:
            snapshot = fold(snapshot, full(said, snapshot))
        if snapshot.revision != told.revision:
            raise RuntimeError(f"expected revision {told.revision} after news, found {snapshot.revision}")
        return snapshot
