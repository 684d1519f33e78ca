"""Cluster files: from text to plain data to documents, or one sentence about the first mistake."""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast, get_args

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from actors.cluster_file.cross_references import offences, overfilled
from actors.cluster_file.documents import ClusterDocument
from actors.documents.messages import key_path, one_sentence
from actors.documents.model import Location, Offence
from actors.documents.safe_msgpack import deeper_than
from actors.documents.state_limits import STATE_LIMITS, StateLimits

_SHOWN, _DEEPEST, _MOST_VALUES = 60, 64, 20_000_000
#: What the kinds of pydantic's errors mean to the author of a file.
_EXPECTED = {
    "missing": "expected a value",
    "string_type": "expected text",
    "string_too_short": "expected text that is not empty",
    "string_pattern_mismatch": "expected a name without a slash",
    "int_type": "expected a whole number",
    "int_from_float": "expected a whole number",
    "float_type": "expected a number",
    "finite_number": "expected a finite number",
    "bool_type": "expected true or false",
    "dict_type": "expected a mapping",
    "model_type": "expected a mapping",
    "model_attributes_type": "expected a mapping",
    "tuple_type": "expected a list",
    "invalid_key": "expected keys that are text",
}


class ClusterFileRefused(ValueError):
    """A cluster file that cannot be used; the message is one sentence: where, what was expected, what was found."""


class _Loader(yaml.CSafeLoader):
    """YAML by the rules of version 1.2, where ``on`` is text and ``1e3`` a number; each key may be given once."""


_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", "~nN\0"),
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)", "-+0123456789"),
    ("float", r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[-+]?\.inf|\.nan", "-+.0123456789"),
    ("merge", r"<<", "<"),
):
    _Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}",
        re.compile(rf"^(?:{_pattern})$"),
        ["" if letter == "\0" else letter for letter in _first],
    )


def _construct_mapping(loader: _Loader, node: yaml.MappingNode) -> Iterator[dict[Hashable, Any]]:
    """Construct a mapping in two steps, as SafeLoader does, after checking that its keys are different texts."""
    seen = set()
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode) or key.tag not in ("tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"):
            raise yaml.constructor.ConstructorError(None, None, "expected a key that is text", key.start_mark)
        if key.value in seen:
            raise yaml.constructor.ConstructorError(
                None, None, f"expected each key once, found {_shown(key.value)} again", key.start_mark
            )
        seen.add(key.value)
    made: dict[Hashable, Any] = {}
    yield made
    made.update(loader.construct_mapping(node))


_Loader.add_constructor("tag:yaml.org,2002:map", _construct_mapping)


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


def _read(text: str, where: str, *, several: bool) -> list[dict[str, Any]]:
    mistake: json.JSONDecodeError | None = None
    if text.lstrip().startswith("{"):
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
        told = problem if problem.startswith("expected") else f"expected YAML: {problem}"
        raise _refused(where, line, column, told) from error
    except (yaml.YAMLError, ValueError) as error:
        raise ClusterFileRefused(f"{where}: expected YAML or JSON: {' '.join(str(error).split())}") from error
    for read in documents:
        if not isinstance(read, dict):
            raise ClusterFileRefused(f"{where}: expected a mapping, found {_shown(read)}")
    return documents


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


def read_cluster(document: Mapping[str, Any], most: StateLimits = STATE_LIMITS) -> ClusterDocument:
    """Validate a cluster file given as plain data.

    Parameters
    ----------
    most
        What it may hold.

    Raises
    ------
    ClusterFileRefused
        If anything in it is wrong; the message is about the first such key in the order of the document.
    """
    try:
        cluster = ClusterDocument.model_validate(document)
    except ValidationError as error:
        found = [_offence(detail) for detail in error.errors(include_url=False)]
    else:
        found = [*offences(cluster, most)] or [*overfilled(cluster)]
        if not found:
            return cluster
    raise ClusterFileRefused(_sentence(min(found, key=lambda offence: _position(document, offence.where))))


def read_leniently(document: Mapping[str, Any], most: StateLimits | None = None) -> ClusterDocument:
    """Validate a part of a cluster file from the wire: like a file, but unknown keys of newer writers are ignored.

    Parameters
    ----------
    most
        Bounds on its size; None if the size was checked before.

    Raises
    ------
    ClusterFileRefused
        With one sentence about the first mistake.
    """
    try:
        cluster = ClusterDocument.model_validate(document, extra="ignore")
    except ValidationError as refusal:
        raise ClusterFileRefused(one_sentence(refusal)) from refusal
    refuse_first(offences(cluster, most, living=True))
    return cluster


def refuse_first(found: Iterable[Offence]) -> None:
    """Raise `ClusterFileRefused` for the first offence, if there is one."""
    for offence in found:
        raise ClusterFileRefused(f"{key_path(offence.where)}: {offence.expected}, found {offence.found!r}")


def _position(document: Any, where: Location) -> tuple[int, ...]:
    """The place of a key in the document: its rank in each mapping and list on the path; last if it is missing."""
    position = []
    for step in where:
        if isinstance(document, Mapping):
            keys = list(document)
            position.append(keys.index(step) if step in document else len(keys))
            document = document.get(step)
        elif isinstance(document, Sequence) and isinstance(step, int):
            position.append(step)
            document = document[step] if step < len(document) else None
        else:
            position.append(0)
    return tuple(position)


def _offence(error: ErrorDetails) -> Offence:
    """An error of pydantic as an offence."""
    kind, context = error["type"], error.get("ctx", {})
    where = tuple(step for step in error["loc"] if step != "[key]")
    found = None if kind == "missing" else error["input"]
    if kind == "extra_forbidden":
        return Offence(where, f"expected one of {', '.join(_keys_at(where[:-1]))}", where[-1])
    if kind == "offence":
        expected = str(context["expected"])
    elif kind == "literal_error":
        expected = f"expected {context['expected']}"
    elif kind in ("greater_than_equal", "less_than_equal") and where == ("version",):
        expected = "expected 1"
    elif kind == "greater_than_equal":
        expected = f"expected at least {context['ge']:.15g}"
    elif kind in ("less_than", "less_than_equal"):
        expected = f"expected at most {context['le'] if 'le' in context else context['lt'] - 1}"
    elif kind == "string_too_long":
        expected = f"expected at most {context['max_length']} characters"
    else:
        expected = _EXPECTED.get(kind) or f"expected otherwise ({error['msg']})"
    return Offence(where, expected, found)


def _keys_at(where: Location) -> list[str]:
    """The keys that the document at a path may have."""
    model: type[BaseModel] = ClusterDocument
    for step in where:
        if isinstance(step, str) and step in model.model_fields:
            model = next(_models_in(model.model_fields[step].annotation), model)
    return list(model.model_fields)


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models_in(inner)


def _sentence(offence: Offence) -> str:
    return f"{key_path(offence.where) or 'cluster file'}: {offence.expected}, found {_shown(offence.found)}"


def _shown(value: Any) -> str:
    """A value as the file writes it, shortened."""
    if value is None:
        return "nothing"
    text = json.dumps(value, ensure_ascii=False, default=repr).encode(errors="backslashreplace").decode()
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
