"""``clearway run`` as a child process that can be watched, frozen, killed and ended with all that it started."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from actors.processes.bound import start_bound
from actors.processes.tree import descendants

_ROOT = Path(__file__).resolve().parents[2]
END_LIMIT_S = 60.0


class ServiceProcess:
    """One service; it ends with this process.

    Parameters
    ----------
    log
        File for its standard output and standard error.
    options
        Options of the command line.
    settings
        Settings by name, passed in the environment.
    """

    def __init__(self, log: Path, *options: str, settings: Mapping[str, str]) -> None:
        self.log = log
        told = {f"CLEARWAY_{key.upper()}": value for key, value in settings.items()}
        with log.open("wb") as out:
            environment = {**os.environ, "PYTHONPATH": str(_ROOT), **told}
            self.process = start_bound(
                sys.executable, "-m", "actors", "run", *options, out=out, cwd="/", env=environment
            )

    def said(self) -> str:
        """Its log so far."""
        return self.log.read_text(errors="replace")

    @property
    def leads(self) -> bool | None:
        """Whether it leads by its own log; None before it logged that."""
        words: list[str] = re.findall(r" INFO (leads|stands by)\b", self.said())
        return words[-1] == "leads" if words else None

    def freeze(self) -> None:
        """Stop all its processes, as if its machine had frozen."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let all its processes continue."""
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        """Kill all its processes; frozen first, so that none notices the end of another."""
        self.freeze()
        left = [self.process.pid, *descendants(self.process.pid)]
        folders = {found for pid in left for found in re.findall(r"/tmp/cw-\w+", _command_line(pid))}
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        self.process.wait()
        for folder in folders:  # Ray's: no process is left that would remove them
            shutil.rmtree(folder, ignore_errors=True)

    def end(self) -> int:
        """Its exit code after SIGTERM.

        Raises
        ------
        subprocess.TimeoutExpired
            If it does not end within `END_LIMIT_S` seconds.
        """
        self.process.terminate()
        return self.process.wait(END_LIMIT_S)

    def close(self) -> None:
        """End it in any state, frozen or ended too."""
        if self.process.poll() is None:
            self.thaw()
            try:
                self.end()
            except subprocess.TimeoutExpired:
                self.kill()

    def _signal(self, number: int) -> None:
        for pid in (self.process.pid, *descendants(self.process.pid)):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                continue


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:  # it ended meanwhile
        return ""
