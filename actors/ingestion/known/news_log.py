"""What was folded lately: a reader that has an earlier state folds it too, and so gets the newest one."""

from __future__ import annotations

from collections import deque

from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.updates.events import Changes, Listed, News, NodesRelaid, QueuesRelaid
from pipeline.cluster.updates.lean import LeanNews, lean

#: However small the state is, the log may have this many rows.
_ROWS = 10_000


class NewsLog:
    """The news of one state, by number; the oldest is dropped once all of it has more rows than the state itself."""

    def __init__(self) -> None:
        self._news = deque[tuple[LeanNews, int]]()
        self._first = self._rows = 0

    @property
    def count(self) -> int:
        """How many there were so far: the number of the next."""
        return self._first + len(self._news)

    def add(self, news: News, before: Snapshot) -> None:
        """Note what is folded on the snapshot ``before``."""
        rows = _rows(news)
        self._news.append((lean(news, before), rows))
        self._rows += rows
        most = max(_ROWS, len(before.tasks) + len(before.nodes))
        while self._rows > most:
            self._drop()

    def since(self, number: int) -> tuple[LeanNews, ...] | None:
        """The news from a number on; None if some of it was dropped."""
        if not self._first <= number <= self.count:
            return None
        return tuple(self._news[at][0] for at in range(number - self._first, len(self._news)))

    def forget(self, number: int) -> None:
        """Drop the news before a number."""
        while self._news and self._first < number:
            self._drop()

    def _drop(self) -> None:
        self._rows -= self._news.popleft()[1]
        self._first += 1


def _rows(news: News) -> int:
    """About how many rows news has; at least one."""
    if isinstance(news, Listed):
        return 1 + len(news.snapshot.tasks) + len(news.snapshot.nodes)
    if isinstance(news, NodesRelaid):
        return 1 + len(news.nodes)
    if isinstance(news, QueuesRelaid):
        return 1 + len(news.queues)
    return 1 + _changed_rows(news)


def _changed_rows(changes: Changes) -> int:
    new_rows, decided = changes.new_rows, changes.decided
    rows = sum(len(one) for one in (changes.nodes, changes.tasks, changes.left, changes.removed) if one is not None)
    if new_rows is not None:
        rows += len(new_rows.tasks) + len(new_rows.edits) + len(new_rows.podgroups)
    if decided is not None:
        rows += sum(map(len, (decided.evicted, decided.spared, decided.nominated, decided.bound)))
    return rows
