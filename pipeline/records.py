"""Records: how one is made from another. There are several for each plan, so it has to take little time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Record = TypeVar("Record", bound="DataclassInstance")


def replace(record: Record, **values: Any) -> Record:
    """The record (a dataclass without slots and without ``__post_init__``) with other values of some fields.

    What ``dataclasses.replace`` makes, in a quarter of the time: a frozen dataclass sets its fields one by one.

    Raises
    ------
    TypeError
        For a field that there is not, and for a record with ``__post_init__``: nothing here would call it.
    """
    kind, known = type(record), record.__dict__
    names, twin = _NAMES.get(kind) or _named(kind), object.__new__(kind)
    made = twin.__dict__
    # What was derived from the record (a cached property) does not hold for its twin.
    made.update(known if len(known) == len(names) else {name: known[name] for name in names})
    made.update(values)
    if len(made) > len(names):
        raise TypeError(f"{kind.__name__}: expected {', '.join(names)}, found {', '.join(values)}")
    return twin


def several(record: Record, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[Record]:
    """Records like one from which nothing was derived yet, each with the values of a row in the fields ``names``."""
    kind, known, made = type(record), record.__dict__, list[Record]()
    for row in rows:
        twin = object.__new__(kind)
        twin.__dict__.update(known)
        twin.__dict__.update(zip(names, row, strict=True))
        made.append(twin)
    return made


#: By kind of record the names of its fields, as they are asked for.
_NAMES: dict[type, tuple[str, ...]] = {}


def _named(kind: Any) -> tuple[str, ...]:
    if hasattr(kind, "__post_init__"):
        raise TypeError(f"{kind.__name__}: expected a record without __post_init__, found one")
    _NAMES[kind] = tuple(one.name for one in fields(kind))
    return _NAMES[kind]
