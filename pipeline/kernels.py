"""How kernels are compiled and run: in one place, so that each is cached, releases the GIL and is deterministic.

A kernel is an ordinary Python function over arrays. ``kernel.py_func`` is its uncompiled twin; tests run both.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial, wraps
from typing import Any, TypeVar, cast

from numba.core import config
from numba.extending import overload, register_jitable

from pipeline.compiled import Compiled

Function = TypeVar("Function", bound=Callable[..., Any])
Answer = TypeVar("Answer")

#: The second thread while it is idle, none while it works; it begins when it is first needed.
_IDLE = [ThreadPoolExecutor(1, thread_name_prefix="kernels")]


def kernel(function: Function) -> Function:
    """Compile ``function`` when Python first calls it; machine code is kept beside the source for the next process.

    Other kernels may call it as well, and are then compiled with it. It may not write to its arguments.
    """
    return _compiled(function, is_kernel=True)


def writing(*columns: str) -> Callable[[Function], Function]:
    """Compile a function like `kernel`, which writes to these of its arguments: columns, or records of columns."""
    return partial(_compiled, is_kernel=True, writes=columns)


def linked(function: Function) -> Function:
    """Compile ``function`` with every kernel that calls it; for functions that only kernels call.

    There is no machine code of its own, unless a test calls it.
    """
    return _compiled(function)


def inlined(function: Function) -> Function:
    """Compile ``function`` into every place where a kernel calls it; otherwise like `linked`.

    For functions that are called for each task or podgroup with tuples of columns, which are slow to pass.
    """
    return _compiled(function, forceinline=True)


def _compiled(
    function: Function, *, is_kernel: bool = False, writes: Sequence[str] = (), forceinline: bool = False
) -> Function:
    if config.DISABLE_JIT:
        return function
    # No fast-math: the same input must give the same bytes on every machine.
    options = {"nopython": True, "nogil": True, "error_model": "numpy", "fastmath": False, "boundscheck": None}
    options |= {"forceinline": forceinline, "no_cfunc_wrapper": True}
    return cast(Function, Compiled(function, options, is_kernel=is_kernel, writes=writes))


def shared(function: Function) -> Function:
    """Let kernels call ``function``, compiled with each of them; Python runs it as it is.

    For a rule that a kernel follows over columns, and Python where a question in it has to be asked.
    """
    made: Function = register_jitable(error_model="numpy")(function)
    return made


def counted_by(counted: Callable[..., Any]) -> Callable[[Function], Function]:
    """Kernels that call the decorated function run ``counted`` in its place, which takes the same arguments.

    For a question that a kernel answers from columns and Python asks a plugin.
    """

    @wraps(counted)
    def for_all_types(*_: Any) -> Callable[..., Any]:
        return counted

    def means(function: Function) -> Function:
        overload(function, jit_options={"error_model": "numpy"})(for_all_types)
        return function

    return means


def both(first: Callable[[], Answer], second: Callable[[], Answer]) -> tuple[Answer, Answer]:
    """The answers of two functions that run at once, where both spend a millisecond or more in kernels.

    Neither may change what the other reads. The second thread stays: a new one takes 0.3 ms longer, most of it for
    memory that a thread has to be given first. While it is at work, also for one of the two, they run one after the
    other: so no thread waits for one that waits for it.
    """
    try:
        other = _IDLE.pop()
    except IndexError:
        return first(), second()
    later = other.submit(first)
    try:
        mine = second()
    finally:
        wait([later])  # even after an error: until then the thread is at work
        _IDLE.append(other)
    return later.result(), mine


def in_halves(part: Callable[[int, int], Answer], rows: int, enough: int) -> tuple[Answer, ...]:
    """The answers of ``part`` for a first and a second half of the rows, at once; one for all if these are too few.

    ``part`` is given its first row and the row after its last. ``enough``: rows that cost half a millisecond.
    """
    if rows < enough:
        return (part(0, rows),)
    return both(partial(part, 0, rows // 2), partial(part, rows // 2, rows))
