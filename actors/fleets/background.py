"""Loops in threads of this process that end together, without losing their errors."""

from __future__ import annotations

import threading
from collections.abc import Callable

#: Runs until the event is set.
Loop = Callable[[threading.Event], None]


class Background:
    """Some loops. An error that ends one of them early is raised by `raise_failures`."""

    def __init__(self, *loops: Loop) -> None:
        self._stop = threading.Event()
        self._failures: list[BaseException] = []
        self._threads = [threading.Thread(target=self._run, args=(one,), daemon=True) for one in loops]

    def _run(self, loop: Loop) -> None:
        try:
            loop(self._stop)
        except BaseException as failure:  # noqa: BLE001 - `raise_failures` raises it again
            self._failures.append(failure)

    def start(self) -> None:
        """Start the threads."""
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Tell the loops to stop, and wait for the threads."""
        self._stop.set()
        for thread in self._threads:
            if thread.is_alive():
                thread.join()

    def raise_failures(self) -> None:
        """Raise the error that ended a loop early, if there is one."""
        if self._failures:
            raise self._failures[0]
