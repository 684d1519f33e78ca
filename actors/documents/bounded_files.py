"""Text that others wrote, read with bounds: a file is no larger, and its tables no deeper, than they may be."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from actors.documents.safe_msgpack import deeper_than

SETTINGS_BYTES = 1 << 20
CLUSTER_BYTES = 1 << 30
_DEPTH, _DOTS = 32, 200


class FileRefused(ValueError):
    """A file that is not what it should be; the message says how, and leaves its name to the caller."""


def text_of(file: Path, most_bytes: int = SETTINGS_BYTES) -> str:
    """The text of a file; at most ``most_bytes`` are read, even of one that has no end.

    Raises
    ------
    OSError
        If it cannot be read.
    ValueError
        If it is larger, or no UTF-8.
    """
    with file.open("rb") as opened:
        read = opened.read(most_bytes + 1)
    if len(read) > most_bytes:
        raise FileRefused(f"expected at most {most_bytes} bytes, found more")
    return read.decode("utf-8")


def toml_of(text: str) -> dict[str, Any]:
    """What TOML says.

    Raises
    ------
    FileRefused
        If it is none, or its tables are too deep.
    """
    # The library copies every beginning of a dotted key.
    if any(line.count(".") > _DOTS for line in text.splitlines()):
        raise FileRefused(f"expected at most {_DOTS} dots in a line, found more")
    try:
        read = tomllib.loads(text)
    except ValueError as refusal:  # also for a number of thousands of digits
        raise FileRefused(str(refusal)) from refusal
    except RecursionError:
        read = None
    if read is None or deeper_than(read, _DEPTH):
        raise FileRefused(f"expected at most {_DEPTH} levels of nesting, found more")
    return read
