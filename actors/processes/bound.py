"""A process that ends with this one, however that ends."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from multiprocessing.connection import wait
from typing import IO, Final

# Asks the kernel to end the program with us (PR_SET_PDEATHSIG, SIGTERM), checks that we still live, becomes the
# program, whose files no other user may read.
_BOUND_TO_PARENT: Final = """
import ctypes, os, sys
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, 15)
    if os.getppid() != int(sys.argv[1]):
        sys.exit(1)
os.umask(0o077)
os.execv(sys.argv[2], sys.argv[2:])
"""


def start_bound(
    program: str,
    *arguments: str,
    told: bytes = b"",
    out: IO[bytes] | None = None,
    cwd: str | None = None,
    env: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    """Start a program from a thread that lasts as long as this process.

    The kernel's parent-death signal follows the *thread* that started the child. A thread of our own makes this safe to
    call from any thread. A session of its own keeps the terminal's Ctrl-C from it: we stop first, then it.

    Parameters
    ----------
    told
        What it reads from standard input, so that no password shows in a process list.
    out
        Where its standard output and standard error go; None: nowhere.
    cwd, env
        Its folder and environment; None: ours.

    Raises
    ------
    BrokenPipeError
        If it ended before it read that.
    OSError
        If it cannot be started.
    ValueError
        If an argument, or a value of the environment, has a byte of value 0.
    """
    command = [sys.executable, "-I", "-S", "-c", _BOUND_TO_PARENT, str(os.getpid()), program, *arguments]
    said = subprocess.DEVNULL if out is None else out
    started: list[subprocess.Popen[bytes] | OSError | ValueError] = []
    ready = threading.Event()

    def keep() -> None:
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=said, stderr=said, cwd=cwd, env=env, start_new_session=True
            )  # fmt: skip
        except (OSError, ValueError) as refusal:
            started.append(refusal)
            ready.set()
            return
        started.append(process)
        ready.set()
        process.wait()

    threading.Thread(target=keep, daemon=True).start()
    ready.wait()
    process = started[0]
    if isinstance(process, OSError | ValueError):
        raise process
    assert process.stdin is not None
    process.stdin.write(told)
    process.stdin.close()
    return process


def end_with_parent() -> None:
    """End this worker of a pool at once when the process that made the pool has ended, however it ended.

    Such a worker would wait for work without end: it holds the other end of the pipe from which it reads.

    Raises
    ------
    RuntimeError
        Where no process of Python's ``multiprocessing`` started this one.
    """
    parent = multiprocessing.parent_process()
    if parent is None:
        raise RuntimeError("expected a worker of a pool, found a process that nothing started as one")
    sentinel = parent.sentinel

    def follow() -> None:
        wait([sentinel])
        os._exit(1)  # what it was asked for has no taker any more

    threading.Thread(target=follow, name="ends-with-parent", daemon=True).start()
