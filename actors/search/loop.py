"""The dispatcher's loop: when there is news, or when it is time, one cycle on the newest snapshot."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from actors.contracts import SnapshotUpdate
from actors.search.dispatcher import Cycled, Dispatcher
from actors.search.wakeup import WakeUp
from pipeline.actions.claims import Closed
from pipeline.cluster.snapshot import Snapshot

#: After so long what fell to a conflict, or was not judged at all, is tried again without any news.
AGAIN_S = 0.2

Links = tuple[Mapping[str, str], ...]
_OPEN = Closed()
#: A standby hears for hours before it has a cycle to show for it.
_LINKS_KEPT = 64


class CycleLoop:
    """Runs cycles in one thread and hears of news in others.

    Parameters
    ----------
    fetch
        The snapshot that a reference stands for, None if it is lost. Only the newest reference is ever fetched.
    debounce_ms
        How long news may still gather before it is acted upon.
    leads
        Whether who judges our plans may record them; waits a while for it. Without it no cycle runs.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        wake_up: WakeUp,
        fetch: Callable[[Any], Snapshot | None],
        debounce_ms: int,
        leads: Callable[[], bool] = lambda: True,
    ) -> None:
        self._leads = leads
        self._dispatcher, self._wake_up, self._fetch, self._debounce_ms = dispatcher, wake_up, fetch, debounce_ms
        self._lock = threading.Lock()
        self._news: tuple[Any, Links, Closed] | None = None
        self._heard = -1

    def hear(self, reference: Any, links: Links, revision: int, closed: Closed = _OPEN) -> None:
        """Take newer news and wake up; what is known is only said again for those who were not there."""
        with self._lock:
            if revision == self._heard:
                return
            self._heard = revision
            before = self._news[1] if self._news is not None else ()
            self._news = (reference, (*before, *links)[-_LINKS_KEPT:], closed)
        self._wake_up.wake()

    def run(self) -> None:
        """Until the wake-up is closed. A cycle waits for a snapshot that contains the decisions of the one before."""
        snapshot: Snapshot | None = None
        closed = _OPEN
        sequence, until = 0, None
        while self._wake_up.wait(until, self._debounce_ms) and self._await_lead():
            until = None
            with self._lock:
                taken, self._news = self._news, None
            links: Links = ()
            if taken is not None:
                reference, links, now_closed = taken
                fetched = self._fetch(reference)
                if fetched is None:
                    with self._lock:
                        self._heard = -1  # the same revision is news again
                    continue
                snapshot, closed = fetched, now_closed
            if snapshot is None or snapshot.decided < sequence:
                continue
            done = self._dispatcher.cycle(SnapshotUpdate(snapshot, links, closed))
            sequence = max(sequence, done.sequence)
            until = self._next(done, snapshot)

    def _await_lead(self) -> bool:
        """Wait for as long as another service decides; False once the wake-up is closed."""
        while not self._leads():
            if self._wake_up.closed:
                return False
        return True

    def _next(self, done: Cycled, snapshot: Snapshot) -> float | None:
        """When to run again without news; never before the decisions just made are folded."""
        if done.sequence:
            return None
        pause = time.time() + AGAIN_S if done.again else None
        timer = self._dispatcher.next_at(snapshot)
        return min((at for at in (pause, timer) if at is not None), default=None)
