"""A wake-up: a loop continues when there is news or at a set time, never by a fixed period."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class WakeUp:
    """Any thread may call it; one waits.

    Parameters
    ----------
    now_s
        The clock of the times that `wait` is given.
    """

    def __init__(self, now_s: Callable[[], float] = time.time) -> None:
        self._changed = threading.Condition()
        self._woken = self._closed = False
        self.now_s = now_s

    @property
    def closed(self) -> bool:
        """Whether it is closed."""
        return self._closed

    def wake(self) -> None:
        """Wake the loop, because there is news."""
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

        After news, ``settle_ms`` more pass, so that a burst of news is answered once.
        """
        with self._changed:
            timeout_s = None if until is None else max(0.0, until - self.now_s())
            woke = self._changed.wait_for(lambda: self._woken or self._closed, timeout_s)
            if woke and settle_ms and not self._closed:
                self._changed.wait_for(lambda: self._closed, settle_ms / 1000)
            self._woken = False
            return not self._closed
