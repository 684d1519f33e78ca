"""Orders of rows by keys, and what rows in order tell: ranks, kinds, how often each occurs."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.cluster.arrays import NONE, Bools, Codes, Ids, Longs, Rows, Whole, any_true, begins
from pipeline.kernels import kernel, linked

#: Bits of a packed sort key, the sign left out.
_KEY_BITS = 63
#: Up to this many numbers are sorted: to count them would take longer.
_FEW = 500
#: Up to this many rows are sorted key by key: to pack the keys would take longer.
_KEY_BY_KEY = 1500
#: Up to this many rows are sorted by insertion.
_SHORT = 64
#: Integers are close together if they lie among this many times as many numbers.
_SPREAD = 4
#: It pays to ask whether a key numbers the rows if there are this many.
_MANY = 4_096


def ordered_by(*keys: NDArray[Any]) -> Rows:
    """int64[M]: the rows in the order of ``keys``, the first key most significant; equal rows keep their order."""
    return _arranged(keys)[0] if len(keys[0]) > _KEY_BY_KEY else np.lexsort(tuple(map(_numbers, keys[::-1])))


def total_rank(*keys: NDArray[Any]) -> Longs:
    """int64[M]: ranks of rows by ``keys``, the first key most significant; equal rows keep their order."""
    result = np.empty(len(keys[0]), np.int64)
    result[ordered_by(*keys)] = np.arange(len(result))
    return result


def last_first(rows: Rows, owner: Rows, *keys: NDArray[Any]) -> Rows:
    """int64[M]: rows that lie in runs of one ``owner`` (int64[M]), of each run the last in the order of ``keys`` first.

    The keys tell all apart. Mostly the rows lie so already, which is seen in one pass.
    """
    columns = np.concatenate([comparable(key) for key in keys]).reshape(len(keys), len(rows))
    return np.asarray(_last_first(rows, owner, columns))


@kernel
def _last_first(rows: Rows, owner: Rows, keys: Longs) -> Rows:
    """The same; ``keys`` int64[L, M]. The leading keys that are the same in all of a run are not compared."""
    result, first = rows.copy(), 0
    while first < len(rows):
        stop, falling, lead = first + 1, True, len(keys) - 1
        while stop < len(rows) and owner[stop] == owner[first]:
            at = 0
            while at < lead and keys[at, stop] == keys[at, stop - 1]:
                at += 1
            lead, falling = at, falling and keys[at, stop] < keys[at, stop - 1]
            stop += 1
        if not falling:
            result[first:stop] = rows[_falling(first, stop, keys[lead:])]
        first = stop
    return result


@linked
def _falling(first: int, stop: int, keys: Longs) -> Rows:
    """The positions of a run, the last in the order of ``keys`` first; a few are sorted by insertion."""
    order = np.arange(first, stop)
    if len(order) > _SHORT:
        for key in keys[::-1]:
            order = order[np.argsort(key[order], kind="mergesort")]
        return order[::-1]
    for last in range(1, len(order)):
        mine, at, least = order[last], last, len(keys) - 1
        while at > 0:
            other, key = order[at - 1], 0
            while key < least and keys[key, mine] == keys[key, other]:
                key += 1
            if keys[key, mine] < keys[key, other]:
                break
            order[at] = other
            at -= 1
        order[at] = mine
    return order


def dense_rank(*keys: NDArray[Any]) -> Longs:
    """Rank rows by ``keys``, the first key most significant; equal rows share a rank, ranks have no gaps.

    NaN counts as infinite, here and in the other orders.

    Returns
    -------
    int64[M], smallest first.
    """
    if len(keys) == 1 and (counted := _counted(keys[0])) is not None:
        return counted[1]
    order, equal = _arranged(keys) if len(keys[0]) > _KEY_BY_KEY else _key_by_key(keys)
    result = np.empty(len(order), np.int64)
    result[order] = np.cumsum(~equal) - 1
    return result


def unique_inverse(values: NDArray[Any]) -> tuple[NDArray[Any], Rows]:
    """The different values [K] in rising order (or rows, of a table), and int64[K]: which of them each is.

    What ``numpy.unique`` says, several times as fast for a few hundred, and quickest where all are alike, as the tasks
    of a podgroup mostly are.
    """
    if len(values) and not any_true(values != values[0]):
        return values[:1], np.zeros(len(values), np.int64)
    if values.ndim > 1:
        kinds, kind = np.unique(values, axis=0, return_inverse=True)
        return kinds, kind.reshape(-1)
    counted = _counted(values) if len(values) > _FEW else None
    if counted is not None:
        return counted
    order = _order_of(values)
    ordered, kind = values[order], np.empty(len(values), np.int64)
    first = begins(ordered)
    kind[order] = first.cumsum() - 1
    return ordered[first], kind


def unique_counts(rows: NDArray[Whole]) -> tuple[NDArray[Whole], Longs]:
    """The ``distinct`` rows (integers [K]), and how often each occurs: as many integers, and int64."""
    first, many = first_of(rows)
    return rows[first], many


def first_of(values: NDArray[Any]) -> tuple[Rows, Longs]:
    """The first position of each distinct integer (int64), by ascending integer, and how often it occurs (int64)."""
    order = _order_of(values)
    ordered = values[order]
    edge = np.empty(len(ordered) + 1, bool)
    edge[0] = edge[-1] = True
    edge[1:-1] = ordered[1:] != ordered[:-1]
    start = edge.nonzero()[0]
    return order[start[:-1]], start[1:] - start[:-1]


def occurred_before(values: NDArray[Any]) -> Longs:
    """int64[K]: how often each integer has occurred before."""
    order = values.argsort(kind="stable")
    result = np.empty(len(values), np.int64)
    result[order] = np.arange(len(values)) - np.searchsorted(values[order], values[order])
    return result


def none_last(rows: Ids) -> Codes:
    """uint32[K]: row numbers as a key that puts NONE last: without its sign it is the largest number."""
    return rows.view(np.uint32)


def comparable(key: NDArray[Any]) -> Longs:
    """int64[M]: a key of an order as integers that compare alike; floats by their bits."""
    if key.dtype.kind != "f":
        return np.asarray(key, np.int64)
    bits = (_numbers(key).astype(np.float64) + 0.0).view(np.int64)  # there is one zero
    return np.where(bits < 0, bits ^ np.iinfo(np.int64).max, bits)


def _order_of(values: NDArray[Any]) -> Rows:
    """The positions of the values in ascending order; equal ones keep their order."""
    if len(values) > _FEW and values.dtype.kind in "biu":
        return _arranged((values,))[0]
    return values.argsort(kind="stable")


def _counted(values: NDArray[Any]) -> tuple[NDArray[Any], Rows] | None:
    """``unique_inverse`` of integers that are close together: marked and counted, not sorted."""
    if len(values) == 0 or values.dtype.kind != "i":
        return None
    low, high = int(values.min()), int(values.max())
    if high - low >= _SPREAD * len(values):
        return None
    at = values.astype(np.int64) - low
    present = np.zeros(high - low + 1, bool)
    present[at] = True
    kinds, rank = present.nonzero()[0], np.empty(len(present), np.int64)
    rank[kinds] = np.arange(len(kinds))
    return (kinds + low).astype(values.dtype), rank[at]


def _key_by_key(keys: tuple[NDArray[Any], ...]) -> tuple[Rows, Bools]:
    """The same as `_arranged`, for a few rows."""
    order, equal = ordered_by(*keys), np.ones(len(keys[0]), bool)
    equal[:1] = False
    for key in map(_numbers, keys):
        equal[1:] &= key[order[1:]] == key[order[:-1]]
    return order, equal


def _arranged(keys: tuple[NDArray[Any], ...]) -> tuple[Rows, Bools]:
    """The rows in the order of ``keys``; bool[M]: whether each of them, in that order, equals the one before.

    Later keys are read only where the earlier are equal.
    """
    many, numbered = len(keys[0]), _as_numbered(keys[-1])
    if numbered is not None:
        pack, bits, at = _packed(keys[:-1], many)
        if at == len(keys) - 1 and (bits or pack is None):  # what is left tells all rows apart
            return (numbered if pack is None else _by_digits(pack, bits, numbered)), np.zeros(many, bool)
    pack, bits, at = _packed(keys, many)
    order = np.arange(many)
    equal = order > 0
    if pack is not None:
        order = _by_pack(pack, bits)
        equal = ~begins(pack[order])
    while at < len(keys) and equal.any():
        tied = equal.copy()
        tied[:-1] |= equal[1:]
        rows = order[tied]
        pack, bits, more = _packed((key[rows] for key in keys[at:]), len(rows))
        at += more
        if pack is None:
            break
        run, by_pack = (~equal[tied]).cumsum(), _by_pack(pack, bits)
        ranked = by_pack if run[-1] == run[0] else _by_digits(run, int(run[-1]).bit_length(), by_pack)
        order[tied], equal[tied] = rows[ranked], ~(begins(pack[ranked]) | begins(run))
    return order, equal


def _by_pack(pack: NDArray[Any], bits: int) -> Rows:
    """Rows in the order of a key that ``_packed`` has made, equal ones as they come."""
    return _by_digits(pack, bits, np.arange(len(pack))) if bits else pack.argsort(kind="stable")


def _packed(keys: Iterable[NDArray[Any]], rows: int) -> tuple[NDArray[Any] | None, int, int]:
    """The leading keys packed into one, its number of bits, and how many keys it holds; or one key as it is (0 bits).

    No more are packed once they fill what `_by_digits` sorts in one go, since they mostly tell all rows apart by then.
    Integers are packed; a key that is the same in all rows is counted and adds no bits. None if all keys are such.
    """
    pack: NDArray[Any] | None = None
    bits, many, at_once = 0, 0, _KEY_BITS - _places(rows)
    for stated in keys:
        if rows == 0 or bits > at_once:
            break
        key, low, high = stated, np.minimum.reduce(stated), np.maximum.reduce(stated)
        if key.dtype.kind == "f" and low != high:
            key = comparable(key)
            low, high = key.min(), key.max()
        width = (int(high) - int(low)).bit_length() if low != high else 0
        if pack is not None and bits + width > _KEY_BITS:
            break
        many += 1
        if width > _KEY_BITS:
            return key, 0, many
        if width:
            mine = key.astype(np.int64) - int(low)
            pack, bits = mine if pack is None else (pack << width) | mine, bits + width
    return pack, bits, many


def _numbers(key: NDArray[Any]) -> NDArray[Any]:
    """A key without NaN, which counts as infinite."""
    if key.dtype.kind != "f" or not any_true(np.isnan(key)):
        return key
    return np.where(np.isnan(key), np.inf, key)


def _by_digits(pack: Longs, bits: int, order: Rows) -> Rows:
    """Rows in the order of a key of some bits, equal ones as in ``order``.

    NumPy sorts numbers several times as fast as it finds their order, so their places are sorted along with them.
    """
    places = _places(len(order))
    for shift in range(0, bits, _KEY_BITS - places):
        digit = (pack[order] >> shift) & ((1 << (_KEY_BITS - places)) - 1)
        placed = (digit << places) | np.arange(len(order))
        placed.sort()
        order = order[placed & ((1 << places) - 1)]
    return order


def _places(rows: int) -> int:
    """How many bits the places of some rows need."""
    return (rows - 1).bit_length()


def _as_numbered(key: NDArray[Any]) -> Rows | None:
    """The rows in the order of a key that gives each a number of its own from 0 on; None if it does not, or for few."""
    many = len(key)
    if many < _MANY or key.dtype.kind not in "iu" or key.min() != 0 or key.max() != many - 1:
        return None
    rows = np.full(many, NONE, np.int64)
    rows[key] = np.arange(many)
    return None if (rows == NONE).any() else rows
