"""Columns that grow: there is room behind their rows, so that known rows are not copied where new ones are appended.

A column with more rows is then a longer view of the same memory. Rows of a column are never written again, and room is
given out once: a column that grows a second time is copied. So every column stays what it was.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

#: A column is given room for this part of its rows, and for this many more.
_PART, _MORE = 16, 64


class _Memory(np.ndarray[Any, Any]):
    """The memory of a column, and of those that it has grown to.

    Attributes
    ----------
    ends
        Where the room begins, as a key; empty while rows are appended.
    """

    ends: dict[int, bool]


def writable_copy(column: NDArray[Any], rows: int | None = None) -> NDArray[Any]:
    """A copy that may be written to, with room behind its rows; with ``rows``, of more rows than the column has."""
    count, shape = len(column), column.shape[1:]
    total = count if rows is None else rows
    memory: Any = np.ndarray.__new__(_Memory, (total + total // _PART + _MORE, *shape), column.dtype)
    memory.ends = {total: True}
    result: NDArray[Any] = np.ndarray((total, *shape), column.dtype, memory)
    result[:count] = column
    return result


def extended(column: NDArray[Any], more: NDArray[Any]) -> NDArray[Any]:
    """A read-only column (M rows) with ``more`` (K rows of the same type) appended: M + K rows, read-only."""
    count, total = len(column), len(column) + len(more)
    memory: Any = column.base
    # Two threads may append to one column: only one of them is given the room.
    if _is_its(memory, column, total) and memory.ends.pop(count, False):
        result = np.ndarray((total, *column.shape[1:]), column.dtype, memory)
        memory.ends[total] = True
    else:
        result = writable_copy(column, total)
    result[count:] = more
    result.flags.writeable = False
    return result


def _is_its(memory: Any, column: NDArray[Any], total: int) -> bool:
    """Whether the memory is that of a column that is not written any more, and has room for ``total`` rows."""
    if not isinstance(memory, _Memory) or total > len(memory) or column.flags.writeable:
        return False
    return column.flags.c_contiguous and (column.dtype, column.shape[1:]) == (memory.dtype, memory.shape[1:])
