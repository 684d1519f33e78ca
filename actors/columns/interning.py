"""Interning: equal values share one row, numbered in the order of first use."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

Value = TypeVar("Value", bound=Hashable)


class Interned(Generic[Value]):
    """Distinct values and their rows; those that it begins with come first."""

    def __init__(self, known: Iterable[Value] = ()) -> None:
        self._rows: dict[Value, int] = {}
        for value in known:
            self.row(value)

    def row(self, value: Value) -> int:
        """Row of a value, which is new if it was not known."""
        return self._rows.setdefault(value, len(self._rows))

    @property
    def values(self) -> tuple[Value, ...]:
        """All values, by row."""
        return tuple(self._rows)

    def __len__(self) -> int:
        return len(self._rows)
