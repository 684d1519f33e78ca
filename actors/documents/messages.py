"""Validation errors as one sentence: where, what was expected, what was found."""

from __future__ import annotations

from pydantic import ValidationError

_SHOWN = 60
_PLAINLY = {"missing": "expected a value, found none", "extra_forbidden": "unknown key"}


def one_sentence(error: ValidationError, *, root: str = "", show_input: bool = True) -> str:
    """The first error with the path of its key, and how many more there are.

    Parameters
    ----------
    root
        Prefix of the path.
    show_input
        False if the input may be a secret.
    """
    complaints = error.errors(include_url=False, include_context=False, include_input=show_input)
    first = complaints[0]
    path = key_path(first["loc"], root)
    what = _PLAINLY.get(first["type"]) or first["msg"].removeprefix("Value error, ")
    what = what[:1].lower() + what[1:]
    found = ""
    if show_input and first["type"] not in _PLAINLY:
        shown = repr(first["input"])
        found = f", found {shown if len(shown) <= _SHOWN else shown[:_SHOWN] + '…'}"
    more = f" (and {len(complaints) - 1} more)" if len(complaints) > 1 else ""
    return f"{path + ': ' if path else ''}{what}{found}{more}"


def key_path(loc: tuple[int | str, ...], root: str = "") -> str:
    """A location as a path, ``nodes[3].labels.zone``."""
    path = root
    for step in loc:
        if isinstance(step, int):
            path += f"[{step}]"
        else:
            path += f".{step}" if path else step
    return path
