"""How a service ends: in order if that is quick enough, otherwise at once. It leaves no process and no folder."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from types import FrameType

from actors.processes import scratch
from actors.processes.tree import descendants

log = logging.getLogger(__name__)

#: Seconds that the end may take from the first signal on; the second is for when ending at once loses nothing.
LIMIT_S, QUICK_S = 3.7, 1.5
#: The exit code if roles that must end in order were killed.
FORCED = 1
_LOOK_S = 0.05


class EndSignals:
    """Hears the signals that end a process.

    Parameters
    ----------
    limit_s
        Seconds from the first signal until everything is killed.

    Attributes
    ----------
    told
        Set by the first signal.
    """

    def __init__(self, limit_s: float = LIMIT_S) -> None:
        self.told, self._done, self._limit_s = threading.Event(), threading.Event(), limit_s
        self._settled = True

    def listen(self) -> None:
        """Handle SIGTERM and SIGINT, and refuse SIGHUP. Call it again after a library has set handlers of its own."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._end)
        signal.signal(signal.SIGHUP, _refuse)

    def settle(self, settled: bool = True) -> None:
        """Say whether everything may be killed without harm: before there are roles, and after they ended in order."""
        self._settled = settled

    def done(self) -> None:
        """Say that the process ends in time, so that nothing is killed."""
        self._done.set()

    def _end(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        if not self.told.is_set():
            self.told.set()
            threading.Thread(target=self._force, name="ending", daemon=True).start()

    def _force(self) -> None:
        """Kill everything that has not ended in time, then end this process."""
        began = time.monotonic()
        while not self._done.wait(_LOOK_S):
            if time.monotonic() >= began + (min(QUICK_S, self._limit_s) if self._settled else self._limit_s):
                break
        else:
            return
        left, in_order = list(descendants(os.getpid())), self._settled
        if not in_order:
            log.warning("not ended after %g s: %d processes are killed; the lease runs out", self._limit_s, len(left))
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        scratch.remove_all()
        os._exit(0 if in_order else FORCED)


def _refuse(number: int, frame: FrameType | None) -> None:
    del number, frame
    log.warning(
        "SIGHUP is refused: settings and profile are read at the start; start another service with the new ones"
    )
