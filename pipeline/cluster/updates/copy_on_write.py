"""Copy on write: a table that is being changed; only the columns that change are copied."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any, Generic, TypeVar

from numpy.typing import NDArray

from pipeline.cluster.growing import extended, writable_copy
from pipeline.records import replace

Table = TypeVar("Table", bound=Any)


class WritableTable(Generic[Table]):
    """Columns of one table, copied when first asked for by name; ``done`` freezes them into a new table."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._columns: dict[str, NDArray[Any]] = {}

    def __getitem__(self, column: str) -> NDArray[Any]:
        if column not in self._columns:
            self._columns[column] = writable_copy(getattr(self._table, column))
        return self._columns[column]

    def __setitem__(self, column: str, values: NDArray[Any]) -> None:
        self._columns[column] = values

    def done(self) -> Table:
        """The table with the changed columns; the others are shared. This one must not be used afterwards."""
        for column in self._columns.values():
            column.flags.writeable = False
        result: Table = replace(self._table, **self._columns)
        return result


def appended(table: Table, rows: Table) -> Table:
    """``table`` with ``rows`` appended."""
    if len(rows) == 0:
        return table
    return _columnwise(table, lambda name: extended(getattr(table, name), getattr(rows, name)))


def picked(table: Table, rows: NDArray[Any]) -> Table:
    """The rows of ``table`` at ``rows``, in that order."""
    return _columnwise(table, lambda name: getattr(table, name)[rows])


def _columnwise(table: Table, column: Callable[[str], NDArray[Any]]) -> Table:
    columns = {field.name: column(field.name) for field in fields(table)}
    for values in columns.values():
        values.flags.writeable = False
    result: Table = type(table)(**columns)
    return result
