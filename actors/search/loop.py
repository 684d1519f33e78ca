"""The dispatcher's loop: when there is news, or when it is time, one cycle on the newest snapshot."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from actors.contracts import SnapshotUpdate, TurnTold
from actors.search.dispatcher import Cycled, Dispatcher
from actors.search.wakeup import WakeUp
from pipeline.cluster.snapshot import Snapshot

#: After this time, plans that were refused or not judged are tried again even without news.
AGAIN_S = 0.2
#: Seconds for which a cycle waits for the decisions of the one before. Later the broker has lost them, or nothing is
#: read. The committer judges plans on all that it recorded, whatever they were made on.
FOLDED_WITHIN_S = 5.0
#: Seconds within which news is taken, unless it gathers for longer or another service leads.
_TAKEN_S = 0.02

_NOTHING = TurnTold()
#: A standby hears updates for hours before it runs a cycle, so it keeps only the newest trace contexts.
_LINKS_KEPT = 64


class CycleLoop:
    """Runs cycles in one thread; other threads tell it of updates.

    Parameters
    ----------
    fetch
        Fetches the snapshot of a reference, None if it is lost. Only the newest reference is fetched, perhaps again.
    debounce_ms
        How long to wait for further news before a cycle begins.
    leads
        Whether our committer holds the lease; waits a while for it. Without the lease no cycle runs.
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
        self._lock = threading.Condition()
        self._cycling_from: float | None = None
        self._news: tuple[Any, TurnTold] | None = None
        self._heard = -1

    def hear(self, reference: Any, revision: int, turn: TurnTold = _NOTHING) -> None:
        """Take a newer snapshot and wake up; an update that is known already is ignored."""
        with self._lock:
            if revision == self._heard:
                return
            self._heard = revision
            before = self._news[1].links if self._news is not None else ()
            self._news = reference, replace(turn, links=(*before, *turn.links)[-_LINKS_KEPT:])
        self._wake_up.wake()

    def await_end(self, limit_s: float) -> None:
        """Wait until a cycle on what was heard is over, for up to ``limit_s`` seconds.

        If it is not taken soon (it gathers, or another service leads), that is not waited for.
        """
        with self._lock:
            self._lock.wait_for(lambda: self._cycling_from is None, limit_s)
            self._lock.wait_for(lambda: self._news is None, _TAKEN_S)
            self._lock.wait_for(lambda: self._cycling_from is None, limit_s)

    @property
    def cycling_s(self) -> float:
        """For how long the cycle that runs now has run, in seconds; 0 if none runs."""
        began = self._cycling_from
        return 0.0 if began is None else time.monotonic() - began

    def run(self) -> None:
        """Run until the wake-up is closed. A cycle waits a while for the decisions of the one before."""
        snapshot: Snapshot | None = None
        turn = _NOTHING
        sequence, until, folded_by = 0, None, 0.0
        while self._wait(until) and self._await_lead():
            until = None
            with self._lock:
                taken, self._news, self._cycling_from = self._news, None, time.monotonic()
                self._lock.notify_all()
            turn = TurnTold(closed=turn.closed)
            if taken is not None:
                fetched = self._fetched(taken[0])
                if fetched is None:
                    continue
                snapshot, turn = fetched, taken[1]
            if snapshot is None:
                continue
            left_s = folded_by - time.monotonic() if snapshot.decided < sequence else 0.0
            if left_s > 0:
                until = self._wake_up.now_s() + left_s
                continue
            done = self._dispatcher.cycle(SnapshotUpdate(snapshot, turn))
            sequence, folded_by = done.sequence, time.monotonic() + FOLDED_WITHIN_S
            until = self._next(done, snapshot)

    def _wait(self, until: float | None) -> bool:
        """Wait for news, or for a time; False once the wake-up is closed."""
        with self._lock:
            self._cycling_from = None
            self._lock.notify_all()
        return self._wake_up.wait(until, self._debounce_ms)

    def _await_lead(self) -> bool:
        """Wait while another service leads, and keep up with the news; False once the wake-up is closed."""
        while not self._leads():
            if self._wake_up.closed:
                return False
            self._dispatcher.stand_by()
            self._keep_up()
        return True

    def _keep_up(self) -> None:
        """Fetch what was heard last: the news of hours would wait to be folded when this service comes to lead."""
        with self._lock:
            news = self._news
        if news is not None:
            self._fetched(news[0])

    def _fetched(self, reference: Any) -> Snapshot | None:
        """The snapshot of a reference; if it is lost, the same revision is news again."""
        found = self._fetch(reference)
        if found is None:
            with self._lock:
                self._heard = -1
        return found

    def _next(self, done: Cycled, snapshot: Snapshot) -> float | None:
        """When to run again without news; not before the last decisions are folded, or should have been."""
        if done.sequence:
            return self._wake_up.now_s() + FOLDED_WITHIN_S
        pause = self._wake_up.now_s() + AGAIN_S if done.again else None
        timer = self._dispatcher.next_at(snapshot)
        return min((at for at in (pause, timer) if at is not None), default=None)
