"""Files of users, read with bounds on their size and on the depth of their tables."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from actors.documents.safe_msgpack import deeper_than

SETTINGS_BYTES = 1 << 20
CLUSTER_BYTES = 1 << 30
_DEPTH, _DOTS = 32, 200


class FileRefused(ValueError):
    """A file that cannot be used; the message says why, and the caller adds its name."""


class ReaderLeft(Exception):
    """Standard output has no reader any more. It is no `BrokenPipeError`, which the library would end with 1."""


#: In place of a file: standard input.
STANDARD_INPUT = Path("-")


def text_of(file: Path, most_bytes: int = SETTINGS_BYTES) -> str:
    """The text of a file, or of standard input for ``-``; at most ``most_bytes`` are read, even without an end.

    Raises
    ------
    OSError
        If it cannot be read.
    ValueError
        If it is larger, or not UTF-8.
    """
    if file == STANDARD_INPUT:
        if sys.stdin is None:
            raise FileRefused("expected standard input, found it closed")
        read = sys.stdin.buffer.read(most_bytes + 1)
    else:
        with file.open("rb") as opened:
            read = opened.read(most_bytes + 1)
    if len(read) > most_bytes:
        raise FileRefused(f"expected at most {most_bytes} bytes, found more")
    return read.decode("utf-8")


def refuse_to_replace(*files: Path | None) -> None:
    """Refuse results that would replace a file; asked before the work, which may be long.

    Raises
    ------
    FileRefused
        If one of the files is there.
    """
    for file in files:
        if file is not None and file.is_file():
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
        If it cannot be written.
    ReaderLeft
        If standard output has no reader any more.
    """
    if out is None:
        say(text)
        return
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise FileRefused(f"{out}: expected a file that can be written, found: {error}") from error


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


def toml_of(text: str) -> dict[str, Any]:
    """The tables of a TOML text.

    Raises
    ------
    FileRefused
        If it is not TOML, or its tables are too deep.
    """
    # The library copies every prefix of a dotted key, so its time is quadratic in the dots.
    if any(line.count(".") > _DOTS for line in text.splitlines()):
        raise FileRefused(f"expected at most {_DOTS} dots in a line, found more")
    try:
        read = tomllib.loads(text)
    except ValueError as refusal:  # this includes numbers with thousands of digits
        raise FileRefused(str(refusal)) from refusal
    except RecursionError:
        read = None
    if read is None or deeper_than(read, _DEPTH):
        raise FileRefused(f"expected at most {_DEPTH} levels of nesting, found more")
    return read
