"""Builds tables from documents: lists become columns, and equal values share a row."""

from __future__ import annotations

from collections import defaultdict
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
    """Collects rows of one table, column by column."""

    def __init__(self) -> None:
        self.columns: dict[str, list[Any]] = defaultdict(list)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, row: Mapping[str, Any]) -> None:
        """Append a row."""
        self._count += 1
        for name, value in row.items():
            self.columns[name].append(value)

    def table(self, kind: type[Table], more: Mapping[str, NDArray[Any]] = _NO_MORE, *, wide: int = 0) -> Table:
        """The rows as a table, with more columns; ``wide`` is the length of the resource axis, if the table has one."""
        columns: dict[str, NDArray[Any]] = {}
        for name, dtype in _TYPES[kind]:
            values = more.get(name)
            if values is None:
                values = np.array(self.columns.get(name, []), dtype)
            columns[name] = frozen(values, dtype)
        if wide and not self._count:
            columns["min_resources"] = frozen(np.zeros((0, wide)), np.int64)
        return kind(**columns)


def _types(kind: Any) -> tuple[tuple[str, Any], ...]:
    """Names of the columns of a table, and their types; NDArray[X] is ndarray[shape, dtype[X]]."""
    return tuple((each.name, get_args(get_args(each.type)[1])[0]) for each in fields(kind))


#: The same for every table that is built here, worked out once.
_TYPES = {kind: _types(kind) for kind in (Podgroups, Roles, Subgroups, Tasks)}


def numbers(names: Sequence[str]) -> Ids:
    """int32[M]: the number at the end of each name; NONE if there is none, or if it has ten digits or more."""
    digits = [name[len(name.rstrip("0123456789")) :] for name in names]
    return frozen([int(one) if 0 < len(one) < _LONG else NONE for one in digits], np.int32)


def ranks(created: Sequence[float] | Floats, names: Sequence[str]) -> Longs:
    """int64[M]: rank by (created, name)."""
    by_name = np.array(sorted(range(len(names)), key=names.__getitem__), np.int64)
    order = by_name[np.argsort(np.asarray(created, np.float64)[by_name], kind="stable")]
    result = np.empty(len(names), np.int64)
    result[order] = np.arange(len(names))
    return frozen(result, np.int64)
