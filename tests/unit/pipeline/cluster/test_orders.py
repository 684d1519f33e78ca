"""Orders: rows are put in order, ranked and told apart quickly, as NumPy does it."""

import numpy as np
import pytest

from pipeline.cluster.arrays import NONE
from pipeline.cluster.orders import (
    _last_first,
    dense_rank,
    first_of,
    last_first,
    none_last,
    ordered_by,
    unique_counts,
    unique_inverse,
)

LINES = ([], [3], [3, 3, 3], [5, 3, 5, 1], [-1, 0], [2, 90, 2, 7])
#: Numbers of rows that are sorted key by key, and by packed keys.
FEW_AND_MANY = (200, 2_000)
TABLES = ([[1, 2]], [[1, 2], [1, 2]], [[1, 2], [1, 1], [0, 9], [1, 2]], [[7], [7]], [[7], [3]])


@pytest.mark.parametrize("values", [*LINES, *TABLES, [7, -3, 5] * 500], ids=lambda values: str(values[:4]))
def test_kinds_are_those_that_numpy_finds(values: list[int] | list[list[int]]) -> None:
    table = np.array(values, np.int32)
    kinds, kind = unique_inverse(table)
    expected, which = np.unique(table, axis=0, return_inverse=True)
    assert kinds.dtype == expected.dtype
    assert kinds.tolist() == expected.tolist()
    assert kind.tolist() == which.reshape(-1).tolist()
    assert kinds[kind].tolist() == values


def test_none_comes_last_and_numbers_in_their_order() -> None:
    rows = np.array([3, NONE, 0, (1 << 31) - 1, NONE, 5], np.int32)
    assert np.argsort(none_last(rows), kind="stable").tolist() == [2, 0, 5, 3, 1, 4]


@pytest.mark.parametrize("many", FEW_AND_MANY)
@pytest.mark.parametrize("wide", [10, 1 << 40])
def test_rows_are_ordered_as_numpy_orders_them(wide: int, many: int) -> None:
    rng = np.random.default_rng(0)
    keys = [rng.integers(0, 3, many), -rng.integers(0, wide, many), rng.integers(0, wide, many)]
    assert ordered_by(*keys).tolist() == np.lexsort(keys[::-1]).tolist()
    assert ordered_by(keys[0], np.zeros(many)).tolist() == np.argsort(keys[0], kind="stable").tolist()
    assert ordered_by(np.zeros(0, np.int64)).tolist() == []


@pytest.mark.parametrize("wide", [1, 30, 1 << 20])
def test_many_rows_are_ordered_as_numpy_orders_them_whether_the_last_key_numbers_them_or_not(wide: int) -> None:
    rng = np.random.default_rng(wide)
    first, second = rng.integers(0, wide, 10_000), rng.integers(0, 2, 10_000).astype(bool)
    numbers, almost = rng.permutation(10_000), rng.permutation(10_000)
    almost[almost == 5] = 7
    for last in (numbers, numbers.astype(np.int32), almost, numbers + 1):
        assert ordered_by(first, second, last).tolist() == np.lexsort((last, second, first)).tolist()
    assert ordered_by(numbers).tolist() == np.argsort(numbers).tolist()


@pytest.mark.parametrize("many", FEW_AND_MANY)
@pytest.mark.parametrize("wide", [1, 2, 1 << 40, 1 << 62])
def test_keys_that_tell_no_rows_apart_change_nothing_whatever_kind_they_are(wide: int, many: int) -> None:
    rng = np.random.default_rng(many)
    alike = [np.full(many, 7, np.int32), np.full(many, 0.5), np.full(many, np.nan), np.ones(many, bool)]
    numbers = [rng.integers(-wide, wide, many), rng.integers(0, 3, many) / 2, rng.permutation(many).astype(np.uint32)]
    keys = [one for number, *some in zip(numbers, alike, alike[::-1], strict=False) for one in (*some, number)]
    assert ordered_by(*keys, *alike).tolist() == np.lexsort(numbers[::-1]).tolist()
    assert ordered_by(*alike, numbers[1], *alike).tolist() == np.argsort(numbers[1], kind="stable").tolist()
    assert ordered_by(*alike).tolist() == list(range(many))
    assert dense_rank(*alike, numbers[1], *alike).tolist() == np.unique(numbers[1], return_inverse=True)[1].tolist()


@pytest.mark.parametrize("many", FEW_AND_MANY)
@pytest.mark.parametrize("different", [1, 3, 40, 10_000])
def test_rows_are_ordered_by_fractions_as_numpy_orders_them(different: int, many: int) -> None:
    rng = np.random.default_rng(different)
    keys = [rng.integers(0, wide, many) / 7 for wide in (different, 2, 5)]
    order = ordered_by(*keys)
    assert order.tolist() == np.lexsort(keys[::-1]).tolist()
    told = [tuple(key[row] for key in keys) for row in order.tolist()]
    rank = {one: at for at, one in enumerate(sorted(set(told)))}
    assert dense_rank(*keys)[order].tolist() == [rank[one] for one in told]


@pytest.mark.parametrize("many", FEW_AND_MANY)
@pytest.mark.parametrize("signs", [(1.0,), (-1.0,), (-1.0, 0.0, -0.0, 1.0)])
def test_fractions_of_any_sign_and_size_are_ordered_as_numpy_orders_them(signs: tuple[float, ...], many: int) -> None:
    rng = np.random.default_rng(many)
    first = rng.integers(0, 3, many)
    for sizes in ([1e-300, 0.5, 1.0, 1e300], 10.0 ** rng.integers(-300, 300, many), np.full(many, 1e9) + rng.random()):
        far = rng.choice(signs, many) * rng.choice(sizes, many)
        assert ordered_by(far).tolist() == np.argsort(far, kind="stable").tolist()
        assert ordered_by(first, far).tolist() == np.lexsort((far, first)).tolist()
        assert dense_rank(far, first).tolist() == np.unique(np.c_[far, first], axis=0, return_inverse=True)[1].tolist()


@pytest.mark.parametrize("many", FEW_AND_MANY)
def test_what_is_not_stated_comes_last_and_later_keys_tell_it_apart(many: int) -> None:
    rng = np.random.default_rng(many)
    when, last = rng.choice([1.0, 2.0, np.nan], many), rng.permutation(many)
    stated = np.where(np.isnan(when), np.inf, when)
    for first in ((), (rng.integers(0, 3, many),)):
        assert ordered_by(*first, when, last).tolist() == np.lexsort((last, stated, *first)).tolist()
        assert dense_rank(*first, when).tolist() == dense_rank(*first, stated).tolist()


@pytest.mark.parametrize("wide", [1, 30, 700, 1 << 40])
@pytest.mark.parametrize("kind", [np.int32, np.int64, np.uint8, np.float64])
def test_one_key_is_ranked_alike_whether_its_numbers_are_close_together_or_not(wide: int, kind: type) -> None:
    key = np.random.default_rng(wide).integers(-wide, wide, 500).astype(kind)
    ranks = dense_rank(key)
    assert ranks.tolist() == np.unique(key, return_inverse=True)[1].tolist()
    assert ranks.dtype == np.int64
    assert dense_rank(key[:0]).tolist() == []


@pytest.mark.parametrize("values", LINES, ids=str)
def test_first_rows_and_counts_are_those_that_numpy_finds(values: list[int]) -> None:
    rows = np.array(values, np.int32)
    expected, first, count = np.unique(rows, return_index=True, return_counts=True)
    assert [one.tolist() for one in unique_counts(rows)] == [expected.tolist(), count.tolist()]
    assert [one.tolist() for one in first_of(rows)] == [first.tolist(), count.tolist()]
    assert unique_counts(rows)[0].dtype == rows.dtype


@pytest.mark.parametrize("runs", [40, 3, 1])  # of a few rows each, of more than are sorted by insertion, and one
@pytest.mark.parametrize("begins", ["last first", "first first", "anyhow"])
def test_of_each_owner_the_last_by_the_keys_comes_first_wherever_it_lay(runs: int, begins: str) -> None:
    rng, many = np.random.default_rng(runs), 300
    owner, rows = np.sort(rng.integers(0, runs, many)), rng.permutation(1_000)[:many]
    telling = {"last first": np.arange(many)[::-1], "first first": np.arange(many), "anyhow": rng.permutation(many)}
    keys = rng.integers(0, 2, many) * (begins == "anyhow"), np.full(many, np.nan), telling[begins].astype(np.uint32)
    expected = [*rows[np.lexsort((*keys[::-1], -owner))[::-1]]]
    assert last_first(rows, owner, *keys).tolist() == expected
    assert _last_first.py_func(rows, owner, np.array([*keys[:1], keys[2]], np.int64)).tolist() == expected
