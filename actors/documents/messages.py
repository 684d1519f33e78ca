"""Mistakes in documents as sentences: where, what was expected, what was found."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from actors.documents.model import END_OF_TIME, FIRST_MOMENT, Location, Offence

_SHOWN, _MANY = 60, 30
#: The longest key of a path that is shown whole, and the longest word that is compared with those that are known.
_LONGEST = 512
#: What would end a line, or move a terminal's cursor: names may hold it, and must not write lines of their own.
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
_LISTED = "expected one of "
#: What the kinds of pydantic's errors mean to the author of a document.
_EXPECTED = {
    "missing": "expected a value",
    "string_type": "expected text",
    "string_too_short": "expected text that is not empty",
    "int_type": "expected a whole number",
    "int_from_float": "expected a whole number",
    "int_parsing": "expected a whole number",
    "int_parsing_size": "expected a smaller number",
    "float_type": "expected a number",
    "float_parsing": "expected a number",
    "finite_number": "expected a finite number",
    "bool_type": "expected true or false",
    "bool_parsing": "expected true or false",
    "dict_type": "expected a mapping",
    "model_type": "expected a mapping",
    "model_attributes_type": "expected a mapping",
    "tuple_type": "expected a list",
    "list_type": "expected a list",
    "invalid_key": "expected keys that are text",
    "path_not_file": "expected a file that exists",
}
#: What the patterns of texts mean.
_PATTERNS = {r"^[^/]+$": "expected a name without a slash"}


def offences_in(error: ValidationError, model: type[BaseModel] | None = None) -> list[Offence]:
    """The mistakes that pydantic found in a document.

    Parameters
    ----------
    model
        What was validated: then an unknown key is answered with the keys that are known.
    """
    return [_offence(detail, model) for detail in error.errors(include_url=False)]


def one_sentence(
    error: ValidationError, *, root: str = "", model: type[BaseModel] | None = None, secret: tuple[str, ...] = ()
) -> str:
    """The first mistake, and how many more there are.

    Parameters
    ----------
    root
        Prefix of the path.
    model
        See `offences_in`.
    secret
        First steps of paths below which no value is shown, nor is the value of the whole document.
    """
    found, kinds = offences_in(error, model), [detail["type"] for detail in error.errors(include_url=False)]
    # A key that is misspelled is unknown, and missing by its right name: the former says more.
    unknown = "extra_forbidden" in kinds
    first = found[kinds.index("extra_forbidden") if unknown else 0]
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    hidden = bool(secret) and not unknown and (not first.where or first.where[0] in secret)
    return f"{sentence(first, key_path(first.where, root), hidden=hidden)}{more}"


def sentence(offence: Offence, where: str, *, hidden: bool = False) -> str:
    """A mistake as one sentence, with the word that was probably meant; ``hidden``: without what was found."""
    hint = "" if hidden else meant(offence.expected, offence.found)
    found = "" if hidden else f", found {shown(offence.found)}{hint}"
    names = _names(offence.expected)
    # A long list helps only where no word is near.
    expected = f"{_LISTED}{len(names)} names" if hint and len(names) > _MANY else offence.expected
    return f"{where}{': ' if where else ''}{expected}{found}"


def shown(value: Any) -> str:
    """A value as a file writes it, shortened."""
    if value is None:
        return "nothing"
    try:
        text = json.dumps(value, ensure_ascii=False, default=repr).encode(errors="backslashreplace").decode()
    except TypeError:  # keys that no file can write
        text = repr(value)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


def _offence(error: ErrorDetails, model: type[BaseModel] | None) -> Offence:
    kind, context = error["type"], error.get("ctx", {})
    where = tuple(step for step in error["loc"] if step != "[key]")
    if kind == "extra_forbidden":
        known = f"{_LISTED}{', '.join(keys_at(model, where[:-1]))}" if model is not None else "expected no such key"
        return Offence(where, known, where[-1])
    return Offence(where, _expected(kind, context, where, error["msg"]), None if kind == "missing" else error["input"])


def _expected(kind: str, context: dict[str, Any], where: Location, told: str) -> str:
    """What pydantic expected; ``told`` is how it says that itself."""
    if kind in ("offence", "literal_error"):
        return f"{'expected ' if kind == 'literal_error' else ''}{context['expected']}"
    if context.get("ge") == FIRST_MOMENT or context.get("lt") == END_OF_TIME:
        return "expected seconds since 1970, within the years 1 to 9999"
    if kind in ("greater_than_equal", "less_than_equal") and where == ("version",):
        return "expected 1"
    if kind == "greater_than_equal":
        return f"expected at least {context['ge']:.15g}"
    if kind == "greater_than":
        return f"expected more than {context['gt']:.15g}"
    if kind in ("less_than", "less_than_equal"):
        most = context["le"] if "le" in context else context["lt"] - 1
        return f"expected at most {most if isinstance(most, int) else f'{most:.15g}'}"
    if kind == "string_too_long":
        return f"expected at most {context['max_length']} characters"
    if kind == "string_pattern_mismatch":
        return _PATTERNS.get(context["pattern"], f"expected text that matches {context['pattern']}")
    if kind == "value_error":
        return told.removeprefix("Value error, ")
    return _EXPECTED.get(kind) or f"expected otherwise ({told})"


def meant(expected: str, found: object) -> str:
    """The end of a sentence that names the word that was probably meant; "" if none is near.

    Parameters
    ----------
    expected
        A phrase such as ``expected one of a, b``; of other phrases nothing follows.
    """
    word = str(found)
    near = get_close_matches(word, _names(expected), 1) if len(word) <= _LONGEST else []
    return f"; did you mean {near[0]}?" if near else ""


def _names(expected: str) -> list[str]:
    """The names that a phrase lists; none if it lists none."""
    return expected.partition(" (")[0].removeprefix(_LISTED).split(", ") if expected.startswith(_LISTED) else []


def keys_at(model: type[BaseModel], where: Location) -> list[str]:
    """The keys that a document of a model may have at a path."""
    for step in where:
        if isinstance(step, str) and step in model.model_fields:
            model = next(_models_in(model.model_fields[step].annotation), model)
    return list(model.model_fields)


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models_in(inner)


def key_path(loc: Location, root: str = "") -> str:
    """A location as a path, ``nodes[3].labels.zone``."""
    path = root
    for step in loc:
        if isinstance(step, int):
            path += f"[{step}]"
        else:
            key = step if len(step) <= _LONGEST else f"{step[:_SHOWN]}…"
            path += f".{key}" if path else key
    return path


def on_one_line(text: str) -> str:
    """The text with its control characters as escapes."""
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
