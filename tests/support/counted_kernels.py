"""Kernels of a module that a test writes, and what they leave allocated."""

import gc
import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from numba.core.runtime import _nrt_python, rtsys


@contextmanager
def imported(name: str, source: str, folder: Path) -> Iterator[ModuleType]:
    """A module with this source, while what its kernels allocate is counted."""
    (folder / f"{name}.py").write_text(source)
    sys.path.insert(0, str(folder))
    _nrt_python.memsys_enable_stats()
    yield importlib.import_module(name)
    _nrt_python.memsys_disable_stats()
    sys.path.remove(str(folder))
    sys.modules.pop(name, None)


def settled(call: Callable[[], object]) -> tuple[int, int]:
    """By how many a hundred calls change what is allocated by kernels and not freed: memory, and records of it."""
    call()
    gc.collect()
    before = rtsys.get_allocation_stats()
    for _ in range(100):
        call()
    gc.collect()
    after = rtsys.get_allocation_stats()
    live = [(some.alloc - some.free, some.mi_alloc - some.mi_free) for some in (before, after)]
    return live[1][0] - live[0][0], live[1][1] - live[0][1]
