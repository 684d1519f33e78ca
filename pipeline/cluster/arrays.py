"""Array types, sentinels, and what every table does with its arrays: to freeze, to change, sets of rows."""

from collections.abc import Iterable, Sequence
from itertools import accumulate
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
#: Nothing was stated (a quantity column of queues and podgroups).
UNSET = -(1 << 60)

#: Bits of the second number of a pair.
_SECOND_BITS = 32


def frozen(values: Any, dtype: Any) -> NDArray[Any]:
    """Return ``values`` as a contiguous read-only array of ``dtype``; an array that already is one is shared."""
    array = np.ascontiguousarray(values, dtype=dtype)
    if array.flags.writeable:
        if array is values or array.base is not None:
            array = array.copy()
        array.setflags(write=False)
    return array


#: No rows at all.
NO_ROWS: Rows = frozen([], np.int64)


def sealed(array: Made) -> Made:
    """The array itself, made read-only; for an array that was just made and is not shared."""
    array.setflags(write=False)
    return array


def any_true(flags: Bools) -> bool:
    """What ``flags.any()`` says, in a seventh of its time for a few hundred: a flag is a byte."""
    return 1 in flags.tobytes()


def all_true(flags: Bools) -> bool:
    """The same for ``flags.all()``."""
    return 0 not in flags.tobytes()


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


def sizes(stop: Longs) -> Longs:
    """int64[K]: how many rows each run has; run ``k`` ends before ``stop[k]``, where the next one begins."""
    size = stop.copy()
    size[1:] -= stop[:-1]
    return size


def mask_of(rows: Any, count: int) -> Bools:
    """bool[count]: true at ``rows``."""
    mask = np.zeros(count, np.bool_)
    mask[rows] = True
    return mask


def running_sums(values: NDArray[Any]) -> Longs:
    """int64[N + 1, ...]: the sum of the rows before each of ``values`` (whole numbers [N, ...]); last of all."""
    result = np.zeros((len(values) + 1, *values.shape[1:]), np.int64)
    np.cumsum(values, axis=0, out=result[1:])
    return result


def sums_of_slices(values: NDArray[Any], start: Longs, stop: Longs) -> Longs:
    """int64[D, ...]: the sums of the rows ``start:stop`` of ``values`` [N, ...], for each of some slices (int64[D])."""
    upto = running_sums(values)
    return np.asarray(upto[stop] - upto[start])


def with_rows(column: NDArray[Any], rows: NDArray[Any], values: Any) -> NDArray[Any]:
    """A read-only copy of ``column`` in which ``rows`` hold ``values``."""
    changed = column.copy()
    changed[rows] = values
    changed.flags.writeable = False
    return changed


def distinct(rows: NDArray[Whole]) -> NDArray[Whole]:
    """Rows (integers [K]) ascending, each once. Sorting is faster for integers than NumPy's ``unique``."""
    ordered = rows.copy()
    ordered.sort()
    return ordered[begins(ordered)]


def begins(ordered: NDArray[Any]) -> Bools:
    """bool[K]: where a new value begins, in values that are in order."""
    first = np.empty(len(ordered), bool)
    first[:1] = True
    first[1:] = ordered[1:] != ordered[:-1]
    return first


def is_among(values: NDArray[Any], some: Any) -> Bools:
    """bool[K]: which of the integers ``values`` are among ``some``.

    What ``numpy.isin`` says, and several times as fast for a few hundred; for whole columns that one is faster.
    """
    if len(some) == 0:
        return np.zeros(len(values), bool)
    ordered = np.array(some)
    ordered.sort()
    at = ordered.searchsorted(values)
    found: Bools = ordered.take(at, mode="clip") == values  # what is greater than all of them equals none
    return found


def without(rows: NDArray[Whole], some: NDArray[Any]) -> NDArray[Whole]:
    """The ``distinct`` rows (integers [K]) that are not among ``some``."""
    return distinct(rows[~is_among(rows, some)])


def joined(several: Iterable[Rows]) -> Rows:
    """int64[K]: rows one after the other; none of none."""
    return np.concatenate([NO_ROWS, *several])


def in_a_row(sets: Sequence[Rows]) -> tuple[Rows, Longs]:
    """The rows of several sets one after the other (int64[K]), and where those of each begin (int64[S + 1])."""
    if len(sets) == 1:
        return sets[0], np.array([0, len(sets[0])])
    return np.concatenate(sets) if len(sets) else NO_ROWS, np.array([0, *accumulate(map(len, sets))])


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
