"""Validation errors as one sentence: where, what was expected, what was found."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

_SHOWN = 60
_LISTED = "expected one of "
_PLAINLY = {"missing": "expected a value, found none", "extra_forbidden": "unknown key"}


def one_sentence(
    error: ValidationError, *, root: str = "", show_input: bool = True, model: type[BaseModel] | None = None
) -> str:
    """The first error with the path of its key, and how many more there are.

    Parameters
    ----------
    root
        Prefix of the path.
    show_input
        False if the input may be a secret.
    model
        What was validated: then an unknown key is answered with the one that was probably meant.
    """
    complaints = error.errors(include_url=False, include_context=False, include_input=show_input)
    # A key that is misspelled is unknown, and missing by its right name: the former says more.
    first = next((each for each in complaints if each["type"] == "extra_forbidden"), complaints[0])
    path = key_path(first["loc"], root)
    what = _PLAINLY.get(first["type"]) or first["msg"].removeprefix("Value error, ")
    what = what[:1].lower() + what[1:]
    if model is not None and first["type"] == "extra_forbidden":
        what += meant(f"{_LISTED}{', '.join(keys_at(model, first['loc'][:-1]))}", first["loc"][-1])
    found = ""
    if show_input and first["type"] not in _PLAINLY:
        shown = repr(first["input"])
        found = f", found {shown if len(shown) <= _SHOWN else shown[:_SHOWN] + '…'}"
    found += meant(what, first["input"]) if found else ""
    more = f" (and {len(complaints) - 1} more)" if len(complaints) > 1 else ""
    return f"{path + ': ' if path else ''}{what}{found}{more}"


def meant(expected: str, found: object) -> str:
    """The end of a sentence that names the word that was probably meant; "" if none is near.

    Parameters
    ----------
    expected
        A phrase such as ``expected one of a, b``; of other phrases nothing follows.
    """
    listed = expected.partition(" (")[0].removeprefix(_LISTED).split(", ") if expected.startswith(_LISTED) else []
    near = get_close_matches(str(found), listed, 1)
    return f"; did you mean {near[0]}?" if near else ""


def keys_at(model: type[BaseModel], where: tuple[int | str, ...]) -> list[str]:
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


def key_path(loc: tuple[int | str, ...], root: str = "") -> str:
    """A location as a path, ``nodes[3].labels.zone``."""
    path = root
    for step in loc:
        if isinstance(step, int):
            path += f"[{step}]"
        else:
            path += f".{step}" if path else step
    return path
