"""The processes that one of ours has started."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Iterator

import psutil

#: ``prctl`` of Linux: orphans that come from us become our own children instead of those of the first process.
_SUBREAPER = 36
_ROUNDS, _PAUSE_S = 50, 0.02


def adopt_orphans() -> None:
    """Keep orphans in our tree: the child of a child that was killed can otherwise outlive us."""
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)


def descendants(root: int) -> Iterator[int]:
    """Ids of all processes that come from process ``root``, a parent before its children."""
    try:
        found = psutil.Process(root).children(recursive=True)
    except psutil.NoSuchProcess:
        return
    yield from (one.pid for one in found)


def runs(pid: int) -> bool:
    """Whether a process is there and has not ended; one that ended may still wait to be asked for its exit code."""
    try:
        return psutil.Process(pid).status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    except psutil.NoSuchProcess:
        return False


def kill_descendants(root: int) -> int:
    """Kill all processes that come from process ``root``, also those that start meanwhile; how many they were."""
    killed: set[int] = set()
    for _ in range(_ROUNDS):
        left = [pid for pid in descendants(root) if runs(pid)]
        if not left:
            break
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        killed.update(left)
        time.sleep(_PAUSE_S)
    return len(killed)
