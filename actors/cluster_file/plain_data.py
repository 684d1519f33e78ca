"""Cluster files as plain data: from text in YAML or JSON, or one sentence about the first mistake."""

from __future__ import annotations

import json
from typing import Any, cast

import msgspec

from actors.documents.collector import collector_paused
from actors.documents.messages import shown
from actors.documents.safe_msgpack import deeper_than

_DEEPEST = 64
#: All bytes but brackets, and what says where texts begin and end.
_NO_BRACKETS = bytes(set(range(256)) - set(b'[]{}"\\'))


class ClusterFileRefused(ValueError):
    """A cluster file that cannot be used; the message is one sentence: where, what was expected, what was found."""


def read_mapping(text: str, where: str) -> dict[str, Any]:
    """Read YAML or JSON as plain data.

    Parameters
    ----------
    where
        Name of the text in messages, such as the name of the file.

    Raises
    ------
    ClusterFileRefused
        If it is neither, gives a key twice, or is not a mapping; with line and column.
    """
    return _read(text, where, several=False)[0]


def read_mappings(text: str, where: str) -> list[dict[str, Any]]:
    """Read each document of a YAML stream, or one JSON text, as plain data; empty documents are passed over.

    Raises
    ------
    ClusterFileRefused
        As ``read_mapping`` does.
    """
    return _read(text, where, several=True)


@collector_paused()
def _read(text: str, where: str, *, several: bool) -> list[dict[str, Any]]:
    mistake: json.JSONDecodeError | None = None
    if text.lstrip().startswith("{"):
        try:
            return [_quickly(text)]
        except (ValueError, RecursionError):
            pass  # something in it is wrong or unusual: the readers below say what, or read it
        try:
            read = json.loads(text, object_pairs_hook=_each_key_once, parse_constant=_no_number)
        except json.JSONDecodeError as error:
            mistake = error
        except (ValueError, RecursionError):
            # A key given twice, NaN, too many digits, too deep: reading it as YAML finds the same, with the line.
            pass
        else:
            if deeper_than(read, _DEEPEST):
                raise ClusterFileRefused(f"{where}: expected at most {_DEEPEST} levels of nesting, found more")
            return [_in_whole_characters(read, where)]
    from actors.cluster_file.yaml_text import NotYaml, yaml_documents  # large files are JSON, and never need it

    try:
        documents = yaml_documents(text, _DEEPEST, several=several)
    except NotYaml as refusal:
        if refusal.line is None:
            raise ClusterFileRefused(f"{where}: {refusal}") from refusal
        if mistake is not None:
            raise _refused(where, mistake.lineno, mistake.colno, f"expected JSON or YAML: {mistake.msg}") from refusal
        raise _refused(where, refusal.line, refusal.column, str(refusal)) from refusal
    for read in documents:
        if not isinstance(read, dict):
            raise ClusterFileRefused(f"{where}: expected a mapping, found {shown(read)}")
    return documents


def _quickly(text: str) -> dict[str, Any]:
    """JSON in which nothing is wrong, as plain data; ValueError if that cannot be told quickly.

    Written anew it has as many colons as before. A key given twice would be written once, with at least one colon less,
    and only an escaped colon can be written as one that the text does not have.
    """
    read = msgspec.json.decode(text)
    again = msgspec.json.encode(read)  # refuses half a surrogate pair
    if "\\u003" in text or again.count(b":") != text.count(":"):
        raise _NotPlain
    if not surely_shallow(again, _DEEPEST) and deeper_than(read, _DEEPEST):
        raise _NotPlain
    return cast("dict[str, Any]", read)


def surely_shallow(written: bytes, most: int) -> bool:
    """Whether JSON nests at most so deep; False if a text in it has a bracket or a backslash, so that this is not told.

    Of the brackets, those that enclose nothing are taken away until none are left, a level at a time. To walk through
    the values would take three times as long.
    """
    # Without backslashes each text has two quotes, which stand together here unless there are brackets between them.
    outline = written.translate(None, _NO_BRACKETS).replace(b'""', b"")
    for _ in range(most // 2):
        outline = outline.replace(b"[]", b"").replace(b"{}", b"")
        if not outline:
            return True
    return False


def _in_whole_characters(read: dict[str, Any], where: str) -> dict[str, Any]:
    """Refuse half a surrogate pair, which JSON can write as an escape and no output can encode."""
    try:
        json.dumps(read, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise ClusterFileRefused(f"{where}: expected Unicode text, found half of a surrogate pair") from error
    return read


class _NotPlain(ValueError):
    """JSON that Python reads and that is not plain data: it has a key twice, or NaN."""


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise _NotPlain
    return made


def _no_number(_constant: str) -> Any:
    raise _NotPlain


def _refused(where: str, line: int, column: int, told: str) -> ClusterFileRefused:
    return ClusterFileRefused(f"{where}, line {line}, column {column}: {told}")
