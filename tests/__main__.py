"""``python -m tests``: the tests that ``make test`` runs, or those of some paths; with ``--services`` the others.

Tests that start real brokers or Ray mostly wait. All other tests compute: they do so at the same time, at the lowest
priority, and fill the waits. Each of the two has processes of its own; files of the former are never cut, since their
tests share what they start, and the longest begin.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO

#: The exit code of pytest if it found no test.
_NONE = 5
#: How much others go first: within a session, and between sessions, among which Linux divides time to begin with.
#: Ray gives its own processes 15.
_NICE, _SESSION_NICE = 19, 5

#: Markers of the two kinds, and of the real tests that ``make services`` runs (see `tests/conftest.py`).
COMPUTING, REAL_ONLY, SERVICES_ONLY = "not real", "real and not services", "services"
#: Real tests: a file is never cut, and files begin in the order in which they are collected (see `tests/conftest.py`).
WHOLE_FILES = ("--dist", "loadfile", "--no-loadscope-reorder")


def begin(*words: str, out: IO[bytes] | None = None) -> subprocess.Popen[bytes]:
    """Start pytest, with what it says in ``out``; in a session of its own, so that it hears of Ctrl-C once, from us.

    Bytecode is kept whatever the environment says: more than a hundred processes import our sources.
    """
    said = {"stdout": out, "stderr": out}
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-m", "pytest", *words]
    return subprocess.Popen(command, start_new_session=True, env=environment, **said)


def let_others_first(pid: int) -> None:
    """Lower the priority of a process that began a session, and that of the session."""
    os.setpriority(os.PRIO_PROCESS, pid, _NICE)
    session = Path(f"/proc/{pid}/autogroup")
    if session.exists():
        session.write_text(str(_SESSION_NICE))


def waited(both: list[subprocess.Popen[bytes]]) -> list[int]:
    """The exit codes. An interruption is passed on, so that each ends in order."""
    codes: list[int] = []
    while len(codes) < len(both):
        try:
            codes.append(both[len(codes)].wait())
        except KeyboardInterrupt:
            for one in both:
                if one.poll() is None:
                    os.killpg(one.pid, signal.SIGINT)  # the workers too: each takes down what its tests started
    return codes


def code_of(codes: list[int]) -> int:
    """One exit code for both: of a failure, if there is any; it is no failure if one of them found no test."""
    failed = [code for code in codes if code not in (0, _NONE)]
    return failed[0] if failed else min(codes)


def main() -> int:
    """Run both kinds; the output of one stands behind that of the other."""
    parser = argparse.ArgumentParser(prog="python -m tests", description=__doc__)
    parser.add_argument("--workers", type=int, default=2, help="processes for each of the two")
    parser.add_argument("--services", action="store_true", help="only tests that start one service after another")
    parser.add_argument("paths", nargs="*", default=["tests"])
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    options = ("--numprocesses", str(asked.workers), *asked.paths)
    if asked.services:
        return code_of(waited([begin("-m", SERVICES_ONLY, *WHOLE_FILES, *options)]))
    with tempfile.TemporaryFile() as kept:
        computing = begin("-m", COMPUTING, "--dist", "worksteal", *options)
        let_others_first(computing.pid)
        codes = waited([computing, begin("-m", REAL_ONLY, *WHOLE_FILES, *options, out=kept)])
        kept.seek(0)
        sys.stdout.buffer.write(kept.read())
    return code_of(codes)


if __name__ == "__main__":
    sys.exit(main())
