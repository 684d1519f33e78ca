"""Machine code on disk that several processes write at the same time."""

import fcntl
from pathlib import Path
from typing import Any

from numba.core import caching


def save_one_by_one(lock: Path) -> None:
    """From now on this process saves machine code only while it holds a lock, a file that others lock as well.

    Numba replaces files as wholes, but it reads the index of a kernel, looks for a free name in it and writes both:
    two processes that save two signatures of a kernel at once could take the same name for both.
    """
    files: Any = caching.IndexDataCacheFile  # Numba says no types
    save = files.save

    def save_alone(self: Any, key: Any, data: Any) -> None:
        with lock.open("a") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            save(self, key, data)

    files.save = save_alone
