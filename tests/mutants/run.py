"""Plays mutants: each fault is put into a copy of the sources, alone, and the tests that should notice it run there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Queue

ROOT = Path(__file__).resolve().parents[2]
_COPIED = ("actors", "pipeline", "tests", "config", "deploy", "docs", "pyproject.toml")
#: A mutant that makes its tests hang is noticed as well. Compiling a large kernel takes minutes on a busy machine.
_TEST_LIMIT_S, _LIMIT_S, _ALL_LIMIT_S = 300, 600, 1_800
_TESTS_FAILED, _ALL_PASSED = 1, 0


@dataclass(frozen=True)
class Mutant:
    """One fault.

    Attributes
    ----------
    about
        What goes wrong, as a sentence.
    file
        Where, from the root of the repository.
    old, new
        The lines as they are, which stand there once, and as they are with the fault.
    tests
        Those that notice it, as pytest names them; as few as do, since the first that fails ends its run.
    """

    about: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def applied(self, text: str) -> str:
        """The text of the file with the fault.

        Raises
        ------
        ValueError
            Where the lines do not stand there once: the list is older than the product.
        """
        if text.count(self.old) != 1:
            raise ValueError(f"{self.file}: expected its lines once, found them {text.count(self.old)} times")
        return text.replace(self.old, self.new)


@dataclass(frozen=True)
class Played:
    """What became of a mutant.

    Attributes
    ----------
    noticed_by
        The test that failed; empty if its tests hung.
    survives
        Why it counts as not noticed; None if it was.
    """

    noticed_by: str = ""
    survives: str | None = None


def survivors(mutants: Sequence[Mutant], workers: int) -> list[str]:
    """A sentence for each mutant that no test notices, or that cannot be played.

    Nothing is played if a test fails without any fault.
    """
    with tempfile.TemporaryDirectory() as folder:
        copies: Queue[Path] = Queue()
        for number in range(workers):
            copies.put(_copy(Path(folder) / str(number)))
        said = threading.Lock()
        if wrong := _fails_anyway(mutants, copies.queue[0]):
            return [wrong]

        def play(mutant: Mutant) -> str | None:
            copy, began = copies.get(), time.monotonic()
            try:
                found = played(mutant, copy)
            finally:
                copies.put(copy)
            word, by = ("noticed ", f" ({found.noticed_by})") if found.survives is None else ("SURVIVES", "")
            with said:
                sys.stdout.write(f"{word} {time.monotonic() - began:4.0f} s  {mutant.about}{by}\n")
                sys.stdout.flush()
            return found.survives

        with ThreadPoolExecutor(workers) as pool:
            return [found for found in pool.map(play, mutants) if found is not None]


def played(mutant: Mutant, copy: Path) -> Played:
    """Put a mutant into a copy, run its tests, and take it out again."""
    file = copy / mutant.file
    before, stamp = file.read_text(encoding="utf-8"), file.stat()
    try:
        file.write_text(mutant.applied(before), encoding="utf-8")
        ended = _tested(copy, mutant.tests)
    except ValueError as refusal:
        return Played(survives=f"{mutant.about}: {refusal}")
    except subprocess.TimeoutExpired:
        return Played()
    finally:
        file.write_text(before, encoding="utf-8")
        _same_times(file, stamp.st_atime_ns, stamp.st_mtime_ns)
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+::\S+)", ended.stdout, re.MULTILINE)
    if ended.returncode == _TESTS_FAILED and failed:
        return Played(failed[0])
    if ended.returncode == _ALL_PASSED:
        return Played(survives=f"{mutant.about}: {' '.join(mutant.tests)} pass")
    return Played(survives=f"{mutant.about}: pytest ended with {ended.returncode}: {ended.stdout[-300:]}")


def _fails_anyway(mutants: Sequence[Mutant], copy: Path) -> str | None:
    """What tests say without a fault, if not all pass: they would notice everything."""
    ended = _tested(copy, sorted({test for one in mutants for test in one.tests}), _ALL_LIMIT_S)
    if ended.returncode == _ALL_PASSED:
        return None
    return f"without a fault pytest ended with {ended.returncode}: {ended.stdout[-300:]}"


def _tested(copy: Path, tests: Sequence[str], limit_s: float = _LIMIT_S) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable, "-m", "pytest", "-q", "-x", "--no-header", "--tb=no", "-p", "no:cacheprovider",
        f"--timeout={_TEST_LIMIT_S}", *tests,
    ]  # fmt: skip
    return subprocess.run(command, cwd=copy, capture_output=True, text=True, timeout=limit_s, check=False)


def _copy(to: Path) -> Path:
    """The sources with their compiled kernels."""
    to.mkdir()
    for name in _COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, to / name)
        else:
            shutil.copy2(ROOT / name, to / name)
    return to


def _same_times(file: Path, read_ns: int, written_ns: int) -> None:
    """Compiled code is kept by the time of its source."""
    os.utime(file, ns=(read_ns, written_ns))
