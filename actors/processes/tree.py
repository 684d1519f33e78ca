"""The processes that one of ours has started."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

#: ``prctl`` of Linux: orphans that come from us become our own children instead of those of the first process.
_SUBREAPER = 36
_ROUNDS, _PAUSE_S = 50, 0.02


def adopt_orphans() -> None:
    """Keep orphans in our tree: the child of a child that was killed can otherwise outlive us."""
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)


def kill_descendants(root: int) -> int:
    """Kill all processes that come from process ``root``, also those that start meanwhile; how many they were."""
    killed: set[int] = set()
    for _ in range(_ROUNDS):
        left = [pid for pid in descendants(root) if _runs(pid)]
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


def _runs(pid: int) -> bool:
    """Whether a process is there and has not ended; one that ended may still wait to be asked for its exit code."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def descendants(root: int) -> Iterator[int]:
    """Ids of all processes that come from process ``root``, children before grandchildren, as ``/proc`` has them."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text()
        except OSError:  # it ended meanwhile
            continue
        children.setdefault(int(stat.rpartition(")")[2].split()[1]), []).append(int(folder.name))
    wave = [root]
    while wave:
        wave = [child for parent in wave for child in children.get(parent, ())]
        yield from wave
