"""Kernels that several processes compile at the same time."""

import fcntl
from hashlib import sha256
from pathlib import Path
from typing import Any

from pipeline.compiled import Compiled


def compile_one_by_one(folder: Path) -> None:
    """From now on this process compiles a kernel only while it holds its lock, a file that others lock as well.

    A process that waited for it finds machine code on disk: nothing is compiled twice. And Numba replaces files as
    wholes, but it reads the index of a kernel, looks for a free name in it and writes both: two processes that save two
    signatures of a kernel at once could take the same name for both.
    """
    kernels: Any = Compiled  # Numba says no types
    compiled = kernels.compile

    def compile_alone(self: Compiled, sig: Any) -> Any:
        name = f"{self.py_func.__module__}.{self.py_func.__qualname__}"
        with (folder / sha256(name.encode()).hexdigest()).open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            return compiled(self, sig)  # looks on the disk first

    kernels.compile = compile_alone
