"""How kernels are compiled and run: in one place, so that each is cached, releases the GIL and is deterministic.

A kernel is an ordinary Python function over arrays. ``kernel.py_func`` is its uncompiled twin; tests run both.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar, cast

from numba import njit

Function = TypeVar("Function", bound=Callable[..., Any])
Answer = TypeVar("Answer")

#: The second thread; it begins when it is first needed.
_OTHER = ThreadPoolExecutor(1, thread_name_prefix="kernels")


def kernel(function: Function) -> Function:
    """Compile ``function`` on first use; its machine code is kept beside the source for the next process."""
    # No fast-math: the same input must give the same bytes on every machine.
    return cast(Function, njit(cache=True, nogil=True, error_model="numpy", fastmath=False)(function))


def inlined(function: Function) -> Function:
    """Compile ``function`` into every kernel that calls it.

    For functions that are called for each task or podgroup with tuples of columns, which are slow to pass.
    """
    return cast(Function, njit(cache=True, nogil=True, error_model="numpy", fastmath=False, forceinline=True)(function))


def both(first: Callable[[], Answer], second: Callable[[], Answer]) -> tuple[Answer, Answer]:
    """The answers of two functions that run at once, where both spend a millisecond or more in kernels.

    Neither may change what the other reads, or call this. The second thread stays: a new one takes 0.3 ms longer, most
    of it for memory that a thread has to be given first.
    """
    later = _OTHER.submit(first)
    mine = second()
    return later.result(), mine
