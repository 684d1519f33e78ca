"""Results for users: to a file that may be replaced, or to standard output."""

from __future__ import annotations

import errno
import os
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

from actors.documents.bounded_files import FileRefused
from actors.documents.messages import on_one_line

#: Why a file cannot be put in the place of another that can be written all the same.
_NO_OTHER_FILE = (errno.EBUSY, errno.EACCES, errno.EPERM, errno.EROFS)


class ReaderLeft(Exception):
    """Standard output has no reader any more. It is no `BrokenPipeError`, which the library would end with 1."""


def refuse_to_replace(*files: Path | None) -> None:
    """Refuse results that would replace a file; asked before the work, which may be long.

    Raises
    ------
    FileRefused
        If one of the files is there.
    """
    for file in files:
        if file is not None and file.is_file() and not _is_standard_output(file):
            raise FileRefused(f"{file.resolve()}: expected no file there; --force replaces it")


def refuse_to_replace_inputs(out: Path | None, inputs: Iterable[Path]) -> None:
    """Refuse a result that would replace what it is made from; asked before the work.

    Parameters
    ----------
    inputs
        Files, and folders of files.

    Raises
    ------
    FileRefused
        If ``out`` is one of the files, under whatever name, or lies in one of the folders.
    """
    if out is None or not out.is_file():
        return
    for one in inputs:
        within = one.is_dir() and out.resolve().is_relative_to(one.resolve())
        if within or (one.is_file() and out.samefile(one)):
            raise FileRefused(f"--out {out}: expected another file than what is read, found it in {one}")


def write_out(text: str, out: Path | None) -> None:
    """Write a result to a file, or to standard output without one.

    Raises
    ------
    FileRefused
        If it cannot be written; a file that was there stays as it was, if another can take its place.
    ReaderLeft
        If standard output has no reader any more.
    """
    if out is None or _is_standard_output(out):
        say(text)
        return
    try:
        if out.exists() and not out.is_file():  # a device or a pipe
            out.write_text(text, encoding="utf-8")
        else:
            _replace(out.resolve(), text)
    except OSError as error:
        raise FileRefused(f"{out}: expected a file that can be written, found: {error.strerror}") from error


def _is_standard_output(out: Path) -> bool:
    """Whether a path names what standard output goes to, which may hold more than this result."""
    try:
        return out.exists() and sys.stdout is not None and os.path.samestat(out.stat(), os.fstat(sys.stdout.fileno()))
    except (OSError, ValueError):  # it is no file of the system
        return False


def _replace(out: Path, text: str) -> None:
    """Write a file all at once; or where it is, if no other can take its place.

    None can if the file is mounted by itself, or lies in a folder to which nothing may be added.
    """
    try:
        _swap(out, text)
    except OSError as error:
        if error.errno not in _NO_OTHER_FILE or not out.is_file():
            raise
        out.write_text(text, encoding="utf-8")


def _swap(out: Path, text: str) -> None:
    """Write a file beside another, and put it in its place once it is on the disk."""
    beside = out.with_name(f".{out.name[:200]}.{os.getpid()}")
    try:
        with beside.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if out.exists():
            shutil.copymode(out, beside)
        beside.replace(out)
    finally:
        beside.unlink(missing_ok=True)


def say_lines(lines: Iterable[str]) -> None:
    """Write lines for people to standard output, as `say` does; no name in them can end a line or move the cursor."""
    say("".join(f"{on_one_line(line)}\n" for line in lines))


def complain(sentences: Iterable[str]) -> None:
    """Write sentences to standard error, each a line that begins with the name of the program.

    Where it is closed or full, the exit code has to do.
    """
    try:
        if sys.stderr is not None:
            sys.stderr.writelines(f"clearway: {on_one_line(sentence)}\n" for sentence in sentences)
    except OSError:
        drop_unwritten()


def drop_unwritten() -> None:
    """Let go of what our outputs do not take: Python would try again, and complain, when the process ends."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def say(text: str) -> None:
    """Write to standard output, and see to it that it gets there.

    Raises
    ------
    FileRefused
        If it cannot be written.
    ReaderLeft
        If it has no reader any more.
    """
    if sys.stdout is None:  # so it is if it was closed before this process began
        raise FileRefused("standard output: expected a stream that can be written, found it closed")
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError as error:
        raise ReaderLeft from error
    except OSError as error:
        raise FileRefused(f"standard output: expected a stream that can be written, found: {error}") from error
