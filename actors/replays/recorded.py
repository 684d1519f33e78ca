"""Files of recordings: tables with a header line and JSON, gzipped or plain."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pipeline.errors import Refused


class RecordingRefused(Refused):
    """A recording that is missing or lacks what a scenario needs; the message names the file."""


def text_of(folder: Path, name: str) -> str:
    """The text of a file, unpacked if its name ends in ``.gz``.

    Raises
    ------
    RecordingRefused
        If it cannot be read.
    """
    path = folder / name
    try:
        data = path.read_bytes()
        return (gzip.decompress(data) if name.endswith(".gz") else data).decode()
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise RecordingRefused(f"--data: expected a readable {name} in {folder}, found: {error}") from error


def table(folder: Path, name: str, columns: Iterable[str]) -> list[dict[str, str]]:
    """The rows of a CSV file as mappings by column.

    Raises
    ------
    RecordingRefused
        If the file cannot be read, lacks one of ``columns``, or has a row of another length.
    """
    reader = csv.DictReader(io.StringIO(text_of(folder, name)), strict=True)
    try:
        rows = list(reader)
    except csv.Error as error:
        line = reader.reader.line_num
        raise RecordingRefused(f"{name}, line {line}: expected a row of a table, found: {error}") from error
    missing = [column for column in columns if column not in (reader.fieldnames or ())]
    if missing:
        raise RecordingRefused(f"{name}: expected a column {missing[0]!r}, found {', '.join(reader.fieldnames or ())}")
    for number, row in enumerate(rows, 2):
        if None in row or None in row.values():
            raise RecordingRefused(f"{name}, row {number}: expected {len(reader.fieldnames or ())} columns")
    return rows


def document(folder: Path, name: str) -> Mapping[str, Any]:
    """The JSON object in a file.

    Raises
    ------
    RecordingRefused
        If the file holds anything else.
    """
    try:
        found = json.loads(text_of(folder, name))
    except json.JSONDecodeError as error:
        raise RecordingRefused(f"{name}: expected JSON, found: {error}") from error
    if not isinstance(found, dict):
        raise RecordingRefused(f"{name}: expected a JSON object, found {type(found).__name__}")
    return found


def whole(row: Mapping[str, str], column: str, name: str) -> int:
    """The whole number, at least 0, in a column of a row.

    Raises
    ------
    RecordingRefused
        If there is something else.
    """
    return int(_number(row, column, name, whole_only=True))


def seconds(row: Mapping[str, str], column: str, name: str) -> float:
    """The number of seconds, at least 0, in a column of a row.

    Raises
    ------
    RecordingRefused
        If there is something else.
    """
    return _number(row, column, name, whole_only=False)


def _number(row: Mapping[str, str], column: str, name: str, *, whole_only: bool) -> float:
    try:
        value = float(row[column])
    except ValueError:
        value = -1.0
    if not 0 <= value < float(1 << 53) or (whole_only and value != int(value)):
        what = "a whole number" if whole_only else "a number"
        raise RecordingRefused(f"{name}: {column}: expected {what}, at least 0, found {row[column]!r}")
    return value
