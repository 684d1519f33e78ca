"""Array types, sentinels and the few array operations that every table uses."""

from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

Bools: TypeAlias = NDArray[np.bool_]
Bytes: TypeAlias = NDArray[np.uint8]
Ids: TypeAlias = NDArray[np.int32]
Counts: TypeAlias = NDArray[np.int32]
Codes: TypeAlias = NDArray[np.uint32]
Longs: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Rows: TypeAlias = NDArray[np.int64]

Made = TypeVar("Made", bound=NDArray[Any])
Whole = TypeVar("Whole", bound=np.signedinteger[Any])

#: No row: the foreign key of something absent.
NONE = -1
#: No bound. Far below the int64 maximum, so that sums and differences of a few such values cannot overflow.
UNLIMITED = 1 << 60
#: Bits of a packed sort key, the sign left out.
_KEY_BITS = 63
_DIGIT_BITS = 16
#: From so many rows on, it pays to ask whether a key numbers them.
_MANY = 4_096
#: Bits of the second number of a pair.
_SECOND_BITS = 32
#: Nothing was stated (a quantity column of queues and podgroups).
UNSET = -(1 << 60)


def frozen(values: Any, dtype: Any) -> NDArray[Any]:
    """Return ``values`` as a contiguous read-only array of ``dtype``; an array that already is one is shared."""
    array = np.ascontiguousarray(values, dtype=dtype)
    if array.flags.writeable:
        if array is values or array.base is not None:
            array = array.copy()
        array.flags.writeable = False
    return array


#: No rows at all.
NO_ROWS: Rows = frozen([], np.int64)


def sealed(array: Made) -> Made:
    """The array itself, made read-only; for an array that was just made and is not shared."""
    array.flags.writeable = False
    return array


def offsets(owners: NDArray[Any], count: int) -> Longs:
    """Offsets of the runs of each owner in a table sorted by owner.

    Parameters
    ----------
    owners
        int[M], ascending, each in ``[0, count)``.
    count
        How many owners there are.

    Returns
    -------
    int64[count + 1]; owner ``i`` has rows ``result[i]:result[i + 1]``.
    """
    result = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(owners, minlength=count), out=result[1:])
    return frozen(result, np.int64)


def with_rows(column: NDArray[Any], rows: NDArray[Any], values: Any) -> NDArray[Any]:
    """A read-only copy of ``column`` in which ``rows`` hold ``values``."""
    changed = column.copy()
    changed[rows] = values
    changed.flags.writeable = False
    return changed


def distinct(rows: NDArray[Whole]) -> NDArray[Whole]:
    """Rows (integers [K]) ascending, each once. Sorting is faster for integers than NumPy's ``unique``."""
    ordered = np.sort(rows)
    first = np.ones(len(ordered), bool)
    first[1:] = ordered[1:] != ordered[:-1]
    return ordered[first]


def is_among(values: NDArray[Any], some: Any) -> Bools:
    """bool[K]: which of the integers ``values`` are among ``some``.

    What ``numpy.isin`` says, and several times as fast for a few hundred; for whole columns that one is faster.
    """
    if len(some) == 0:
        return np.zeros(len(values), bool)
    ordered = np.sort(some)
    at = np.searchsorted(ordered, values)
    at[at == len(ordered)] = 0
    return np.asarray(ordered[at] == values)


def kinds_of(values: NDArray[Any]) -> tuple[NDArray[Any], Rows]:
    """The different values in rising order (or rows, of a table), and which of them each is.

    What ``numpy.unique`` says, several times as fast for a few hundred, and quickest where all are alike, as the tasks
    of a podgroup mostly are.
    """
    if len(values) and (values == values[0]).all():
        return values[:1], np.zeros(len(values), np.int64)
    if values.ndim > 1:
        kinds, kind = np.unique(values, axis=0, return_inverse=True)
        return kinds, kind.reshape(-1)
    order = np.argsort(values, kind="stable")
    ordered, kind = values[order], np.empty(len(values), np.int64)
    first = np.ones(len(values), bool)
    first[1:] = ordered[1:] != ordered[:-1]
    kind[order] = np.cumsum(first) - 1
    return ordered[first], kind


def paired(first: NDArray[Any], second: NDArray[Any]) -> Longs:
    """int64[K]: each pair of integers as one, in the order of pairs; see `unpaired`.

    Parameters
    ----------
    first, second
        int[K], each at least NONE and within 32 bits.
    """
    return np.asarray((first.astype(np.int64) << _SECOND_BITS) + (second.astype(np.int64) - NONE))


def unpaired(pairs: Longs) -> tuple[Longs, Longs]:
    """The two numbers (int64[K] each) of pairs that ``paired`` has made."""
    return pairs >> _SECOND_BITS, (pairs & ((1 << _SECOND_BITS) - 1)) + NONE


def dense_rank(*keys: NDArray[Any]) -> Longs:
    """Rank rows by ``keys``, the first key most significant; equal rows share a rank, ranks have no gaps.

    Returns
    -------
    int64[M], smallest first.
    """
    if len(keys[0]) == 0:
        return np.zeros(0, np.int64)
    order = _key_by_key(keys)
    new = np.zeros(len(order), bool)
    for key in keys:
        arranged = key[order]
        new[1:] |= arranged[1:] != arranged[:-1]
    result = np.empty(len(order), np.int64)
    result[order] = np.cumsum(new)
    return result


def _key_by_key(keys: tuple[NDArray[Any], ...]) -> Rows:
    """What ``numpy.lexsort`` says of ``keys`` in reverse. The others are read only where the first is equal."""
    order: Rows = np.argsort(keys[0], kind="stable")
    if len(keys) == 1:
        return order
    equal = keys[0][order[1:]] == keys[0][order[:-1]]
    tied = np.append(equal, False) | np.append(False, equal)
    if not tied.any():
        return order
    rows = order[tied]
    order[tied] = rows[np.lexsort((*(key[rows] for key in keys[:0:-1]), keys[0][rows]))]
    return order


def total_rank(*keys: NDArray[Any]) -> Longs:
    """int64[M]: ranks of rows by ``keys``, the first key most significant; the last key tells all rows apart."""
    result = np.empty(len(keys[0]), np.int64)
    result[ordered_by(*keys)] = np.arange(len(result))
    return result


def ordered_by(*keys: NDArray[Any]) -> Rows:
    """int64[M]: the rows in the order of ``keys``, the first key most significant; equal rows as they come."""
    order = _digit_by_digit(keys)
    return _key_by_key(keys) if order is None else order


def _digit_by_digit(keys: tuple[NDArray[Any], ...]) -> Rows | None:
    """The order of rows by ``keys``, packed into one integer and sorted by its digits; None if its bits are too few.

    NumPy sorts 16-bit integers by counting, several times as fast as it compares longer ones. A last key that numbers
    the rows need not be sorted at all.
    """
    packed, bits, numbered = np.zeros(len(keys[0]), np.int64), 0, _as_numbered(keys[-1])
    keys = keys if numbered is None else keys[:-1]
    for key in keys if len(packed) else ():
        if key.dtype.kind not in "biu":
            if (key == key[0]).all():
                continue
            return None
        low = int(key.min())
        width = (int(key.max()) - low).bit_length()
        bits += width
        if bits > _KEY_BITS:
            return None
        if width:
            packed = (packed << width) | (key.astype(np.int64) - low)
    order = np.argsort(packed.astype(np.uint16), kind="stable") if numbered is None else numbered
    for shift in range(_DIGIT_BITS if numbered is None else 0, bits, _DIGIT_BITS):
        order = order[np.argsort((packed[order] >> shift).astype(np.uint16), kind="stable")]
    return np.asarray(order, np.int64)


def _as_numbered(key: NDArray[Any]) -> Rows | None:
    """The rows in the order of a key that gives each a number of its own from 0 on; None if it does not, or for few."""
    many = len(key)
    if many < _MANY or key.dtype.kind not in "iu" or key.min() != 0 or key.max() != many - 1:
        return None
    rows = np.full(many, NONE, np.int64)
    rows[key] = np.arange(many)
    return None if (rows == NONE).any() else rows
