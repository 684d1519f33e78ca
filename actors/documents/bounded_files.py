"""Files of users, read with bounds on their size and on the depth of their tables."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from typing import Any

from actors.documents.safe_msgpack import deeper_than

SETTINGS_BYTES = 1 << 20
CLUSTER_BYTES = 1 << 30
_DEPTH, _DOTS = 32, 200


class FileRefused(ValueError):
    """A file that cannot be used; the message says why, and the caller adds its name."""


#: In place of a file: standard input.
STANDARD_INPUT = Path("-")


def read_once(*files: Path | None) -> None:
    """Refuse to read standard input for two files: the second would be empty.

    Raises
    ------
    FileRefused
        If more than one of the files is ``-``.
    """
    if files.count(STANDARD_INPUT) > 1:
        raise FileRefused("expected - only once, since standard input can be read only once")


def text_of(file: Path, most_bytes: int = SETTINGS_BYTES) -> str:
    """The text of a file, or of standard input for ``-``; at most ``most_bytes`` are read, even without an end.

    A byte order mark at its beginning, as some editors write it, is not part of the text.

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
    return read.decode("utf-8-sig")


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
