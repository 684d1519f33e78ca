"""How kernels are compiled: in one place, so that every kernel is cached, releases the GIL and is deterministic.

A kernel is an ordinary Python function over arrays. ``kernel.py_func`` is its uncompiled twin; tests run both.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(function: Function) -> Function:
    """Compile ``function`` on first use; its machine code is kept beside the source for the next process."""
    # No fast-math: the same input must give the same bytes on every machine.
    return cast(Function, njit(cache=True, nogil=True, error_model="numpy", fastmath=False)(function))


def inlined(function: Function) -> Function:
    """Compile ``function`` into every kernel that calls it.

    For functions that are called for each task or podgroup with tuples of columns, which are slow to pass.
    """
    return cast(Function, njit(cache=True, nogil=True, error_model="numpy", fastmath=False, forceinline=True)(function))
