"""Builds tables from documents: lists become columns, and equal values share a row."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import fields
from itertools import count
from typing import Any, Generic, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from pipeline.cluster.arrays import NONE, Floats, Ids, Longs, frozen
from pipeline.cluster.tables import Podgroups, Roles, Subgroups, Tasks

Table = TypeVar("Table", Podgroups, Roles, Subgroups, Tasks)
Value = TypeVar("Value", bound=Hashable)

_NO_MORE: Mapping[str, NDArray[Any]] = {}
#: A name that ends in more digits ends in a date or a hash, not in an index.
_LONG = 10
_NINE = 9


class Interned(Generic[Value]):
    """Distinct values and their rows, in the order of first use, after the initial ones."""

    def __init__(self, known: Iterable[Value] = ()) -> None:
        self._rows: dict[Value, int] = dict(zip(dict.fromkeys(known), count(), strict=False))

    def row(self, value: Value) -> int:
        """Row of a value; an unknown value gets the next row."""
        return self._rows.setdefault(value, len(self._rows))

    @property
    def values(self) -> tuple[Value, ...]:
        """All values, by row."""
        return tuple(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


class RowBuilder:
    """Collects the rows of one table, one after the other."""

    def __init__(self) -> None:
        self._rows: list[Mapping[str, Any]] = []

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, row: Mapping[str, Any]) -> None:
        """Append a row; all rows have the same names."""
        self._rows.append(row)

    @property
    def columns(self) -> dict[str, list[Any]]:
        """The values of all rows, by name."""
        return {name: [row[name] for row in self._rows] for name in (self._rows[0] if self._rows else ())}

    def table(self, kind: type[Table], more: Mapping[str, NDArray[Any]] = _NO_MORE, *, wide: int = 0) -> Table:
        """The rows as a table, with more columns; ``wide`` is the length of the resource axis, if the table has one."""
        no_rows = {"min_resources": np.zeros((0, wide), np.int64)} if wide and not self._rows else {}
        return table_of(kind, {**self.columns, **no_rows, **more})


def table_of(kind: type[Table], columns: Mapping[str, Any]) -> Table:
    """A table of these columns, by name; those that are not among them have no rows."""
    return kind(**{name: frozen(columns.get(name, ()), dtype) for name, dtype in _TYPES[kind]})


def _types(kind: Any) -> tuple[tuple[str, Any], ...]:
    """Names of the columns of a table, and their types; NDArray[X] is ndarray[shape, dtype[X]]."""
    return tuple((each.name, get_args(get_args(each.type)[1])[0]) for each in fields(kind))


#: The same for every table that is built here, worked out once.
_TYPES = {kind: _types(kind) for kind in (Podgroups, Roles, Subgroups, Tasks)}


def numbers(names: Sequence[str]) -> Ids:
    """int32[M]: the number at the end of each name; NONE if there is none, or if it has ten digits or more."""
    text = "".join(names)
    letters = np.frombuffer(text.encode(errors="surrogatepass"), np.uint8)
    sizes = map(len, names) if text.isascii() else (len(name.encode(errors="surrogatepass")) for name in names)
    size = np.fromiter(sizes, np.int64, len(names))
    end = np.cumsum(size)
    found, number, place = np.zeros(len(names), np.int64), np.zeros(len(names), np.int64), np.arange(len(names))
    for digits in range(_LONG):
        # Those whose letter here is a digit, as all after it are.
        place = place[size[place] > digits]
        digit = letters[end[place] - digits - 1].astype(np.int64) - ord("0")
        is_digit = (digit >= 0) & (digit <= _NINE)
        place, digit = place[is_digit], digit[is_digit]
        found[place] += 1
        number[place] += digit * 10**digits
    return frozen(np.where((found > 0) & (found < _LONG), number, NONE), np.int32)


def ranks(created: Sequence[float] | Floats, names: Sequence[str]) -> Longs:
    """int64[M]: rank by (created, name)."""
    by_name = np.array(sorted(range(len(names)), key=names.__getitem__), np.int64)
    order = by_name[np.argsort(np.asarray(created, np.float64)[by_name], kind="stable")]
    result = np.empty(len(names), np.int64)
    result[order] = np.arange(len(names))
    return frozen(result, np.int64)
