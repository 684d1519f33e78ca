"""Cluster files as documents: from plain data, or one sentence about the first mistake."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from actors.cluster_file.cross_references import offences, overfilled
from actors.cluster_file.documents import ClusterDocument
from actors.cluster_file.plain_data import ClusterFileRefused, shown
from actors.documents.collector import collector_paused
from actors.documents.messages import key_path, keys_at, meant, one_sentence
from actors.documents.model import END_OF_TIME, FIRST_MOMENT, Document, Location, Offence
from actors.documents.state_limits import STATE_LIMITS, StateLimits

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


@collector_paused()
def read_cluster(document: Mapping[str, Any], most: StateLimits | None = STATE_LIMITS) -> ClusterDocument:
    """Validate a cluster file given as plain data.

    Parameters
    ----------
    most
        What it may hold; None if that is checked elsewhere.

    Raises
    ------
    ClusterFileRefused
        If anything in it is wrong; the message is about the first such key in the order of the document.
    """
    try:
        cluster = ClusterDocument.model_validate(document)
    except ValidationError as error:
        found = offences_in(error, ClusterDocument)
    else:
        found = [*offences(cluster, most, living=cluster.live)]
        found = found if found or cluster.live else [*overfilled(cluster)]
        if not found:
            return cluster
    first = min(found, key=lambda offence: _position(document, offence.where))
    raise ClusterFileRefused(_sentence(first), first.where)


@collector_paused()
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


def offences_in(error: ValidationError, model: type[Document]) -> list[Offence]:
    """The mistakes that pydantic found in a document of a model."""
    return [_offence(detail, model) for detail in error.errors(include_url=False)]


def _offence(error: ErrorDetails, model: type[Document]) -> Offence:
    kind, context = error["type"], error.get("ctx", {})
    where = tuple(step for step in error["loc"] if step != "[key]")
    found = None if kind == "missing" else error["input"]
    if kind == "extra_forbidden":
        return Offence(where, f"expected one of {', '.join(keys_at(model, where[:-1]))}", where[-1])
    if kind == "offence":
        expected = str(context["expected"])
    elif kind == "literal_error":
        expected = f"expected {context['expected']}"
    elif context.get("ge") == FIRST_MOMENT or context.get("lt") == END_OF_TIME:
        expected = "expected seconds since 1970, within the years 1 to 9999"
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


def _sentence(offence: Offence) -> str:
    hint = meant(offence.expected, offence.found)
    return f"{key_path(offence.where) or 'cluster file'}: {offence.expected}, found {shown(offence.found)}{hint}"
