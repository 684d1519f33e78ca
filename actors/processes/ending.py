"""How a service ends when it is told to: in order if that goes quickly, else at once. Either way it leaves nothing."""

from __future__ import annotations

import logging
import os
import signal
import threading
from types import FrameType

from actors.processes import scratch
from actors.processes.tree import descendants

log = logging.getLogger(__name__)

#: How long the end may take from the first signal on, and the exit code where not even the roles ended in that time.
LIMIT_S, FORCED = 3.7, 1


class EndSignals:
    """Hears the signals that end a process.

    Attributes
    ----------
    told
        Set once it was told to end.
    """

    def __init__(self, limit_s: float = LIMIT_S) -> None:
        self.told, self._done, self._limit_s = threading.Event(), threading.Event(), limit_s
        self._settled = False

    def listen(self) -> None:
        """Hear SIGTERM and SIGINT, and refuse SIGHUP; again after a library has set handlers of its own."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._end)
        signal.signal(signal.SIGHUP, _refuse)

    def settle(self) -> None:
        """What had to be done is done: what is still to end may be killed without harm."""
        self._settled = True

    def done(self) -> None:
        """It ended in time."""
        self._done.set()

    def _end(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        if not self.told.is_set():
            self.told.set()
            threading.Thread(target=self._force, name="ending", daemon=True).start()

    def _force(self) -> None:
        """End at once whatever has not ended in time."""
        if self._done.wait(self._limit_s):
            return
        left = list(descendants(os.getpid()))
        log.warning(
            "not ended after %g s: %d processes are killed; the lease runs out by itself", self._limit_s, len(left)
        )
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        scratch.remove_all()
        os._exit(0 if self._settled else FORCED)


def _refuse(number: int, frame: FrameType | None) -> None:
    del number, frame
    log.warning(
        "SIGHUP is refused: settings and profile are read at the start; start another service with the new ones"
    )
