"""A wake-up: a loop goes on when there is news or when it is time, and never by a fixed period."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class WakeUp:
    """Called from any thread, waited for by one.

    Parameters
    ----------
    now_s
        The clock of the times that `wait` is given.
    """

    def __init__(self, now_s: Callable[[], float] = time.time) -> None:
        self._changed = threading.Condition()
        self._woken = self._closed = False
        self._now_s = now_s

    @property
    def closed(self) -> bool:
        """Whether there will be nothing more to wait for."""
        return self._closed

    def wake(self) -> None:
        """There is news."""
        with self._changed:
            self._woken = True
            self._changed.notify_all()

    def close(self) -> None:
        """Wake the loop for the last time."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def wait(self, until: float | None = None, settle_ms: int = 0) -> bool:
        """Wait for news, or for a time (seconds); False once it is closed.

        After news, ``settle_ms`` more pass, so that what comes in a burst is answered once.
        """
        with self._changed:
            timeout_s = None if until is None else max(0.0, until - self._now_s())
            woke = self._changed.wait_for(lambda: self._woken or self._closed, timeout_s)
            if woke and settle_ms and not self._closed:
                self._changed.wait_for(lambda: self._closed, settle_ms / 1000)
            self._woken = False
            return not self._closed
