"""YAML texts as plain data, within bounds; in a module of its own, since what reads JSON does without the parser."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator
from typing import Any, cast

import yaml

from actors.documents.messages import shown

_MOST_VALUES = 20_000_000


class NotYaml(ValueError):
    """A text that cannot be read; the message is a phrase that begins with ``expected``.

    Attributes
    ----------
    line, column
        Where, from 1; a line of None: of the text as a whole.
    """

    def __init__(self, told: str, line: int | None = None, column: int = 1) -> None:
        """Say what was expected, and where."""
        super().__init__(told)
        self.line, self.column = line, column


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
                None, None, f"expected each key once, found {shown(key.value)} again", key.start_mark
            )
        seen.add(key.value)
    made: dict[Hashable, Any] = {}
    yield made
    made.update(loader.construct_mapping(node))


_Loader.add_constructor("tag:yaml.org,2002:map", _construct_mapping)


def yaml_documents(text: str, deepest: int, *, several: bool) -> list[Any]:
    """The values of the documents in a YAML text that are not empty; of one document unless ``several``.

    Parameters
    ----------
    deepest
        How many levels of nesting there may be.

    Raises
    ------
    NotYaml
        If it cannot be read, gives a key twice, nests too deep or has too many values.
    """
    try:
        return _values(text, deepest, several)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark is not None else (1, 1)
        problem = error.problem or "found something else"
        told = problem if problem.startswith("expected") else f"expected YAML: {problem}"
        raise NotYaml(told, line, column) from error
    except (yaml.YAMLError, ValueError) as error:
        raise NotYaml(f"expected YAML or JSON: {' '.join(str(error).split())}") from error


def _values(text: str, deepest: int, several: bool) -> list[Any]:
    """The values of the documents.

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
        if len(open_ones) > deepest:
            problem = f"expected at most {deepest} levels of nesting, found more"
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
