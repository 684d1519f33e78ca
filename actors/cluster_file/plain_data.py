"""Cluster files as plain data: from text in YAML or JSON, or one sentence about the first mistake."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Hashable, Iterator
from pathlib import Path
from typing import Any, cast

import msgspec
import yaml

from actors.documents.bounded_files import CLUSTER_BYTES, FileRefused, text_of
from actors.documents.collector import collector_paused
from actors.documents.messages import shown
from actors.documents.safe_msgpack import deeper_than

_DEEPEST, _MOST_VALUES = 64, 20_000_000
#: All bytes but brackets, and what says where texts begin and end.
_NO_BRACKETS = bytes(set(range(256)) - set(b'[]{}"\\'))


class ClusterFileRefused(ValueError):
    """A cluster file that cannot be used; the message is one sentence: where, what was expected, what was found.

    Attributes
    ----------
    where
        The path of the mistake in the file; empty if it has none.
    """

    def __init__(self, told: str, where: tuple[int | str, ...] = ()) -> None:
        super().__init__(told)
        self.where = where


class _Loader(yaml.CSafeLoader):
    """YAML by the rules of version 1.2, where ``on`` is text and ``1e3`` a number; each key may be given once."""


def _constructed_if(expected: str, pattern: str, construct: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """A constructor that refuses what does not match: a tag can be written before any text, such as ``!!bool 3``."""

    def constructed(loader: _Loader, node: Any) -> Any:
        text = loader.construct_scalar(node)
        try:
            if re.fullmatch(pattern, text) is not None:
                return construct(loader, node)
        except ValueError as error:  # thousands of digits
            raise yaml.constructor.ConstructorError(
                None, None, f"{expected} that is shorter", node.start_mark
            ) from error
        raise yaml.constructor.ConstructorError(None, None, f"{expected}, found {shown(text)}", node.start_mark)

    return constructed


_Loader.yaml_implicit_resolvers, _Loader.yaml_constructors = {}, {}
for _kind, _expected, _pattern, _first in (
    ("null", "expected null", r"~|null|Null|NULL|", "~nN\0"),
    ("bool", "expected true or false", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", "expected a whole number", r"[-+]?(?:0|[1-9][0-9]*)", "-+0123456789"),
    (
        "float", "expected a number", r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[-+]?\.inf|\.nan",
        "-+.0123456789",
    ),
    ("merge", "", r"<<", "<"),
):  # fmt: skip
    _tag = f"tag:yaml.org,2002:{_kind}"
    _Loader.add_implicit_resolver(
        _tag, re.compile(rf"^(?:{_pattern})$"), ["" if letter == "\0" else letter for letter in _first]
    )
    if _expected:
        _Loader.add_constructor(_tag, _constructed_if(_expected, _pattern, yaml.CSafeLoader.yaml_constructors[_tag]))
for _kind in ("str", "seq"):
    _tag = f"tag:yaml.org,2002:{_kind}"
    _Loader.add_constructor(_tag, yaml.CSafeLoader.yaml_constructors[_tag])
_Loader.add_constructor(None, yaml.CSafeLoader.yaml_constructors[None])


def _construct_mapping(loader: _Loader, node: yaml.MappingNode) -> Iterator[dict[Hashable, Any]]:
    """Construct a mapping in two steps, as SafeLoader does, after checking that its keys are different texts."""
    seen = set()
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode) or key.tag not in ("tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"):
            raise yaml.constructor.ConstructorError(None, None, "expected a key that is text", key.start_mark)
        if key.value in seen:
            raise yaml.constructor.ConstructorError(
                None, None, f"expected each key once, found {shown(key.value)} again", key.start_mark
            )
        seen.add(key.value)
    made: dict[Hashable, Any] = {}
    yield made
    made.update(loader.construct_mapping(node))


_Loader.add_constructor("tag:yaml.org,2002:map", _construct_mapping)


def text_to_read(file: Path, most_bytes: int = CLUSTER_BYTES) -> str:
    """The text of a file, or of standard input for ``-``.

    Raises
    ------
    ClusterFileRefused
        If it cannot be read, is larger than ``most_bytes``, or is not UTF-8.
    """
    try:
        return text_of(file, most_bytes)
    except FileRefused as refusal:
        raise ClusterFileRefused(f"{file}: {refusal}") from refusal
    except (OSError, ValueError) as error:
        raise ClusterFileRefused(f"{file}: expected a readable UTF-8 file, found: {error}") from error


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
    try:
        documents = _plain(text, several)
    except yaml.MarkedYAMLError as error:
        if mistake is not None:
            raise _refused(where, mistake.lineno, mistake.colno, f"expected JSON or YAML: {mistake.msg}") from error
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark is not None else (1, 1)
        problem = error.problem or "found something else"
        if mark is not None and text[mark.index : mark.index + 1] == "\t":
            problem = "expected spaces before a key, found a tab"
        told = problem if problem.startswith("expected") else f"expected YAML: {problem}"
        raise _refused(where, line, column, told) from error
    except (yaml.YAMLError, ValueError) as error:
        raise ClusterFileRefused(f"{where}: expected YAML or JSON: {' '.join(str(error).split())}") from error
    for read in documents:
        if not isinstance(read, dict):
            raise ClusterFileRefused(f"{where}: expected a mapping, found {shown(read)}")
    return documents


def _quickly(text: str) -> dict[str, Any]:
    """JSON in which nothing is wrong, as plain data; ValueError if that cannot be told quickly.

    Written out again it has as many colons as before: a key that was given twice is written once, with at least one
    colon less. Only an escaped colon can add one that the text does not have.
    """
    read = msgspec.json.decode(text)
    again = msgspec.json.encode(read)  # refuses half a surrogate pair
    if "\\u003" in text or again.count(b":") != text.count(":"):
        raise _NotPlain
    if not surely_shallow(again, _DEEPEST) and deeper_than(read, _DEEPEST):
        raise _NotPlain
    return cast("dict[str, Any]", read)


def surely_shallow(written: bytes, most: int) -> bool:
    """Whether JSON nests at most this deep; also False if a text in it has a bracket or a backslash, which hide it.

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


def _plain(text: str, several: bool) -> list[Any]:
    """The values of the documents in a YAML text that are not empty; of one document unless ``several``.

    The compiled parser overflows its stack on deep nesting, and a few aliases of aliases make more values than fit into
    memory, so both are ruled out first.
    """
    sizes: dict[str, int] = {}
    open_ones: list[tuple[str | None, int]] = []
    size = 0
    for event in yaml.parse(text, _Loader):
        problem = None
        if isinstance(event, yaml.AliasEvent):
            if any(anchor == event.anchor for anchor, _ in open_ones):
                problem = f"expected no alias of what it stands in, found *{event.anchor}"
            size += sizes.get(event.anchor or "", 1)
        elif isinstance(event, yaml.CollectionStartEvent):
            open_ones.append((event.anchor, size))
            size += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = open_ones.pop()
            if anchor is not None:
                sizes[anchor] = size - before
        elif isinstance(event, yaml.ScalarEvent):
            size += 1
        if len(open_ones) > _DEEPEST:
            problem = f"expected at most {_DEEPEST} levels of nesting, found more"
        if size > _MOST_VALUES:
            problem = f"expected at most {_MOST_VALUES} values, found more"
        if problem is not None:
            raise yaml.composer.ComposerError(None, None, problem, cast("yaml.Mark", event.start_mark))
    loader = _Loader(text)
    if not several:
        return [loader.get_single_data()]
    found = []
    while loader.check_data():  # type: ignore[no-untyped-call]  # its stubs leave it untyped
        found.append(loader.get_data())
    return [read for read in found if read is not None]


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
