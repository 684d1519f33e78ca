"""Folders of this process that must not be left behind: they hold sockets, tokens and logs. Their names have its id."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path

_MADE: set[Path] = set()
#: Processes that were killed a moment ago may still write.
_TRIES, _PAUSE_S = 20, 0.02


def make(prefix: str, where: str | None = None) -> Path:
    """A new folder that only this user can read, in the folder ``where``; None: where the system keeps such folders."""
    made = Path(tempfile.mkdtemp(prefix=f"{prefix}{os.getpid()}_", dir=where))
    _MADE.add(made)
    return made


def remove(folder: Path) -> None:
    """Remove a folder that was made. Others that still write there make it anew: `remove_all` removes it again."""
    shutil.rmtree(folder, ignore_errors=True)


def remove_all() -> None:
    """Remove every folder that is there, for a process that is about to end; try again while others write there."""
    for folder in tuple(_MADE):
        for _ in range(_TRIES):
            remove(folder)
            if not folder.exists():
                break
            time.sleep(_PAUSE_S)
