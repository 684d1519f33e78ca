"""A broker whose machine loses power: it is killed, and what no sync had put on the disk is gone.

What a sync has really put there is recorded by a few lines of C, built here and preloaded into the server. Where there
is no compiler, the kernel is asked which pages of a file it has not written yet.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from pathlib import Path
from unittest.mock import patch

from actors.broker.embedded_broker import EmbeddedBroker

_SOURCE = Path(__file__).with_name("fsync_recorder.c")
#: The number of the system call, the same on every machine that Linux 6.5 or newer runs on.
_CACHESTAT = 451


class Machine:
    """The machine of one broker.

    Parameters
    ----------
    folder
        For the broker's data, and what is known of its disk.
    """

    def __init__(self, folder: Path) -> None:
        self._data, self._record = folder / "data", folder / "synced"
        self._environment: dict[str, str] = {}
        compiler = next((found for name in ("cc", "gcc", "clang") if (found := shutil.which(name))), None)
        self._recorded = compiler is not None
        if compiler is not None:
            library = folder / "fsync_recorder.so"
            subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, _SOURCE, "-ldl"], check=True)
            self._environment = {"LD_PRELOAD": str(library), "FSYNC_RECORD": str(self._record)}
        self.broker = EmbeddedBroker(self._data)

    def start(self) -> None:
        """Start the server on what its disk has; what it preloads is not for other processes."""
        with patch.dict(os.environ, self._environment):
            self.broker.start()

    def lose_power(self) -> int:
        """Kill the server and cut its files to what was synced; how many bytes are lost."""
        self.broker.kill()
        synced = self._synced()
        lost = 0
        for file in sorted(self._data.rglob("*.aof")):
            size = file.stat().st_size
            kept = min(size, synced.get(file.stat().st_ino, 0)) if self._recorded else _written(file)
            lost += size - kept
            os.truncate(file, kept)
        return lost

    def _synced(self) -> dict[int, int]:
        """Bytes by inode."""
        lines = self._record.read_text().splitlines() if self._record.exists() else []
        known: dict[int, int] = {}
        for line in lines:
            inode, size = map(int, line.split())
            known[inode] = max(size, known.get(inode, 0))
        return known


class _Range(ctypes.Structure):
    _fields_ = (("off", ctypes.c_uint64), ("len", ctypes.c_uint64))


class _Pages(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint64) for name in ("cache", "dirty", "writeback", "evicted", "recently_evicted"))


def _written(file: Path) -> int:
    """How many bytes lie before the first page that the kernel has not written to the disk."""
    size, page = file.stat().st_size, os.sysconf("SC_PAGESIZE")
    descriptor = os.open(file, os.O_RDONLY)
    try:
        for start in range(0, size, page):
            found = _Pages()
            failed = ctypes.CDLL(None, use_errno=True).syscall(
                _CACHESTAT, descriptor, ctypes.byref(_Range(start, page)), ctypes.byref(found), 0
            )
            if failed:
                raise OSError(ctypes.get_errno(), f"cachestat of {file}")
            if found.dirty or found.writeback:
                return start
    finally:
        os.close(descriptor)
    return size
