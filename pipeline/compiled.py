"""How kernels are compiled: in one place, so that every kernel is cached, thread-friendly and deterministic.

A kernel is an ordinary Python function over arrays. ``kernel.py_func`` is its uncompiled twin; tests run both.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit

Function = TypeVar("Function", bound=Callable[..., Any])

#: No fast-math: the same input must give the same bytes on every machine.
OPTIONS = {"cache": True, "nogil": True, "error_model": "numpy", "fastmath": False}


def kernel(function: Function) -> Function:
    """Compile ``function`` on first use, with its machine code kept beside the source for the next process."""
    compiled: Function = njit(**OPTIONS)(function)
    return compiled
