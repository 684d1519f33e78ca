"""Folders of this process that nothing is to find afterwards: they hold sockets, tokens and logs."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

_MADE: set[Path] = set()


def make(prefix: str, where: str | None = None) -> Path:
    """A new folder that only this user can read."""
    made = Path(tempfile.mkdtemp(prefix=prefix, dir=where))
    _MADE.add(made)
    return made


def remove(folder: Path) -> None:
    """Remove a folder that was made."""
    shutil.rmtree(folder, ignore_errors=True)
    _MADE.discard(folder)


def remove_all() -> None:
    """Remove every folder that is left, for a process that is about to end."""
    for folder in tuple(_MADE):
        remove(folder)
