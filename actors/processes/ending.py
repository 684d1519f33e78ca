"""How a service ends: in order if that is quick enough, otherwise at once. It leaves no process and no folder."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from types import FrameType
from typing import Self

from actors.processes import scratch
from actors.processes.tree import adopt_orphans, kill_descendants

log = logging.getLogger(__name__)

#: Seconds that the end may take from the first signal on; the second is for when ending at once loses nothing.
LIMIT_S, QUICK_S = 3.0, 1.5
#: The exit code if roles that must end in order were killed.
FORCED = 1
_LOOK_S = 0.05
_ENDING = frozenset((signal.SIGTERM, signal.SIGINT))


class EndSignals:
    """Hears the signals that end a process; where its block ends, nothing that the process started is left.

    A thread hears them, over the interpreter's wake-up descriptor. A handler alone would not do: it waits until the
    main thread is back from a call into a library, and a library may replace it. Ray does both while it starts.

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
        self._heard, self._wakes = os.pipe()
        os.set_blocking(self._wakes, False)
        self._ear = threading.Thread(target=self._hear, name="ending", daemon=True)

    def __enter__(self) -> Self:
        adopt_orphans()
        self.listen()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Leave nothing behind, however the block ended.

        A handler of Ray's ends it by `SystemExit` if the signal came while Ray connected. The process ends here then:
        a connection that is half made crashes the interpreter's own end.
        """
        self._ignore()
        self._done.set()
        kill_descendants(os.getpid())
        scratch.remove_all()
        if kind is SystemExit and self.told.wait(QUICK_S):
            logging.shutdown()
            os._exit(0)

    def listen(self) -> None:
        """Hear SIGTERM and SIGINT, and refuse SIGHUP. Call it again after a library has set handlers of its own."""
        self._ignore()
        signal.signal(signal.SIGHUP, _refuse)
        signal.set_wakeup_fd(self._wakes, warn_on_full_buffer=False)
        if not self._ear.is_alive():
            self._ear.start()

    def settle(self, settled: bool = True) -> None:
        """Say whether everything may be killed without harm: before there are roles, and after they ended in order."""
        self._settled = settled

    @staticmethod
    def _ignore() -> None:
        """Keep SIGTERM and SIGINT from ending the process by themselves."""
        for number in _ENDING:
            signal.signal(number, _heard_elsewhere)

    def _hear(self) -> None:
        """Wait for a signal that ends the process."""
        while not _ENDING.intersection(os.read(self._heard, 64)):
            continue
        self.told.set()
        self._force()

    def _force(self) -> None:
        """Kill everything that has not ended in time, then end this process."""
        began = time.monotonic()
        while not self._done.wait(_LOOK_S):
            if time.monotonic() >= began + (min(QUICK_S, self._limit_s) if self._settled else self._limit_s):
                break
        else:
            return
        in_order = self._settled
        left = kill_descendants(os.getpid())
        if not in_order:
            log.warning("not ended after %g s: %d processes were killed; the lease runs out", self._limit_s, left)
        scratch.remove_all()
        os._exit(0 if in_order else FORCED)


def _heard_elsewhere(number: int, frame: FrameType | None) -> None:
    """Keep the signal from ending the process by itself."""
    del number, frame


def _refuse(number: int, frame: FrameType | None) -> None:
    del number, frame
    log.warning(
        "SIGHUP is refused: settings and profile are read at the start; start another service with the new ones"
    )
